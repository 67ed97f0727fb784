import { isObject } from '../../workflows/json.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import {
  type ChatAnswer,
  type ChatBody,
  type ChatLine,
  type ChatMessage,
  type ChatVendor,
  delayOf,
  dropEmpty,
  fillForm,
  tidyLine,
  unreadable,
} from './vendor.ts'

const PARSE_MODES = { plain: undefined, markdown: 'MarkdownV2', html: 'HTML' } as const

/** https://core.telegram.org/bots/api: sendMessage, sendDocument and sendMediaGroup. The token is in the path. */
export const TELEGRAM: ChatVendor = {
  name: 'Telegram',
  baseUrl: 'https://api.telegram.org',
  maxText: 4_096,
  maxCaption: 1_024,
  maxFiles: 10,
  formats: ['plain', 'markdown', 'html'],
  reserved: ['chat_id', 'text', 'caption', 'parse_mode', 'message_thread_id', 'document', 'media'],
  knownForMs: 0,
  async send(message, line) {
    const { text, files, options } = message
    const common = dropEmpty({
      chat_id: message.to,
      message_thread_id: toNumber(message.thread),
      ...(message.replyTo === undefined
        ? {}
        : { reply_parameters: { message_id: toNumber(message.replyTo) } }),
    })
    const parseMode = PARSE_MODES[message.format ?? 'plain']
    const [only] = files
    if (!only) {
      const json = { ...options, ...common, ...dropEmpty({ text, parse_mode: parseMode }) }
      return ask(message, line, 'sendMessage', { json })
    }
    const caption = dropEmpty({ caption: text, parse_mode: text === undefined ? undefined : parseMode })
    if (files.length === 1) {
      const fields = toFields({ ...options, ...common, ...caption })
      return ask(message, line, 'sendDocument', { form: await fillForm(fields, files, () => 'document') })
    }
    const last = files.length - 1
    const media = files.map((_, i) => ({
      type: 'document',
      media: `attach://file${i}`,
      // The caption of the last one is shown below all of them.
      ...(i === last ? caption : {}),
    }))
    const fields = toFields({ ...options, ...common, media })
    return ask(message, line, 'sendMediaGroup', { form: await fillForm(fields, files, (i) => `file${i}`) })
  },
}

function toNumber(id: string | undefined): number | undefined {
  return id === undefined ? undefined : Number(id)
}

/** In a form, what is no text is JSON. */
function toFields(values: object): Record<string, string> {
  const entries = Object.entries(values)
  return Object.fromEntries(
    entries.map(([key, value]) => [key, typeof value === 'string' ? value : JSON.stringify(value)]),
  )
}

async function ask(
  message: ChatMessage,
  line: ChatLine,
  method: string,
  sent: ChatBody,
): Promise<ChatAnswer> {
  const token = encodeURIComponent(String(line.credential.data.botToken)).replaceAll('%3A', ':')
  await line.begin()
  const { body, headers } = await line.post({ path: `bot${token}/${method}` }, sent)
  if (!isObject(body) || typeof body.ok !== 'boolean') throw unreadable('Telegram')
  if (!body.ok) {
    line.refused()
    const said = typeof body.description === 'string' ? body.description : 'it does not say why'
    const retryable = body.error_code === 429
    throw new NodeFailure(`Telegram refused the message: ${tidyLine(said)}`, {
      type: 'ChatRefused',
      retryable,
      ...(retryable ? delayOf(headers, body) : {}),
    })
  }
  const first = Array.isArray(body.result) ? body.result[0] : body.result
  const { message_id: id, chat } = Object(first)
  return {
    messageId: id === undefined ? null : String(id),
    to: String(Object(chat).id ?? message.to),
    response: body.result,
  }
}
