import * as v from 'valibot'
import type { CredentialUse } from '../../workflows/secrets/uses.ts'
import {
  ANYWHERE,
  anywhere,
  authentication,
  flag,
  headerLines,
  lines,
  login,
  port,
  queryLines,
  secret,
  text,
  url,
  vendor,
} from './fields.ts'

export type CredentialKind = {
  summary: string
  /** The keys of `data`. Its entries are flat: texts, numbers, booleans and lists of texts. */
  data: v.ObjectSchema<v.ObjectEntries, undefined>
  /** The keys whose values are secret: they are masked wherever they turn up. */
  secrets: readonly string[]
  /** The keys that decide where the secrets are sent, or how well they are kept from others on the way. */
  directs: readonly string[]
  /** All other keys. A test demands that each key is named in one of the three lists. */
  plain: readonly string[]
  uses: readonly CredentialUse[]
  /** Keys that are required as well, unless all of the keys `unless` are there, or all are `is`. */
  conditional?: { keys: readonly string[]; unless: readonly string[]; is?: string }
  /** The vendor's own hosts, the only ones that its HTTP requests reach, unless `baseUrl` names another. */
  hosts?: readonly string[]
}

/** Every type of credential: the keys of its data, the secret ones among them, and its uses. */
export const CREDENTIAL_TYPES = {
  OPENAI: {
    summary: 'OpenAI',
    data: v.object({ apiKey: text, organization: v.optional(text), ...vendor }),
    secrets: ['apiKey'],
    directs: ['baseUrl'],
    plain: ['organization'],
    uses: ['HTTP', 'LLM'],
    hosts: ['api.openai.com'],
  },
  ANTHROPIC: {
    summary: 'Anthropic',
    data: v.object({ apiKey: text, ...vendor }),
    secrets: ['apiKey'],
    directs: ['baseUrl'],
    plain: [],
    uses: ['HTTP', 'LLM'],
    hosts: ['api.anthropic.com'],
  },
  AZURE_OPENAI: {
    summary: 'Azure OpenAI; `endpoint` is the address of the resource',
    data: v.object({ apiKey: text, endpoint: url, apiVersion: v.optional(text) }),
    secrets: ['apiKey'],
    directs: ['endpoint'],
    plain: ['apiVersion'],
    uses: ['HTTP', 'LLM'],
  },
  GOOGLE_AI: {
    summary: 'Google AI (Gemini)',
    data: v.object({ apiKey: text, ...vendor }),
    secrets: ['apiKey'],
    directs: ['baseUrl'],
    plain: [],
    uses: ['HTTP', 'LLM'],
    hosts: ['generativelanguage.googleapis.com'],
  },
  OPENAI_COMPATIBLE: {
    summary: 'A service with the API of OpenAI, such as one of your own',
    data: v.object({ baseUrl: url, apiKey: v.optional(text) }),
    secrets: ['apiKey'],
    directs: ['baseUrl'],
    plain: [],
    uses: ['HTTP', 'LLM'],
  },
  SLACK: {
    summary: 'A bot in Slack',
    data: v.object({ botToken: text, ...vendor }),
    secrets: ['botToken'],
    directs: ['baseUrl'],
    plain: [],
    uses: ['HTTP', 'CHAT'],
    hosts: ['slack.com', '*.slack.com'],
  },
  TELEGRAM: {
    summary: 'A bot in Telegram',
    data: v.object({ botToken: text, ...vendor }),
    secrets: ['botToken'],
    directs: ['baseUrl'],
    plain: [],
    uses: ['CHAT'],
    hosts: ['api.telegram.org'],
  },
  DISCORD: {
    summary: 'A bot in Discord',
    data: v.object({ botToken: text, ...vendor }),
    secrets: ['botToken'],
    directs: ['baseUrl'],
    plain: [],
    uses: ['HTTP', 'CHAT'],
    hosts: ['discord.com'],
  },
  DISCORD_WEBHOOK: {
    summary: 'A webhook of a channel in Discord, as its settings show it',
    data: v.object({ webhookUrl: url }),
    secrets: ['webhookUrl'],
    directs: [],
    plain: [],
    uses: ['CHAT'],
  },
  MATTERMOST: {
    summary: 'A bot or a personal access token of Mattermost; `baseUrl` is the address of the server',
    data: v.object({ accessToken: text, baseUrl: url }),
    secrets: ['accessToken'],
    directs: ['baseUrl'],
    plain: [],
    uses: ['HTTP', 'CHAT'],
  },
  WHATSAPP: {
    summary: 'A business account of WhatsApp (Cloud API)',
    data: v.object({ accessToken: text, ...vendor }),
    secrets: ['accessToken'],
    directs: ['baseUrl'],
    plain: [],
    uses: ['HTTP', 'CHAT'],
    hosts: ['graph.facebook.com'],
  },
  TWILIO: {
    summary: 'An account of Twilio; with `apiKeySid` the secret is that of the API key',
    data: v.object({ accountSid: text, authToken: text, apiKeySid: v.optional(text), ...vendor }),
    secrets: ['authToken'],
    directs: ['baseUrl'],
    plain: ['accountSid', 'apiKeySid'],
    uses: ['HTTP', 'CHAT'],
    hosts: ['api.twilio.com', '*.twilio.com'],
  },
  SMTP: {
    summary: 'A server that sends mail; `from` is the usual sender',
    data: v.object({
      ...login,
      username: v.optional(text),
      password: v.optional(secret),
      from: v.optional(text),
      authentication: v.optional(authentication, 'password'),
    }),
    secrets: ['password'],
    directs: ['host', 'port', 'tls'],
    plain: ['username', 'from', 'authentication'],
    uses: ['MAIL'],
    conditional: { keys: ['username', 'password'], unless: ['authentication'], is: 'none' },
  },
  IMAP: {
    summary: 'A mailbox',
    data: v.object(login),
    secrets: ['password'],
    directs: ['host', 'port', 'tls'],
    plain: ['username'],
    uses: ['MAILBOX'],
  },
  HTTP_BASIC: {
    summary: 'A user name and a password for HTTP',
    data: v.object({ username: text, password: secret, ...anywhere }),
    secrets: ['password'],
    directs: ANYWHERE,
    plain: ['username'],
    uses: ['HTTP'],
  },
  HTTP_BEARER: {
    summary: 'A token in the header Authorization: Bearer',
    data: v.object({ token: text, ...anywhere }),
    secrets: ['token'],
    directs: ANYWHERE,
    plain: [],
    uses: ['HTTP'],
  },
  HTTP_HEADER: {
    summary: 'A header of any name',
    data: v.object({ name: text, value: text, ...anywhere }),
    secrets: ['value'],
    directs: ANYWHERE,
    plain: ['name'],
    uses: ['HTTP'],
  },
  HTTP_QUERY: {
    summary: 'A query parameter of any name',
    data: v.object({ name: text, value: text, ...anywhere }),
    secrets: ['value'],
    directs: ANYWHERE,
    plain: ['name'],
    uses: ['HTTP'],
  },
  HTTP_CUSTOM: {
    summary: 'Several headers or query parameters, all of them secret',
    data: v.object({ headers: v.optional(headerLines), query: v.optional(queryLines), ...anywhere }),
    secrets: ['headers', 'query'],
    directs: ANYWHERE,
    plain: [],
    conditional: { keys: ['headers'], unless: ['query'] },
    uses: ['HTTP'],
  },
  OAUTH2: {
    summary:
      'OAuth 2, by the authorization code flow; with authorizationUrl and tokenUrl it can be connected',
    data: v.object({
      clientId: text,
      clientSecret: text,
      accessToken: v.optional(text),
      refreshToken: v.optional(text),
      authorizationUrl: v.optional(url),
      tokenUrl: v.optional(url),
      /** What the authorization server calls itself, if it is not named like its addresses (RFC 9207). */
      issuer: v.optional(url),
      scope: v.optional(text),
      audience: v.optional(text),
      /** How the client proves itself to the token endpoint. */
      authentication: v.optional(v.picklist(['header', 'body'], 'must be header or body'), 'header'),
      ...anywhere,
    }),
    secrets: ['clientSecret', 'accessToken', 'refreshToken'],
    directs: ['authorizationUrl', 'tokenUrl', 'issuer', ...ANYWHERE],
    plain: ['clientId', 'scope', 'audience', 'authentication'],
    conditional: { keys: ['accessToken', 'refreshToken'], unless: ['authorizationUrl', 'tokenUrl'] },
    uses: ['HTTP'],
  },
  GOOGLE_SERVICE_ACCOUNT: {
    summary: 'A service account of Google Cloud',
    data: v.object({
      clientEmail: text,
      privateKey: lines,
      scopes: v.pipe(v.array(text, 'must be a list of scopes'), v.minLength(1, 'must name a scope')),
      subject: v.optional(text),
      tokenUrl: v.optional(url),
      ...anywhere,
    }),
    secrets: ['privateKey'],
    directs: ['tokenUrl', ...ANYWHERE],
    plain: ['clientEmail', 'scopes', 'subject'],
    uses: ['HTTP'],
    hosts: ['*.googleapis.com'],
  },
  NOTION: {
    summary: 'An integration of Notion',
    data: v.object({ apiKey: text, ...vendor }),
    secrets: ['apiKey'],
    directs: ['baseUrl'],
    plain: [],
    uses: ['HTTP'],
    hosts: ['api.notion.com'],
  },
  AIRTABLE: {
    summary: 'A personal access token of Airtable',
    data: v.object({ apiKey: text, ...vendor }),
    secrets: ['apiKey'],
    directs: ['baseUrl'],
    plain: [],
    uses: ['HTTP'],
    hosts: ['api.airtable.com'],
  },
  AWS: {
    summary: 'An access key of AWS; requests are signed with signature version 4',
    data: v.object({
      accessKeyId: text,
      secretAccessKey: text,
      region: text,
      sessionToken: v.optional(text),
      /** Which service is signed for; else the first word of the host. */
      service: v.optional(text),
      ...vendor,
    }),
    secrets: ['secretAccessKey', 'sessionToken'],
    directs: ['baseUrl'],
    plain: ['accessKeyId', 'region', 'service'],
    uses: ['HTTP'],
    hosts: ['*.amazonaws.com', '*.amazonaws.com.cn'],
  },
  DATABASE: {
    summary: 'A PostgreSQL or MySQL database',
    data: v.object({
      host: text,
      port,
      database: text,
      username: text,
      password: secret,
      dialect: v.optional(v.picklist(['postgresql', 'mysql'], 'must be postgresql or mysql'), 'postgresql'),
      tls: v.optional(
        v.picklist(
          ['auto', 'required', 'unverified', 'never'],
          'must be auto, required, unverified or never',
        ),
        'auto',
      ),
      /** The certificate (PEM) of the authority that signed the server's. */
      ca: v.optional(lines),
    }),
    secrets: ['password'],
    directs: ['host', 'port', 'dialect', 'tls', 'ca'],
    plain: ['database', 'username'],
    uses: ['DATABASE'],
  },
  SIGNATURE: {
    summary: 'A secret that webhooks are signed with, or that a CRYPTO node signs with',
    data: v.object({ secret: text }),
    secrets: ['secret'],
    directs: [],
    plain: [],
    uses: ['SIGNATURE'],
  },
  DEMO: {
    summary: 'Needs no key: for trying things out',
    data: v.object({ demo: v.optional(flag) }),
    secrets: [],
    directs: [],
    plain: ['demo'],
    uses: ['LLM'],
  },
} as const satisfies Record<string, CredentialKind>

export type CredentialType = keyof typeof CREDENTIAL_TYPES
export const CREDENTIAL_TYPE_NAMES = Object.keys(CREDENTIAL_TYPES) as CredentialType[]

export function isCredentialType(name: string): name is CredentialType {
  return Object.hasOwn(CREDENTIAL_TYPES, name)
}

/** The table's row of a type, without the details of its own schema. */
export function credentialKind(type: CredentialType): CredentialKind {
  return CREDENTIAL_TYPES[type]
}
