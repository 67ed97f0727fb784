import type { CredentialType } from '../../../db/credentials/types.ts'
import {
  checkDiscord,
  checkDiscordWebhook,
  checkMattermost,
  checkSlack,
  checkTelegram,
  checkTwilio,
  checkWhatsApp,
} from './chat.ts'
import type { CredentialCheck } from './check.ts'
import { checkDatabase } from './database.ts'
import { checkAirtable, checkAws, checkHttp, checkNotion } from './http.ts'
import { checkAnthropic, checkAzureOpenAi, checkDemo, checkGoogleAi, checkOpenAi } from './llm.ts'
import { checkImap, checkSmtp } from './mail.ts'
import { checkOAuth, checkServiceAccount } from './oauth.ts'

/** The check of each type. A type without one has nothing that could be checked. */
export const CREDENTIAL_CHECKS: Partial<Record<CredentialType, CredentialCheck>> = {
  OPENAI: checkOpenAi,
  ANTHROPIC: checkAnthropic,
  AZURE_OPENAI: checkAzureOpenAi,
  GOOGLE_AI: checkGoogleAi,
  OPENAI_COMPATIBLE: checkOpenAi,
  SLACK: checkSlack,
  TELEGRAM: checkTelegram,
  DISCORD: checkDiscord,
  DISCORD_WEBHOOK: checkDiscordWebhook,
  MATTERMOST: checkMattermost,
  WHATSAPP: checkWhatsApp,
  TWILIO: checkTwilio,
  HTTP_BASIC: checkHttp,
  HTTP_BEARER: checkHttp,
  HTTP_HEADER: checkHttp,
  HTTP_QUERY: checkHttp,
  HTTP_CUSTOM: checkHttp,
  NOTION: checkNotion,
  AIRTABLE: checkAirtable,
  AWS: checkAws,
  OAUTH2: checkOAuth,
  GOOGLE_SERVICE_ACCOUNT: checkServiceAccount,
  DEMO: checkDemo,
  DATABASE: checkDatabase,
  IMAP: checkImap,
  SMTP: checkSmtp,
}
