import { isObject } from '../../workflows/json.ts'
import { invalidConfig } from '../nodes/kit/failure.ts'
import { type ChatVendor, dropEmpty, fillForm, unreadable } from './vendor.ts'

const ID = /^\d{1,25}$/

/** https://docs.discord.com/developers/resources/message: Create Message. A thread is a channel of its own. */
export const DISCORD: ChatVendor = {
  name: 'Discord',
  baseUrl: 'https://discord.com/api/v10',
  maxText: 2_000,
  maxCaption: 2_000,
  maxFiles: 10,
  formats: ['markdown'],
  reserved: ['content', 'nonce', 'enforce_nonce', 'message_reference', 'attachments', 'payload_json'],
  // It answers a nonce of the past few minutes with the message that has it, and makes no other.
  knownForMs: 120_000,
  async send({ to, text, thread, replyTo, files, options, key }, line) {
    const channel = thread ?? to
    if (!ID.test(channel))
      throw invalidConfig(thread === undefined ? 'to' : 'thread', 'must be the id of a channel: digits')
    const json = {
      // Users' texts must not notify everyone in the channel, unless the options say so.
      allowed_mentions: { parse: ['users', 'roles'] },
      ...options,
      ...dropEmpty({ content: text }),
      ...(replyTo === undefined ? {} : { message_reference: { message_id: replyTo } }),
      nonce: key.slice(0, 25),
      enforce_nonce: true,
    }
    const form =
      files.length === 0
        ? undefined
        : await fillForm({ payload_json: JSON.stringify(json) }, files, (i) => `files[${i}]`)
    await line.begin()
    const { body } = await line.post(
      { path: `channels/${channel}/messages` },
      form === undefined ? { json } : { form },
    )
    if (!isObject(body) || typeof body.id !== 'string') throw unreadable('Discord')
    return { messageId: body.id, to: String(body.channel_id ?? channel), response: body }
  },
}
