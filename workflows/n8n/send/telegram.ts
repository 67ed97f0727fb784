import { getOwn } from '../../json.ts'
import { type Fields, objectOf } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { sentFileOf } from '../nodes/fileparts.ts'
import type { MappedNode } from '../parts.ts'
import { reportMissingOption } from '../report.ts'
import { isTemplate, keepText, keepTexts, listObjects } from '../texts.ts'
import {
  keepFields,
  type MappedMessage,
  mapMessage,
  readOptionFields,
  refuseOperation,
  reportAttribution,
} from './messenger.ts'

/** Telegram's node. */
export function mapTelegram(node: SourceNode, tools: MapperTools): MappedNode {
  const { parameters } = node
  const { resource = 'message' } = parameters
  const usual = { message: 'sendMessage', chat: 'get', file: 'get', callback: 'answerQuery' }
  const operation = parameters.operation ?? getOwn<string>(usual, String(resource))
  const read = getOwn(OPERATIONS, `${resource}.${operation}`)
  if (!read) return refuseOperation(String(resource), String(operation))
  return mapMessage(node, tools, 'telegramApi', read(node, tools))
}

type Reader = (node: SourceNode, tools: MapperTools) => MappedMessage

/** A method of Telegram with some parameters of the node as its fields, and with its additional ones. */
function call(method: string, names: Record<string, string>, more = true): Reader {
  return (node) => {
    const own = Object.entries(names).map(([name, field]) => [field, node.parameters[name] ?? ''])
    const additional = more ? readOptionFields(node, 'additionalFields') : {}
    const markup = more ? readMarkup(node) : {}
    const body = { ...keepFields({ ...Object.fromEntries(own), ...additional }), ...markup }
    return { config: { operation: 'call', method, body } }
  }
}

const CHAT = { chatId: 'chat_id' }
const MESSAGE = { ...CHAT, messageId: 'message_id' }

/** Something that is a file of the item, or one that Telegram has or finds itself. */
function send(method: string, field: string): Reader {
  const named = call(method, { ...CHAT, file: field })
  const ofItem = call(method, CHAT)
  return (node, tools) => {
    const { binaryData = false, binaryPropertyName } = node.parameters
    if (isTemplate(binaryData)) throw new Error('an expression says whether it sends a file of the item')
    if (binaryData !== true) return named(node, tools)
    const { config } = ofItem(node, tools)
    const { fileName, ...body } = objectOf(config.body)
    const { fileName: given } = readOptionFields(node, 'additionalFields')
    const files = { [field]: sentFileOf(binaryPropertyName, given) }
    return { config: { ...config, body: { disable_notification: false, ...body }, files } }
  }
}

const OPERATIONS: Record<string, Reader> = {
  'message.sendMessage': sendMessage,
  'message.editMessageText': editMessage,
  'message.deleteMessage': ({ parameters }) => ({
    config: { operation: 'delete', to: keepText(parameters.chatId), message: keepText(parameters.messageId) },
  }),
  'message.sendChatAction': ({ parameters }) => ({
    config: {
      operation: 'action',
      to: keepText(parameters.chatId),
      action: keepText(parameters.action ?? 'typing'),
    },
  }),
  'message.pinChatMessage': (node) => {
    const { disable_notification: quiet } = readOptionFields(node, 'additionalFields')
    const { chatId, messageId } = node.parameters
    const more = quiet === true ? { disable_notification: true } : {}
    const body = { ...keepFields({ chat_id: chatId ?? '', message_id: messageId ?? '' }), ...more }
    return { config: { operation: 'call', method: 'pinChatMessage', body } }
  },
  'message.unpinChatMessage': call('unpinChatMessage', MESSAGE, false),
  'message.sendPhoto': send('sendPhoto', 'photo'),
  'message.sendAudio': send('sendAudio', 'audio'),
  'message.sendVideo': send('sendVideo', 'video'),
  'message.sendDocument': send('sendDocument', 'document'),
  'message.sendAnimation': send('sendAnimation', 'animation'),
  'message.sendSticker': send('sendSticker', 'sticker'),
  'message.sendLocation': call('sendLocation', { ...CHAT, latitude: 'latitude', longitude: 'longitude' }),
  'message.sendMediaGroup': (node) => {
    const media = listObjects(objectOf(node.parameters.media).media).map(({ additionalFields, ...one }) =>
      keepTexts({ ...one, ...objectOf(additionalFields) }),
    )
    const body = {
      ...keepFields({ chat_id: node.parameters.chatId ?? '', ...readOptionFields(node, 'additionalFields') }),
      media,
    }
    return { config: { operation: 'call', method: 'sendMediaGroup', body } }
  },
  'callback.answerQuery': call('answerCallbackQuery', { queryId: 'callback_query_id' }),
  'callback.answerInlineQuery': call('answerInlineQuery', {
    queryId: 'inline_query_id',
    results: 'results',
  }),
  'chat.get': call('getChat', CHAT, false),
  'chat.administrators': (node, tools) => ({
    ...call('getChatAdministrators', CHAT, false)(node, tools),
    shape: '$item.result',
  }),
  'chat.leave': call('leaveChat', CHAT, false),
  'chat.member': call('getChatMember', { ...CHAT, userId: 'user_id' }, false),
  'chat.setDescription': call('setChatDescription', { ...CHAT, description: 'description' }, false),
  'chat.setTitle': call('setChatTitle', { ...CHAT, title: 'title' }, false),
  'file.get': (node, tools) => {
    const { download = true, fileId } = node.parameters
    if (isTemplate(download)) throw new Error('an expression says whether it downloads the file')
    if (download !== true) return call('getFile', { fileId: 'file_id' }, false)(node, tools)
    const { mimeType } = readOptionFields(node, 'additionalFields')
    if (mimeType) reportMissingOption(tools.report, 'parameters.additionalFields.mimeType', mimeType)
    return {
      config: { operation: 'download', file: keepText(fileId) },
      shape: "{'ok': true, 'result': $item.response, '$binary': {'data': $item.file}}",
    }
  },
}

