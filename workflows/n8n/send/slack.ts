import { getOwn, isObject } from '../../json.ts'
import { type Fields, objectOf } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { sentFileOf } from '../nodes/fileparts.ts'
import type { MappedNode } from '../parts.ts'
import { isTemplate, keepText, parseCode, writeCode } from '../texts.ts'
import {
  keepFields,
  type MappedMessage,
  mapMessage,
  modeOf,
  readAttachments,
  readKnownJson,
  readLimit,
  readLocator,
  readOptionFields,
  refuseOperation,
  reportAttribution,
} from './messenger.ts'
import { mapOldSlack } from './oldslack.ts'

/** Slack's node. */
export function mapSlack(node: SourceNode, tools: MapperTools): MappedNode {
  const { parameters, version } = node
  const { authentication = 'accessToken', resource = 'message' } = parameters
  const type = authentication === 'oAuth2' ? 'slackOAuth2Api' : 'slackApi'
  if (version < 2 && resource !== 'file')
    return mapMessage(node, tools, type, mapOldSlack(node, String(resource)))
  const usual = { message: 'post', channel: 'create', user: 'info', reaction: 'add', file: 'upload' }
  const operation = parameters.operation ?? getOwn<string>(usual, String(resource))
  const read = getOwn(OPERATIONS, `${resource}.${operation}`)
  if (!read) return refuseOperation(String(resource), String(operation))
  return mapMessage(node, tools, type, read(node, tools))
}

type Reader = (node: SourceNode, tools: MapperTools) => MappedMessage

/** n8n gives the time stamp of an answer another name. */
const STAMPED =
  "$exists($item.ts) ? $merge([$sift($item, function($v, $k) { $k != 'ts' }), {'message_timestamp': $item.ts}]) : $item"

const CHANNEL_URL = /https:\/\/app\.slack\.com\/client\/.*\/([a-zA-Z0-9]{2,})/
const USER_URL = /https:\/\/app\.slack\.com\/client\/.*\/([a-zA-Z0-9]{2,})/

const channelOf = ({ parameters }: SourceNode) => readLocator(parameters.channelId, CHANNEL_URL)

/** A channel, or a user by the id or by the name with an @. */
function targetOf(node: SourceNode): unknown {
  const { select, user } = node.parameters
  if (select !== 'user') return channelOf(node)
  return userOf(user)
}

function userOf(user: unknown): unknown {
  const value = readLocator(user, USER_URL)
  if (modeOf(user) !== 'username') return value
  if (isTemplate(value)) throw new Error('an expression gives the name of the user: name the id')
  return String(value).startsWith('@') ? value : `@${value}`
}

/** A method with fields of the node. `pick` is the part of the answer that n8n puts out. */
function call(method: string, fields: (node: SourceNode) => Fields, pick?: string): Reader {
  return (node) => ({
    config: { operation: 'call', method, body: keepFields(fields(node)) },
    ...(pick === undefined ? {} : { shape: `$item.${pick}` }),
  })
}

const ofChannel = (method: string, pick?: string, more: Record<string, string> = {}) =>
  call(
    `conversations.${method}`,
    (node) => ({
      channel: channelOf(node),
      ...Object.fromEntries(
        Object.entries(more).map(([name, field]) => [field, node.parameters[name] ?? '']),
      ),
    }),
    pick,
  )

