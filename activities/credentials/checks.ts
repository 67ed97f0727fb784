import type { OpenedCredential } from '../../db/credentials/open.ts'
import type { CredentialType } from '../../db/credentials/types.ts'
import type { Store } from '../../db/scope.ts'
import type { Dial } from '../http/dial.ts'
import type { HttpClient } from '../http/http.ts'
import { checkDiscord, checkSlack, checkTelegram } from './checks/chat.ts'
import { checkDatabase } from './checks/database.ts'
import { checkAirtable, checkAws, checkHttp, checkNotion } from './checks/http.ts'
import { checkAnthropic, checkAzureOpenAi, checkDemo, checkGoogleAi, checkOpenAi } from './checks/llm.ts'
import { checkImap, checkSmtp } from './checks/mail.ts'
import { checkOAuth, checkServiceAccount } from './checks/oauth.ts'
import type { TokenFinder } from './credentials.ts'

/** What a check of a credential may use; `signal` ends when its time is up, `credentials` is told of secrets. */
export type CheckTools = {
  store: Store
  http: HttpClient
  dial: Dial
  signal: AbortSignal
  credentials: TokenFinder
}

/**
 * Signs in with a credential, changes nothing, and resolves with what to tell the user ("signed in as bot-7").
 * Throws an Error whose message says what is wrong; whoever calls it masks the secrets in both.
 */
export type CredentialCheck = (credential: OpenedCredential, tools: CheckTools) => Promise<string>

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
  HTTP_BASIC: checkHttp,
  HTTP_BEARER: checkHttp,
  HTTP_HEADER: checkHttp,
  HTTP_QUERY: checkHttp,
  NOTION: checkNotion,
  AIRTABLE: checkAirtable,
  AWS: checkAws,
  DEMO: checkDemo,
  OAUTH2: checkOAuth,
  GOOGLE_SERVICE_ACCOUNT: checkServiceAccount,
  DATABASE: checkDatabase,
  IMAP: checkImap,
  SMTP: checkSmtp,
}
