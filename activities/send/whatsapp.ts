import { isObject } from '../../workflows/json.ts'
import type { Button } from '../../workflows/nodes/messages.ts'
import { invalidConfig } from '../nodes/kit/failure.ts'
import {
  type ChatAnswer,
  type ChatLine,
  type ChatMessage,
  type ChatVendor,
  callByVerb,
  fillForm,
  isGet,
  unreadable,
} from './vendor.ts'

const SENDER = /^\d{1,25}$/
const MAX_BUTTONS = 3

/**
 * https://developers.facebook.com/docs/whatsapp/cloud-api. `from` is the id of the sender's number. It recognises no
 * message that is sent again, edits none, and takes none back.
 */
export const WHATSAPP: ChatVendor = {
  name: 'WhatsApp',
  baseUrl: 'https://graph.facebook.com/v23.0',
  maxText: 4_096,
  maxCaption: 1_024,
  maxFiles: 1,
  formats: ['plain'],
  reserved: ['to', 'messaging_product', 'recipient_type'],
  knownForMs: 0,
  buttons: { rows: MAX_BUTTONS, perRow: MAX_BUTTONS },
  reads: isGet,
  deeds: {
    async send(message, line) {
      const { to, from, text, replyTo, options, buttons, files } = message
      const { preview_url, ...more } = files.length > 0 ? await attach(message, line) : options
      const own =
        buttons.length > 0
          ? interactive(text, buttons.flat())
          : text === undefined || files.length > 0
            ? {}
            : { type: 'text', text: { body: text, ...(preview_url === undefined ? {} : { preview_url }) } }
      const json = {
        ...own,
        ...more,
        ...(replyTo === undefined ? {} : { context: { message_id: replyTo } }),
        to,
      }
      return post(line, senderOf(from), json, to)
    },
    react({ to, from, message, reaction, remove, options }, line) {
      const one = { message_id: message, emoji: remove ? '' : reaction }
      return post(line, senderOf(from), { ...options, to, type: 'reaction', reaction: one }, to)
    },
    action({ to, from, message, action = 'typing' }, line) {
      if (action !== 'typing') throw invalidConfig('action', 'must be typing for WhatsApp')
      if (message === undefined)
        throw invalidConfig('message', 'is required: WhatsApp shows it below a message')
      const json = { status: 'read', message_id: message, typing_indicator: { type: 'text' } }
      return post(line, senderOf(from), json, to)
    },
    call: (message, line) => callByVerb('WhatsApp', message, line),
  },
}

const MEDIA = /^(image|video|audio)\//

/**
 * The file is uploaded first, and is not seen until a message has its id. The options may say as what it is sent,
 * which otherwise follows from its type.
 */
async function attach({ from, text, options, files, buttons }: ChatMessage, line: ChatLine) {
  if (buttons.length > 0) throw invalidConfig('buttons', 'must not be there: WhatsApp has none below files')
  const [file] = files
  const kind = String(options.type ?? MEDIA.exec(file!.mimeType)?.[1] ?? 'document')
  const given = options[kind] ?? {}
  if (!isObject(given)) throw invalidConfig(`options.${kind}`, 'must be an object')
  const form = await fillForm({ messaging_product: 'whatsapp' }, [file!], () => 'file')
  const { body } = await line.post({ path: `${senderOf(from)}/media` }, { form })
  const { id } = Object(body)
  if (typeof id !== 'string') throw unreadable('WhatsApp')
  const named = kind === 'document' ? { filename: file!.name } : {}
  const caption = text === undefined ? {} : { caption: text }
  return { ...options, type: kind, [kind]: { ...caption, ...named, ...given, id } }
}

function senderOf(from: string | undefined): string {
  if (from === undefined || !SENDER.test(from))
    throw invalidConfig('from', "must be the id of the sender's number at WhatsApp: digits")
  return from
}

function interactive(text: string | undefined, buttons: Button[]): object {
  const body = { text: text ?? '' }
  const [first, ...others] = buttons
  if (first?.url !== undefined && others.length === 0) {
    const parameters = { display_text: first.text, url: first.url }
    return {
      type: 'interactive',
      interactive: { type: 'cta_url', body, action: { name: 'cta_url', parameters } },
    }
  }
  if (buttons.length > MAX_BUTTONS || buttons.some(({ url }) => url !== undefined))
    throw invalidConfig('buttons', `must be at most ${MAX_BUTTONS} for WhatsApp, or a single one with a url`)
  const list = buttons.map(({ text, value }) => ({
    type: 'reply',
    reply: { id: value ?? text, title: text },
  }))
  return { type: 'interactive', interactive: { type: 'button', body, action: { buttons: list } } }
}

async function post(line: ChatLine, sender: string, json: object, to?: string): Promise<ChatAnswer> {
  await line.begin()
  const { body } = await line.post(
    { path: `${sender}/messages` },
    { json: { messaging_product: 'whatsapp', ...json } },
  )
  if (!isObject(body)) throw unreadable('WhatsApp')
  const { messages, contacts } = body
  const { id } = Object(Array.isArray(messages) ? messages[0] : undefined)
  const { wa_id } = Object(Array.isArray(contacts) ? contacts[0] : undefined)
  return {
    messageId: typeof id === 'string' ? id : null,
    to: typeof wa_id === 'string' ? wa_id : (to ?? null),
    response: body,
  }
}
