import { CONNECTOR_HOSTS, listConnectorKeys } from '../../support/connectors/keepers.ts'
import type { Answer, Asked } from '../mock.ts'
import { answerAirtable, readAirtableAsking } from './airtable.ts'
import { answerNotion, readNotionAsking } from './notion.ts'
import { answerService, readServiceAsking } from './services.ts'

/** What a vendor of messages was asked, without what n8n and Perdure say in other words. */
export type VendorAsking = { asked: string; body: unknown }

/** The hosts of vendors that n8n has no address for, and their folders at the mock server. */
export const VENDOR_HOSTS: Record<string, string> = {
  'slack.com': 'slack',
  'discord.com': 'discord',
  'graph.facebook.com': 'whatsapp',
  'api.twilio.com': 'twilio',
  ...CONNECTOR_HOSTS,
}

/** Credentials of n8n and of Perdure that lead to the mock server, by the ids that the cases name. */
export function listVendorKeys(url: string, mailPort: number): VendorKey[] {
  const at = `${url}/vendors`
  const token = 'token'
  return [
    ...listConnectorKeys(url),
    {
      id: 'messages-telegram',
      type: 'telegramApi',
      theirs: { accessToken: token, baseUrl: `${at}/telegram` },
      as: 'TELEGRAM',
      ours: { botToken: token, baseUrl: `${at}/telegram` },
    },
    {
      id: 'messages-slack',
      type: 'slackApi',
      theirs: { accessToken: token },
      as: 'SLACK',
      ours: { botToken: token, baseUrl: `${at}/slack/api` },
    },
    {
      id: 'messages-discord',
      type: 'discordBotApi',
      theirs: { botToken: token },
      as: 'DISCORD',
      ours: { botToken: token, baseUrl: `${at}/discord/api/v10` },
    },
    {
      id: 'messages-hook',
      type: 'discordWebhookApi',
      theirs: { webhookUri: `https://discord.com/api/webhooks/7/${token}` },
      as: 'DISCORD_WEBHOOK',
      ours: { webhookUrl: `${at}/discord/api/webhooks/7/${token}` },
    },
    {
      id: 'messages-mattermost',
      type: 'mattermostApi',
      theirs: { accessToken: token, baseUrl: `${at}/mattermost` },
      as: 'MATTERMOST',
      ours: { accessToken: token, baseUrl: `${at}/mattermost` },
    },
    {
      id: 'messages-whatsapp',
      type: 'whatsAppApi',
      theirs: { accessToken: token, businessAccountId: '1' },
      as: 'WHATSAPP',
      ours: { accessToken: token, baseUrl: `${at}/whatsapp/v23.0` },
    },
    {
      id: 'messages-twilio',
      type: 'twilioApi',
      theirs: { authType: 'authToken', accountSid: 'AC1', authToken: token },
      as: 'TWILIO',
      ours: { accountSid: 'AC1', authToken: token, baseUrl: `${at}/twilio/2010-04-01` },
    },
    {
      id: 'messages-supabase',
      type: 'supabaseApi',
      theirs: { host: `${at}/supabase`, serviceRole: token },
      as: 'HTTP_CUSTOM',
      ours: {
        headers: [`apikey: ${token}`, `Authorization: Bearer ${token}`],
        allowedHosts: [new URL(url).host],
      },
    },
    {
      id: 'messages-smtp',
      type: 'smtp',
      theirs: { host: '127.0.0.1', port: mailPort, secure: false, user: '', password: '' },
      as: 'SMTP',
      ours: { host: '127.0.0.1', port: mailPort, tls: 'never', authentication: 'none' },
    },
  ]
}
export type VendorKey = {
  id: string
  type: string
  theirs: Record<string, unknown>
  as: string
  ours: Record<string, unknown>
}

/** Keys of bodies that change nothing of what is sent: Perdure's own marks, and settings of n8n's editor. */
const IDLE = new Set([
  ...['client_msg_id', 'nonce', 'enforce_nonce', 'includeLinkToWorkflow', 'sendAsUser', 'guild_id'],
  ...['StatusCallback', 'fileName'],
])
const MENTIONS = JSON.stringify({ parse: ['everyone', 'users', 'roles'] })