const OPERATIONS: Record<string, Reader> = {
  'message.post': postMessage,
  'message.update': (node, tools) => {
    const options = { ...readContent(node, tools), ...keepFields(readOptionFields(node, 'updateFields')) }
    const { text, ...rest } = options
    return {
      config: {
        operation: 'edit',
        to: channelOf(node),
        message: keepText(node.parameters.ts),
        ...(text === undefined ? {} : { text }),
        ...(Object.keys(rest).length === 0 ? {} : { options: rest }),
      },
      shape: STAMPED,
    }
  },
  'message.delete': (node) => ({
    config: { operation: 'delete', to: targetOf(node), message: keepText(node.parameters.timestamp) },
    shape: STAMPED,
  }),
  'message.getPermalink': call('chat.getPermalink', (node) => ({
    channel: channelOf(node),
    message_ts: keepText(node.parameters.timestamp),
  })),
  'message.search': searchMessages,
  'reaction.add': (node) => react(node),
  'reaction.remove': (node) => react(node, true),
  'reaction.get': call('reactions.get', (node) => ({
    channel: channelOf(node),
    timestamp: keepText(node.parameters.timestamp),
  })),
  'channel.archive': ofChannel('archive'),
  'channel.unarchive': ofChannel('unarchive'),
  'channel.close': ofChannel('close'),
  'channel.leave': ofChannel('leave'),
  'channel.get': ofChannel('info', 'channel'),
  'channel.join': ofChannel('join', 'channel'),
  'channel.kick': ofChannel('kick', undefined, { userId: 'user' }),
  'channel.rename': ofChannel('rename', 'channel', { name: 'name' }),
  'channel.setPurpose': ofChannel('setPurpose', 'channel', { purpose: 'purpose' }),
  'channel.setTopic': ofChannel('setTopic', 'channel', { topic: 'topic' }),
  'channel.invite': call(
    'conversations.invite',
    (node) => ({ channel: channelOf(node), users: joinNames(node.parameters.userIds) }),
    'channel',
  ),
  'channel.create': call(
    'conversations.create',
    (node) => {
      const name = channelOf(node)
      if (isTemplate(name)) throw new Error('an expression gives the name of the channel')
      const { channelVisibility } = node.parameters
      return { name: String(name).replace(/^#/, ''), is_private: channelVisibility === 'private' }
    },
    'channel',
  ),
  'channel.open': call(
    'conversations.open',
    (node) => {
      const { channelId, returnIm, users } = readOptionFields(node, 'options')
      return {
        ...(channelId ? { channel: channelId } : {}),
        ...(returnIm ? { return_im: returnIm } : {}),
        ...(users ? { users: joinNames(users) } : {}),
      }
    },
    'channel',
  ),
  'channel.getAll': call(
    'conversations.list',
    (node) => {
      const { types, excludeArchived } = readOptionFields(node, 'filters')
      return {
        ...(types ? { types: joinNames(types) } : {}),
        ...(excludeArchived ? { exclude_archived: excludeArchived } : {}),
        limit: readLimit(node, 100),
      }
    },
    'channels',
  ),
  'channel.history': readHistory('conversations.history'),
  'channel.replies': readHistory('conversations.replies'),
  'user.info': call('users.info', ({ parameters }) => ({ user: userOf(parameters.user) }), 'user'),
  'user.getPresence': call('users.getPresence', ({ parameters }) => ({ user: userOf(parameters.user) })),
  'user.getProfile': call(
    'users.profile.get',
    ({ parameters }) => ({ user: userOf(parameters.user) }),
    'profile',
  ),
  'user.lookupByEmail': call(
    'users.lookupByEmail',
    ({ parameters }) => ({ email: parameters.email ?? '' }),
    'user',
  ),
  'user.getAll': call('users.list', (node) => ({ limit: readLimit(node, 50) }), 'members'),
  'file.upload': uploadFile,
  'file.get': call('files.info', ({ parameters }) => ({ file: parameters.fileId ?? '' }), 'file'),
}

/** Before version 2.2 by a method that Slack has switched off: the file goes by the newer one, which answers otherwise. */
function uploadFile(node: SourceNode, { report }: MapperTools): MappedMessage {
  const { parameters, version } = node
  const isOld = version < 2.2
  if (isOld && parameters.binaryData !== true)
    throw new Error(
      'it uploads a text: make a file of it with CONVERT_TO_FILE, and send that with a CHAT_MESSAGE',
    )
  const { channelId, channelIds, fileName, initialComment, threadTs, title } = readOptionFields(
    node,
    'options',
  )
  if (isOld) {
    const message =
      "n8n uploads by Slack's method files.upload, which Slack has switched off. Perdure uploads by the newer one, whose " +
      'answer says less of the file: check the nodes that read it.'
    report('parameter', 'parameters.operation', message, 'upload')
  }
  const options = {
    ...(title ? { title: keepText(title) } : {}),
    ...(isOld && channelIds ? { channels: joinNames(channelIds) } : {}),
  }
  return {
    config: {
      files: sentFileOf(parameters.binaryPropertyName, fileName),
      ...(!isOld && typeof channelId === 'string' && channelId !== '' ? { to: keepText(channelId) } : {}),
      ...(initialComment ? { text: keepText(initialComment) } : {}),
      ...(threadTs ? { thread: keepText(threadTs) } : {}),
      ...(Object.keys(options).length === 0 ? {} : { options }),
    },
    shape: isOld ? '$item.files[0]' : '$item.files',
  }
}

function react(node: SourceNode, remove = false): MappedMessage {
  const { timestamp, name } = node.parameters
  return {
    config: {
      operation: 'react',
      to: channelOf(node),
      message: keepText(timestamp),
      reaction: keepText(name),
      ...(remove ? { remove } : {}),
    },
  }
}

function readHistory(method: string): Reader {
  return (node, tools) => {
    const { inclusive, latest, oldest } = readOptionFields(node, 'filters')
    if (latest || oldest)
      throw new Error(
        'it names dates, which n8n turns into seconds: use a CHAT_MESSAGE with the seconds in its body',
      )
    const thread = method.endsWith('replies') ? { ts: keepText(node.parameters.ts) } : {}
    const body = () => ({
      channel: channelOf(node),
      ...thread,
      ...(inclusive ? { inclusive } : {}),
      limit: readLimit(node, 100),
    })
    const sorted = node.version >= 2.4 && !method.endsWith('replies')
    const pick = sorted
      ? '$sort($item.messages, function($a, $b) { $number($a.ts) < $number($b.ts) })'
      : undefined
    const mapped = call(method, body, 'messages')(node, tools)
    return pick === undefined ? mapped : { ...mapped, shape: pick }
  }
}

function searchMessages(node: SourceNode): MappedMessage {
  if (node.version >= 2.7)
    throw new Error('it searches by a method of Slack that no CHAT_MESSAGE has been held against')
  const { query, sort = 'desc', options } = node.parameters
  const { searchChannel } = objectOf(options)
  if (searchChannel !== undefined)
    throw new Error('it searches in channels: write them into the query, as in:#general')
  const body = {
    query: keepText(query),
    sort: sort === 'relevance' ? 'score' : 'timestamp',
    sort_dir: sort === 'asc' ? 'asc' : 'desc',
    count: readLimit(node, 25),
  }
  return { config: { operation: 'call', method: 'search.messages', body }, shape: '$item.messages.matches' }
}

function postMessage(node: SourceNode, tools: MapperTools): MappedMessage {
  const { parameters } = node
  const { authentication = 'accessToken' } = parameters
  const {
    thread_ts,
    ephemeral,
    botProfile,
    sendAsUser,
    mrkdwn,
    includeLinkToWorkflow: _,
    ...rest
  } = readOptionFields(node, 'otherOptions')
  const { text, ...content } = readContent(node, tools)
  const { replyValues } = objectOf(thread_ts)
  const { thread_ts: thread, reply_broadcast } = objectOf(replyValues)
  const { imageValues } = objectOf(botProfile)
  const { profilePhotoType, icon_url, icon_emoji } = objectOf(imageValues)
  const icon = profilePhotoType === 'image' ? { icon_url } : { icon_emoji }
  const options = {
    ...content,
    ...keepFields({
      ...(authentication === 'accessToken' && sendAsUser ? { username: sendAsUser } : {}),
      ...(reply_broadcast === undefined ? {} : { reply_broadcast }),
      ...(isObject(imageValues) ? icon : {}),
      ...rest,
    }),
  }
  const place = {
    to: targetOf(node),
    ...(text === undefined ? {} : { text }),
    ...(thread ? { thread: keepText(thread) } : {}),
  }
  if (ephemeral !== undefined && ephemeral !== false) return postEphemeral(node, place, options, ephemeral)
  if (isTemplate(mrkdwn)) throw new Error('an expression says whether it is Markdown')
  return {
    config: {
      ...place,
      ...(mrkdwn === undefined ? {} : { format: mrkdwn === false ? 'plain' : 'markdown' }),
      ...(Object.keys(options).length === 0 ? {} : { options }),
    },
    shape: STAMPED,
  }
}

/** Only the user sees it: a method of its own. */
function postEphemeral(
  { parameters }: SourceNode,
  place: Fields,
  options: Fields,
  ephemeral: unknown,
): MappedMessage {
  const { user } = objectOf(objectOf(ephemeral).ephemeralValues)
  const { to: channel, thread: thread_ts, ...rest } = place
  const body = {
    ...options,
    ...rest,
    ...(thread_ts === undefined ? {} : { thread_ts }),
    channel,
    user: parameters.select === 'user' ? channel : userOf(user),
  }
  return { config: { operation: 'call', method: 'chat.postEphemeral', body } }
}

/** The text, the blocks or the attachments, by the kind of the message. */
function readContent(node: SourceNode, tools: MapperTools): Fields {
  const { parameters, version } = node
  const { messageType = 'text', text, otherOptions } = parameters
  if (objectOf(otherOptions).includeLinkToWorkflow ?? version >= 2.1)
    reportAttribution(tools, 'parameters.otherOptions.includeLinkToWorkflow')
  switch (messageType) {
    case 'text':
      return { text: keepText(text) }
    case 'block':
      return { ...readBlocks(parameters.blocksUi), ...(text ? { text: keepText(text) } : {}) }
    case 'attachment':
      return { attachments: readAttachments(parameters.attachments) }
  }
  throw new Error(`it sends a message of the kind "${messageType}"`)
}

function readBlocks(given: unknown): Fields {
  if (!isTemplate(given)) {
    if (given === undefined || given === '') return {}
    const { blocks, ...more } = objectOf(readKnownJson(given, 'blocks'))
    // A list of blocks under any other name is nothing to Slack.
    return blocks === undefined
      ? {}
      : { blocks, ...(more.attachments ? { attachments: more.attachments } : {}) }
  }
  // An expression gives the whole as a text or as an object, or makes some texts inside of the JSON.
  const whole = writeCode(given)
  return {
    blocks: `={{ (given => (given ?? $fail('its blocks are nothing')).blocks)(${parseCode(whole, 'what gives the blocks')}) }}`,
  }
}

/** Names in a list or in a text with commas between them, as one such text. */
function joinNames(value: unknown): unknown {
  if (isTemplate(value)) return value
  const list = Array.isArray(value) ? value : String(value ?? '').split(',')
  if (list.some(isTemplate)) throw new Error('an expression gives one of its names')
  return list
    .map((one) => String(one).trim())
    .filter((one) => one !== '')
    .join(',')
}
