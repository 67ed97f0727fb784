import type { CredentialUse } from '../../secrets/uses.ts'
import { ofVendor, type SignInWay } from './ways.ts'

type Messenger = { signIn: SignInWay; uses: readonly CredentialUse[] }

const chat = (signIn: SignInWay): Messenger => ({ signIn, uses: ['CHAT'] })

/** n8n's types of credentials of nodes that send messages, and ours for them. */
export const MESSENGERS: Record<string, Messenger> = {
  telegramApi: chat(ofVendor('TELEGRAM', 'botToken: the Access Token', [])),
  slackApi: chat(ofVendor('SLACK', 'botToken: the Access Token', [])),
  slackOAuth2Api: chat(
    ofVendor('SLACK', 'botToken: the token of the user who installed the app (xoxp-)', []),
  ),
  discordBotApi: chat(ofVendor('DISCORD', 'botToken: the Bot Token', [])),
  discordOAuth2Api: chat(ofVendor('DISCORD', 'botToken: the Bot Token', [])),
  discordWebhookApi: chat(ofVendor('DISCORD_WEBHOOK', 'webhookUrl: the Webhook URL', [])),
  mattermostApi: chat(
    ofVendor('MATTERMOST', 'accessToken: the Access Token; baseUrl: the Base URL, as in n8n', []),
  ),
  whatsAppApi: chat(ofVendor('WHATSAPP', 'accessToken: the Access Token', [])),
  twilioApi: chat(
    ofVendor(
      'TWILIO',
      'accountSid: the Account SID; authToken: the Auth Token, or the secret of the API key, with its SID in apiKeySid',
      [],
    ),
  ),
  smtp: {
    signIn: ofVendor(
      'SMTP',
      'host, port, username and password: as in n8n; tls: always for SSL/TLS, else auto',
      [],
    ),
    uses: ['MAIL'],
  },
}
