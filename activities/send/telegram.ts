import { isObject } from '../../workflows/json.ts'
import type { Button } from '../../workflows/nodes/messages.ts'
import { invalidConfig, NodeFailure } from '../nodes/kit/failure.ts'
import {
  type ChatAnswer,
  type ChatBody,
  type ChatLine,
  type ChatMessage,
  type ChatVendor,
  delayOf,
  dropEmpty,
  fillCall,
  fillForm,
  tidyLine,
  toFields,
  unreadable,
} from './vendor.ts'

const PARSE_MODES = { plain: undefined, markdown: 'MarkdownV2', html: 'HTML' } as const
const METHOD = /^[A-Za-z]{1,100}$/
const FILE_PATH = /^[\w.~%+@,()!=&-]+(\/[\w.~%+@,()!=&-]+)*$/

/** It says so of what an earlier attempt has done. */
const DONE = /message is not modified|message to delete not found/i

/** https://core.telegram.org/bots/api. The token is in the path. */
export const TELEGRAM: ChatVendor = {
  name: 'Telegram',
  baseUrl: 'https://api.telegram.org',
  maxText: 4_096,
  maxCaption: 1_024,
  maxFiles: 10,
  formats: ['plain', 'markdown', 'html'],
  reserved: ['chat_id', 'text', 'caption', 'message_thread_id', 'document', 'media', 'message_id'],
  knownForMs: 0,
  buttons: { rows: 100, perRow: 8 },
  reads: (method) => /^get[A-Z]/.test(method),
  deeds: {
    send: sendMessage,
    edit(message, line) {
      const { text, format, options } = message
      const json = {
        ...options,
        ...dropEmpty({ ...place(message), text, parse_mode: PARSE_MODES[format ?? 'plain'] }),
        ...keyboard(message.buttons),
      }
      return ask(message, line, text === undefined ? 'editMessageReplyMarkup' : 'editMessageText', { json })
    },
    delete: (message, line) =>
      ask(message, line, 'deleteMessage', { json: { ...message.options, ...place(message) } }),
    react(message, line) {
      const { reaction, remove, options } = message
      const own = /^\d{5,}$/.test(reaction ?? '')
      const one = own
        ? { type: 'custom_emoji', custom_emoji_id: reaction }
        : { type: 'emoji', emoji: reaction }
      const json = { ...options, ...place(message), reaction: remove ? [] : [one] }
      return ask(message, line, 'setMessageReaction', { json })
    },
    action(message, line) {
      const { to, thread, action = 'typing', options } = message
      const json = { ...options, ...dropEmpty({ chat_id: to, message_thread_id: toNumber(thread), action }) }
      return ask(message, line, 'sendChatAction', { json })
    },
    async call(message, line) {
      const { method = '' } = message
      if (!METHOD.test(method))
        throw invalidConfig('method', 'must be a method of Telegram, such as answerCallbackQuery')
      return ask(message, line, method, await fillCall(message))
    },
    /** https://core.telegram.org/bots/api#getfile: what it says of the file has the path to download it by. */
    async download(message, line) {
      const { response } = await ask(message, line, 'getFile', { json: { file_id: message.file } })
      const { file_path: path } = Object(response)
      if (typeof path !== 'string' || !FILE_PATH.test(path) || path.split('/').includes('..'))
        throw unreadable('Telegram')
      const file = await line.download(`file/bot${tokenOf(line)}/${path}`, path.split('/').at(-1)!)
      return { file, response }
    },
  },
}

/** Which message it is about. One that was sent by way of a query has no chat. */
function place({ to, message }: ChatMessage) {
  return to === undefined ? { inline_message_id: message } : { chat_id: to, message_id: toNumber(message) }
}

function keyboard(buttons: Button[][]): object {
  if (buttons.length === 0) return {}
  const rows = buttons.map((row) =>
    row.map(({ text, url, value }) =>
      url === undefined ? { text, callback_data: value ?? text } : { text, url },
    ),
  )
  return { reply_markup: { inline_keyboard: rows } }
}

function sendMessage(message: ChatMessage, line: ChatLine): Promise<ChatAnswer> {
  const { text, files, options } = message
  const common = {
    ...dropEmpty({ chat_id: message.to, message_thread_id: toNumber(message.thread) }),
    ...(message.replyTo === undefined ? {} : { reply_parameters: { message_id: toNumber(message.replyTo) } }),
    ...keyboard(message.buttons),
  }
  const parseMode = PARSE_MODES[message.format ?? 'plain']
  const [only] = files
  if (!only) {
    const json = { ...options, ...common, ...dropEmpty({ text, parse_mode: parseMode }) }
    return ask(message, line, 'sendMessage', { json })
  }
  return sendFiles(message, line, { ...options, ...common }, text === undefined ? undefined : parseMode)
}

async function sendFiles(message: ChatMessage, line: ChatLine, common: object, parseMode?: string) {
  const { text, files } = message
  const caption = dropEmpty({ caption: text, parse_mode: parseMode })
  if (files.length === 1) {
    const form = await fillForm(toFields({ ...common, ...caption }), files, () => 'document')
    return ask(message, line, 'sendDocument', { form })
  }
  const last = files.length - 1
  const media = files.map((_, i) => ({
    type: 'document',
    media: `attach://file${i}`,
    // The caption of the last one is shown below all of them.
    ...(i === last ? caption : {}),
  }))
  const form = await fillForm(toFields({ ...common, media }), files, (i) => `file${i}`)
  return ask(message, line, 'sendMediaGroup', { form })
}

function toNumber(id: string | undefined): number | undefined {
  return id === undefined ? undefined : Number(id)
}

const tokenOf = (line: ChatLine) =>
  encodeURIComponent(String(line.credential.data.botToken)).replaceAll('%3A', ':')

async function ask(
  message: ChatMessage,
  line: ChatLine,
  method: string,
  sent: ChatBody,
): Promise<ChatAnswer> {
  await line.begin()
  const isDone = (said: unknown) => DONE.test(String(Object(said).description))
  const { body, headers } = await line.post({ path: `bot${tokenOf(line)}/${method}` }, sent, isDone)
  if (!isObject(body) || typeof body.ok !== 'boolean') throw unreadable('Telegram')
  if (!body.ok && !(line.again && isDone(body))) {
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
  const { message_id: id = message.message, chat } = Object(first)
  return {
    messageId: id === undefined ? null : String(id),
    to: String(Object(chat).id ?? message.to ?? '') || null,
    response: body.result ?? body,
    body,
  }
}