function sendMessage(node: SourceNode, tools: MapperTools): MappedMessage {
  const { parameters, version } = node
  const {
    appendAttribution,
    message_thread_id: thread,
    ...fields
  } = readOptionFields(node, 'additionalFields')
  const { parse_mode = 'Markdown', ...options } = fields
  const attributes = appendAttribution ?? version >= 1.1
  // Only to such texts it adds its line.
  if (attributes !== false && /^(Markdown|HTML|=.*)$/.test(String(parse_mode)))
    reportAttribution(tools, 'parameters.additionalFields.appendAttribution')
  // Older ones show no preview where there is no URL, and there it changes nothing.
  if (version >= 1.2 && options.disable_web_page_preview === undefined)
    options.disable_web_page_preview = true
  return {
    config: {
      to: keepText(parameters.chatId),
      text: keepText(parameters.text),
      ...readFormat(parse_mode, options),
      ...readButtons(node, options),
      ...(thread === undefined || thread === 0 || thread === '' ? {} : { thread: keepText(thread) }),
      ...keepOptions(options),
    },
  }
}

function editMessage(node: SourceNode): MappedMessage {
  const { parameters } = node
  const { parse_mode, appendAttribution: _, ...options } = readOptionFields(node, 'additionalFields')
  const place =
    parameters.messageType === 'inlineMessage'
      ? { message: keepText(parameters.inlineMessageId) }
      : { to: keepText(parameters.chatId), message: keepText(parameters.messageId) }
  return {
    config: {
      operation: 'edit',
      ...place,
      text: keepText(parameters.text),
      ...readFormat(parse_mode, options),
      ...readButtons(node, options),
      ...keepOptions(options),
    },
  }
}

/** The node's format; the older Markdown is an option of Telegram only. */
function readFormat(mode: unknown, options: Fields): Fields {
  if (mode === undefined || mode === '') return {}
  if (mode === 'HTML') return { format: 'html' }
  if (mode === 'MarkdownV2') return { format: 'markdown' }
  options.parse_mode = mode
  return {}
}

const keepOptions = (options: Fields): Fields =>
  Object.keys(options).length === 0 ? {} : { options: keepFields(options) }

/** Buttons of the message, or in `options` what the node has no setting for. */
function readButtons(node: SourceNode, options: Fields): Fields {
  const { reply_markup: markup } = readMarkup(node)
  if (markup === undefined) return {}
  const rows = objectOf(markup).inline_keyboard
  const known = Array.isArray(rows) && rows.length > 0 ? rows.map((row: Fields[]) => row.map(readButton)) : []
  if (known.length > 0 && known.every((row) => row.length > 0 && row.every((one) => one !== undefined)))
    return { buttons: known }
  options.reply_markup = markup
  return {}
}

function readButton({ text, url, callback_data: value, ...rest }: Fields): Fields | undefined {
  const isText = (one: unknown) => typeof one === 'string' && one !== ''
  const isPlain = Object.keys(rest).length === 0 && isText(text) && isText(url) !== isText(value)
  if (!isPlain) return undefined
  return isText(url) ? { text, url } : { text, value }
}

function readMarkup(node: SourceNode): Fields {
  const { parameters } = node
  const { replyMarkup = 'none', operation } = parameters
  if (replyMarkup === 'none' || operation === 'sendMediaGroup') return {}
  if (isTemplate(replyMarkup)) throw new Error('an expression gives the kind of its buttons')
  const kind = String(replyMarkup)
  const given = readOptionFields(node, kind)
  if (kind === 'forceReply' || kind === 'replyKeyboardRemove') return { reply_markup: keepTexts(given) }
  const rows = listObjects(given.rows).flatMap(({ row }) => {
    const { buttons } = objectOf(row)
    return Array.isArray(buttons) ? [listObjects(buttons).map(writeButton)] : []
  })
  const more = kind === 'replyKeyboard' ? objectOf(keepTexts(parameters.replyKeyboardOptions)) : {}
  return { reply_markup: { [kind === 'replyKeyboard' ? 'keyboard' : 'inline_keyboard']: rows, ...more } }
}

const writeButton = ({ text, additionalFields }: Fields): Fields =>
  keepFields({ text, ...objectOf(additionalFields) })