/** The case that a request names anywhere, and what is asked. */
export async function readVendorAsking({ path, query, headers, body, method, raw, type }: Asked) {
  if (path.includes('/slack/upload/')) return readUpload(raw, type)
  if (path.startsWith('/vendors/airtable/')) {
    const asking = readAirtableAsking({ path, query, headers, body, method, raw, type })
    return { name: /airtable-[a-z0-9-]+/.exec(path)?.[0], asking }
  }
  if (path.startsWith('/vendors/notion/')) {
    const asking = readNotionAsking({ path, query, headers, body, method, raw, type })
    // n8n looks at a database once for all items.
    const isLooked = method === 'GET' && path.includes('/v1/databases/')
    return { name: isLooked ? undefined : /notion-[a-z0-9-]+/.exec(path + body)?.[0], asking }
  }
  if (/^\/vendors\/(github|googleapis|docs)\//.test(path)) {
    const asking = readServiceAsking({ path, query, headers, body, method, raw, type })
    return { name: /(?:github|google-(?:calendar|docs))-[a-z0-9-]+/.exec(path + body)?.[0], asking }
  }
  const parts = type.startsWith('multipart/') ? await readParts(raw, type) : undefined
  const isForm = headers['content-type'] === 'application/x-www-form-urlencoded'
  const form = isForm ? Object.fromEntries(new URLSearchParams(body)) : undefined
  const json = parts ?? form ?? (body === '' ? {} : JSON.parse(body))
  const asks = Object.fromEntries([...query].filter(([name]) => name !== 'wait'))
  const given = Array.isArray(json) ? { ...asks, rows: json } : { ...asks, ...json }
  const [, , vendor = '', ...rest] = path.split('/')
  const own = rest.join('/').replace(/^(v\d+\.\d|api\/v10|bottoken|2010-04-01\/Accounts\/AC1|api)\//, '')
  // Slack takes what it reads in either way.
  const verb = vendor === 'slack' ? '' : `${method} `
  const text = decodeURIComponent(path) + JSON.stringify(given)
  const asking: VendorAsking = { asked: `${vendor}: ${verb}${own}`, body: tidy(given) }
  return { name: /messages-[a-z0-9-]+/.exec(text)?.[0], asking }
}

/** The fields of a form: a file with its name, its type and its text. */
async function readParts(raw: Buffer, type: string): Promise<Record<string, unknown>> {
  const form = await new Response(new Uint8Array(raw), { headers: { 'content-type': type } }).formData()
  const fields: Record<string, unknown> = {}
  for (const [name, value] of form) {
    if (typeof value !== 'string')
      fields[name] = { file: value.name, type: value.type.split(';')[0], text: await value.text() }
    else if (name !== 'payload_json') fields[name] = value
    else {
      // n8n tells Discord the list of the files as well.
      const { attachments: _, ...json } = JSON.parse(value)
      fields[name] = json
    }
  }
  return fields
}

/** n8n sends Slack a form with the file, and Perdure its bytes. */
async function readUpload(raw: Buffer, type: string) {
  const isForm = type.startsWith('multipart/')
  const { file } = isForm ? await readParts(raw, type) : { file: { text: raw.toString() } }
  const { text } = Object(file)
  return { name: undefined, asking: { asked: 'slack: upload', body: { text } } }
}

/** Ids are texts to some and numbers to others. */
function tidy(value: unknown): unknown {
  if (typeof value === 'number') return String(value)
  if (Array.isArray(value)) return value.map(tidy)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(
    ([key, one]) => !IDLE.has(key) && !(key === 'allowed_mentions' && JSON.stringify(one) === MENTIONS),
  )
  return Object.fromEntries(entries.map(([key, one]) => [key, tidy(one)]))
}

/** What a vendor answers. Texts with `refuse` in them are refused, as the vendor does. */
export function answerVendor(asked: Asked, own: string): Answer {
  const { path, query, body } = asked
  const [, , vendor = ''] = path.split('/')
  const refused = body.includes('refuse')
  switch (vendor) {
    case 'telegram': {
      if (refused)
        return {
          status: 400,
          json: { ok: false, error_code: 400, description: 'Bad Request: chat not found' },
        }
      if (path.endsWith('getChatAdministrators'))
        return { json: { ok: true, result: [{ status: 'creator' }, { status: 'administrator' }] } }
      if (path.endsWith('getFile')) {
        const { file_id } = JSON.parse(body)
        if (!file_id.startsWith('messages-file-'))
          return { json: { ok: true, result: { id: 5, title: 'Chat' } } }
        return { json: { ok: true, result: { file_id, file_path: `documents/${file_id}.txt` } } }
      }
      if (path.includes('/telegram/file/')) return { text: 'the text of the file' }
      if (/get[A-Z]/.test(path)) return { json: { ok: true, result: { id: 5, title: 'Chat' } } }
      if (!/\/(send(?!ChatAction)|edit)/.test(path)) return { json: { ok: true, result: true } }
      return { json: { ok: true, result: { message_id: 42, chat: { id: 5 }, date: 1, text: 'said' } } }
    }
    case 'airtable':
      return answerAirtable(asked)
    case 'github':
    case 'googleapis':
    case 'docs':
      return answerService(asked)
    case 'notion':
      return answerNotion(asked)
    case 'slack':
      return { json: refused ? { ok: false, error: 'channel_not_found' } : answerSlack(path, own) }
    case 'discord':
      if (refused) return { status: 404, json: { message: 'Unknown Channel', code: 10003 } }
      if (path.includes('/webhooks/') && query.get('wait') !== 'true') return { status: 204, text: '' }
      if (/\/(messages|members)$/.test(path) && body === '')
        return {
          json: [
            { id: '1', content: 'one', tts: false },
            { id: '2', content: 'two', tts: true },
          ],
        }
      return { json: { id: '99', channel_id: '77', content: 'said' } }
    case 'mattermost':
      if (refused)
        return { status: 403, json: { id: 'api.context.permissions', message: 'no', status_code: 403 } }
      return { json: { id: 'p1', channel_id: 'c1', message: 'said' } }
    case 'whatsapp':
      if (refused) return { status: 400, json: { error: { message: '(#100) no such number', code: 100 } } }
      if (!path.endsWith('/messages'))
        return { json: { id: '7', url: 'https://example.com/7', mime_type: 'image/png' } }
      return {
        json: { messaging_product: 'whatsapp', contacts: [{ wa_id: '1' }], messages: [{ id: 'wamid.1' }] },
      }
    case 'supabase':
      if (refused) return { status: 400, json: { message: 'no such column', code: '42703' } }
      return {
        json: [
          { id: 1, name: 'Ada' },
          { id: 2, name: 'bob' },
        ],
      }
    case 'twilio':
      if (refused) return { status: 400, json: { code: 21211, message: 'no such number', status: 400 } }
      return { json: { sid: 'SM1', status: 'queued', to: '+2' } }
  }
  return { status: 404, json: { error: 'no such vendor' } }
}

function answerSlack(path: string, own: string): object {
  const method = path.split('/').at(-1) ?? ''
  // n8n comes by the proxy, in the name of Slack.
  const at = own.includes('slack.com') ? 'https://slack.com' : `${own}/vendors/slack`
  const parts: Record<string, object> = {
    'conversations.info': { channel: { id: 'C1', name: 'general' } },
    'conversations.history': {
      messages: [
        { ts: '2', text: 'b' },
        { ts: '1', text: 'a' },
      ],
    },
    'conversations.list': { channels: [{ id: 'C1' }, { id: 'C2' }] },
    'conversations.invite': { channel: { id: 'C1' } },
    'files.getUploadURLExternal': { upload_url: `${at}/upload/F1`, file_id: 'F1' },
    'files.completeUploadExternal': { files: [{ id: 'F1', title: 'T', name: 'N' }] },
    'users.info': { user: { id: 'U1', name: 'ada' } },
    'users.list': { members: [{ id: 'U1' }, { id: 'U2' }] },
    'search.messages': { messages: { matches: [{ text: 'a' }], total: 1 } },
  }
  if (parts[method]) return { ok: true, ...parts[method] }
  if (method.startsWith('reactions.')) return { ok: true }
  return { ok: true, channel: 'C1', ts: '17.1', message: { text: 'said' } }
}
