import { isObject } from '../../workflows/json.ts'
import type { Button } from '../../workflows/nodes/messages.ts'
import { invalidConfig } from '../nodes/kit/failure.ts'
import {
  type ChatAnswer,
  type ChatBody,
  type ChatLine,
  type ChatMessage,
  type ChatVendor,
  callByVerb,
  dropEmpty,
  fillForm,
  isGet,
  unreadable,
} from './vendor.ts'

const ID = /^\d{1,25}$/
const RESERVED = ['content', 'nonce', 'enforce_nonce', 'message_reference', 'attachments', 'payload_json']

/** It says so of a message that is not there: it was deleted. */
const isGone = (_: unknown, status: number) => status === 404

/** https://docs.discord.com/developers/resources/message. A thread is a channel of its own. */
export const DISCORD: ChatVendor = {
  name: 'Discord',
  baseUrl: 'https://discord.com/api/v10',
  maxText: 2_000,
  maxCaption: 2_000,
  maxFiles: 10,
  formats: ['markdown'],
  reserved: RESERVED,
  // It answers a nonce of the past few minutes with the message that has it, and makes no other.
  knownForMs: 120_000,
  buttons: { rows: 5, perRow: 5 },
  reads: isGet,
  deeds: {
    async send(message, line) {
      const { replyTo, key } = message
      const json = {
        ...writeMessage(message),
        ...(replyTo === undefined ? {} : { message_reference: { message_id: replyTo } }),
        nonce: key.slice(0, 25),
        enforce_nonce: true,
      }
      return post(line, { path: `channels/${channelOf(message)}/messages` }, await fill(message, json))
    },
    edit: (message, line) =>
      post(line, { path: messagePath(message), verb: 'PATCH' }, { json: writeMessage(message) }),
    async delete(message, line) {
      await line.begin()
      const { body } = await line.post({ path: messagePath(message), verb: 'DELETE' }, undefined, isGone)
      return { messageId: message.message ?? null, to: channelOf(message), response: body || null }
    },
    async react(message, line) {
      const emoji = encodeURIComponent(message.reaction ?? '')
      const path = `${messagePath(message)}/reactions/${emoji}/@me`
      await line.begin()
      const { body } = await line.post({ path, verb: message.remove ? 'DELETE' : 'PUT' })
      return { messageId: message.message ?? null, to: channelOf(message), response: body || null }
    },
    async action(message, line) {
      if ((message.action ?? 'typing') !== 'typing')
        throw invalidConfig('action', 'must be typing for Discord')
      await line.begin()
      const { body } = await line.post({ path: `channels/${channelOf(message)}/typing` })
      return { messageId: null, to: channelOf(message), response: body || null }
    },
    call: (message, line) => callByVerb('Discord', message, line),
  },
}

/** https://docs.discord.com/developers/resources/webhook: the URL has the token, and says which channel. */
export const DISCORD_WEBHOOK: ChatVendor = {
  ...DISCORD,
  name: 'Discord',
  knownForMs: 0,
  fixedPlace: true,
  deeds: {
    async send(message, line) {
      const thread = message.thread === undefined ? '' : `&thread_id=${encodeURIComponent(message.thread)}`
      const url = `${hookOf(line)}?wait=true${thread}`
      return post(line, { url }, await fill(message, writeMessage(message)))
    },
    edit: (message, line) =>
      post(
        line,
        { url: `${hookOf(line)}/messages/${idOf(message)}`, verb: 'PATCH' },
        { json: writeMessage(message) },
      ),
    async delete(message, line) {
      const url = `${hookOf(line)}/messages/${idOf(message)}`
      await line.begin()
      const { body } = await line.post({ url, verb: 'DELETE' }, undefined, isGone)
      return { messageId: message.message ?? null, to: null, response: body || null }
    },
  },
}

const hookOf = (line: ChatLine) => String(line.credential.data.webhookUrl).replace(/[?#].*$/s, '')

function channelOf({ to, thread }: ChatMessage): string {
  const channel = thread ?? to ?? ''
  if (!ID.test(channel))
    throw invalidConfig(thread === undefined ? 'to' : 'thread', 'must be the id of a channel: digits')
  return channel
}

function idOf({ message = '' }: ChatMessage): string {
  if (!ID.test(message)) throw invalidConfig('message', 'must be the id of a message: digits')
  return message
}

const messagePath = (message: ChatMessage) => `channels/${channelOf(message)}/messages/${idOf(message)}`

function writeMessage({ text, options, buttons }: ChatMessage): Record<string, unknown> {
  return {
    // Users' texts must not notify everyone in the channel, unless the options say so.
    allowed_mentions: { parse: ['users', 'roles'] },
    ...options,
    ...dropEmpty({ content: text }),
    ...(buttons.length === 0 ? {} : { components: buttons.map(writeRow) }),
  }
}

/** https://docs.discord.com/developers/components/reference: rows (1) of buttons (2), which have a style. */
function writeRow(row: Button[]) {
  const components = row.map(({ text, url, value }) =>
    url === undefined
      ? { type: 2, style: 2, label: text, custom_id: value ?? text }
      : { type: 2, style: 5, label: text, url },
  )
  return { type: 1, components }
}

async function fill({ files }: ChatMessage, json: object): Promise<ChatBody> {
  if (files.length === 0) return { json }
  return { form: await fillForm({ payload_json: JSON.stringify(json) }, files, (i) => `files[${i}]`) }
}

async function post(
  line: ChatLine,
  to: Parameters<ChatLine['post']>[0],
  sent: ChatBody,
): Promise<ChatAnswer> {
  await line.begin()
  const { body } = await line.post(to, sent)
  if (!isObject(body) || typeof body.id !== 'string') throw unreadable('Discord')
  const { channel_id: channel } = body
  return { messageId: body.id, to: typeof channel === 'string' ? channel : null, response: body }
}
