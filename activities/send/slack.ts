import { isObject } from '../../workflows/json.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import {
  type ChatBody,
  type ChatLine,
  type ChatMessage,
  type ChatVendor,
  delayOf,
  dropEmpty,
  tidyLine,
  unreadable,
} from './vendor.ts'

/** Slack says with these that it did nothing now, and would later. */
const LATER = new Set(['ratelimited', 'rate_limited', 'service_unavailable', 'request_timeout'])

/** With these it says that something of it may have been done. */
const UNSURE = new Set(['fatal_error', 'internal_error'])

/** https://docs.slack.dev/reference/methods/chat.postMessage and files.completeUploadExternal. */
export const SLACK: ChatVendor = {
  name: 'Slack',
  baseUrl: 'https://slack.com/api',
  // It cuts longer ones without a word.
  maxText: 40_000,
  maxCaption: 40_000,
  maxFiles: 10,
  formats: ['plain', 'markdown'],
  reserved: ['channel', 'text', 'thread_ts', 'client_msg_id', 'mrkdwn', 'token', 'files', 'channel_id'],
  // That it recognises client_msg_id is not in its documents.
  knownForMs: 0,
  async send(message, line) {
    return message.files.length > 0 ? shareFiles(message, line) : postMessage(message, line)
  },
}

async function postMessage({ to, text, format, thread, replyTo, options, key }: ChatMessage, line: ChatLine) {
  const json = {
    ...options,
    ...dropEmpty({ channel: to, text, thread_ts: thread ?? replyTo }),
    ...(format === undefined ? {} : { mrkdwn: format === 'markdown' }),
    client_msg_id: key.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5'),
  }
  await line.begin()
  const response = await ask(line, 'chat.postMessage', { json })
  const { ts, channel } = response
  return { messageId: typeof ts === 'string' ? ts : null, to: String(channel ?? to), response }
}

/** Each file is uploaded by itself first. The files stay invisible until they are shared, which is one request. */
async function shareFiles(message: ChatMessage, line: ChatLine) {
  const { to, text, thread, replyTo, options } = message
  const files: object[] = []
  for (const file of message.files) {
    const form = new URLSearchParams({ filename: file.name, length: String(file.bytes) })
    const { upload_url: url, file_id: id } = await ask(line, 'files.getUploadURLExternal', { form })
    if (typeof url !== 'string' || typeof id !== 'string') throw unreadable('Slack')
    await line.post({ url }, { bytes: await file.read(file.bytes) })
    files.push({ id, title: file.name })
  }
  const json = {
    ...options,
    ...dropEmpty({ files, channel_id: to, initial_comment: text, thread_ts: thread ?? replyTo }),
  }
  await line.begin()
  const response = await ask(line, 'files.completeUploadExternal', { json })
  return { messageId: null, to, response }
}

/** Slack responds with 200 also to what it refuses. */
async function ask(line: ChatLine, path: string, sent: ChatBody): Promise<Record<string, unknown>> {
  const { body, headers } = await line.post({ path }, sent)
  if (!isObject(body) || typeof body.ok !== 'boolean') throw unreadable('Slack')
  if (body.ok) return body
  const error = typeof body.error === 'string' ? body.error : 'an error without a name'
  const isLater = LATER.has(error)
  const isUnsure = UNSURE.has(error)
  if (!isUnsure) line.refused()
  const { messages } = Object(body.response_metadata)
  const more = Array.isArray(messages) ? ` (${messages.join('; ')})` : ''
  throw new NodeFailure(`Slack refused ${path}: ${tidyLine(error + more)}`, {
    type: 'ChatRefused',
    retryable: isLater || isUnsure,
    ...(isLater ? delayOf(headers, body) : {}),
  })
}
