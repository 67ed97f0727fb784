import { isObject } from '../../workflows/json.ts'
import { invalidConfig, NodeFailure } from '../nodes/kit/failure.ts'
import {
  type ChatBody,
  type ChatLine,
  type ChatMessage,
  type ChatVendor,
  delayOf,
  dropEmpty,
  tidyLine,
  toFields,
  unreadable,
} from './vendor.ts'

/** Slack says with these that it did nothing now, and would later. */
const LATER = new Set(['ratelimited', 'rate_limited', 'service_unavailable', 'request_timeout'])

/** With these it says that something of it may have been done. */
const UNSURE = new Set(['fatal_error', 'internal_error'])

/** What it says of what an earlier attempt has done. */
const DONE = /^(message_not_found|already_reacted|no_reaction)$/
const METHOD = /^[a-z][A-Za-z]*(\.[A-Za-z]+){1,5}$/
const READING =
  /\.(list|info|history|replies|members|get\w*|messages|files|all|context|test|lookupByEmail|identity)$/

/** https://docs.slack.dev/reference/methods */
export const SLACK: ChatVendor = {
  name: 'Slack',
  baseUrl: 'https://slack.com/api',
  // It cuts longer ones without a word.
  maxText: 40_000,
  maxCaption: 40_000,
  maxFiles: 10,
  formats: ['plain', 'markdown'],
  reserved: ['channel', 'text', 'thread_ts', 'client_msg_id', 'mrkdwn', 'token', 'files', 'channel_id', 'ts'],
  // That it recognises client_msg_id is not in its documents.
  knownForMs: 0,
  buttons: { rows: 10, perRow: 25 },
  reads: (method) => READING.test(method),
  deeds: {
    send: (message, line) =>
      message.files.length > 0 ? shareFiles(message, line) : postMessage(message, line),
    edit: (message, line) =>
      change('chat.update', message, line, {
        ...message.options,
        ...blocks(message),
        ...dropEmpty({ channel: message.to, ts: message.message, text: message.text }),
      }),
    delete: (message, line) =>
      change('chat.delete', message, line, { ...message.options, channel: message.to, ts: message.message }),
    react: (message, line) =>
      change(message.remove ? 'reactions.remove' : 'reactions.add', message, line, {
        ...message.options,
        channel: message.to,
        timestamp: message.message,
        name: (message.reaction ?? '').replace(/^:|:$/g, ''),
      }),
    async call({ method = '', body, named }, line) {
      if (!METHOD.test(method))
        throw invalidConfig('method', 'must be a method of Slack, such as conversations.invite')
      if (Object.keys(named).length > 0)
        throw invalidConfig('files', 'must not be there: Slack takes files with the operation send')
      await line.begin()
      // Methods that read know no JSON.
      const sent = SLACK.reads?.(method) ? { form: new URLSearchParams(toFields(body)) } : { json: body }
      const response = await ask(line, method, sent)
      const { ts, channel } = response
      return {
        messageId: typeof ts === 'string' ? ts : null,
        to: typeof channel === 'string' ? channel : null,
        response,
      }
    },
  },
}

/** The text as a section, and the buttons below it, one row of them to a block. */
function blocks({ text, buttons, format, options }: ChatMessage): object {
  if (buttons.length === 0) return {}
  const type = format === 'plain' ? 'plain_text' : 'mrkdwn'
  const above = Array.isArray(options.blocks)
    ? options.blocks
    : text === undefined
      ? []
      : [{ type: 'section', text: { type, text } }]
  const rows = buttons.map((row) => ({
    type: 'actions',
    elements: row.map(({ text, url, value }) => ({
      type: 'button',
      text: { type: 'plain_text', text },
      ...(url === undefined ? { value: value ?? text } : { url }),
    })),
  }))
  return { blocks: [...above, ...rows] }
}

async function change(method: string, { to, message }: ChatMessage, line: ChatLine, json: object) {
  await line.begin()
  const response = await ask(line, method, { json })
  const { ts = message, channel = to } = response
  return {
    messageId: typeof ts === 'string' ? ts : null,
    to: typeof channel === 'string' ? channel : null,
    response,
  }
}

async function postMessage(message: ChatMessage, line: ChatLine) {
  const { to, text, format, thread, replyTo, options, key } = message
  const json = {
    ...options,
    ...blocks(message),
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
  const { to, text, thread, replyTo } = message
  const { title, ...options } = message.options
  const files: object[] = []
  for (const file of message.files) {
    const form = new URLSearchParams({ filename: file.name, length: String(file.bytes) })
    const { upload_url: url, file_id: id } = await ask(line, 'files.getUploadURLExternal', { form })
    if (typeof url !== 'string' || typeof id !== 'string') throw unreadable('Slack')
    await line.post({ url }, { bytes: await file.read(file.bytes) })
    files.push({ id, title: typeof title === 'string' && title !== '' ? title : file.name })
  }
  const json = {
    ...options,
    ...dropEmpty({ files, channel_id: to, initial_comment: text, thread_ts: thread ?? replyTo }),
  }
  await line.begin()
  const response = await ask(line, 'files.completeUploadExternal', { json })
  return { messageId: null, to: to ?? null, response }
}

/** Slack responds with 200 also to what it refuses. */
async function ask(line: ChatLine, path: string, sent: ChatBody): Promise<Record<string, unknown>> {
  const { body, headers } = await line.post({ path }, sent)
  if (!isObject(body) || typeof body.ok !== 'boolean') throw unreadable('Slack')
  if (body.ok) return body
  const error = typeof body.error === 'string' ? body.error : 'an error without a name'
  if (line.again && DONE.test(error)) return body
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
