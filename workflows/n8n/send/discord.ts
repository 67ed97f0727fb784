import { getOwn } from '../../json.ts'
import { type Fields, objectOf } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { sentFileOf } from '../nodes/fileparts.ts'
import type { MappedNode } from '../parts.ts'
import { isTemplate, keepText, keepTexts, listObjects } from '../texts.ts'
import {
  keepFields,
  type MappedMessage,
  mapMessage,
  readKnownJson,
  readLimit,
  readLocator,
  readOptionFields,
  refuseOperation,
} from './messenger.ts'

const TYPES = { botToken: 'discordBotApi', oAuth2: 'discordOAuth2Api', webhook: 'discordWebhookApi' }

/** n8n says nothing of mentions, so that Discord heeds them all. */
const MENTIONS = { allowed_mentions: { parse: ['everyone', 'users', 'roles'] } }

const DONE = "{'success': true}"

/** Discord's node, by a bot or by a webhook. */
export function mapDiscord(node: SourceNode, tools: MapperTools): MappedNode {
  const { parameters, version } = node
  if (version < 2) return mapMessage(node, tools, 'discordWebhookApi', mapOldHook(node, tools))
  const { authentication: given = 'botToken' } = parameters
  // Some published collections have put expressions in the place of what was chosen.
  const authentication = /^=?\{\{\s*\$credentials\.(\w+)\s*\}\}$/.exec(String(given))?.[1] ?? given
  const type = getOwn<string>(TYPES, String(authentication))
  if (type === undefined) throw new Error(`it signs in with "${authentication}"`)
  if (type === 'discordWebhookApi') {
    if (parameters.operation !== undefined && parameters.operation !== 'sendLegacy')
      return refuseOperation('webhook', String(parameters.operation))
    return mapMessage(node, tools, type, mapHook(node, tools))
  }
  if (type === 'discordOAuth2Api') {
    const message =
      'n8n asks first whether the person who connected it is in the server. Perdure sends with the token of the bot alone.'
    tools.report('parameter', 'parameters.authentication', message, authentication)
  }
  const { resource = 'channel' } = parameters
  const usual = { message: 'send', channel: 'create', member: 'getAll' }
  const operation = parameters.operation ?? getOwn<string>(usual, String(resource))
  const read = getOwn(OPERATIONS, `${resource}.${operation}`)
  if (!read) return refuseOperation(String(resource), String(operation))
  return mapMessage(node, tools, type, read(node))
}

type Reader = (node: SourceNode) => MappedMessage

const CHANNEL_URL = /https:\/\/discord\.com\/channels\/\d+\/(\d+)/
const GUILD_URL = /https:\/\/discord\.com\/channels\/(\d+)/

const channelOf = ({ parameters }: SourceNode) => readLocator(parameters.channelId, CHANNEL_URL)

/** A path with an id of the node in it. */
function pathOf(before: string, id: unknown, after = ''): string {
  const text = String(id)
  return isTemplate(text) ? `=${before}${text.slice(1)}${after}` : `${before}${text}${after}`
}

const OPERATIONS: Record<string, Reader> = {
  'message.send': (node) => {
    const { sendTo = 'channel' } = node.parameters
    if (sendTo !== 'channel')
      throw new Error(
        'it sends to a user, for whom it first opens a channel: call POST users/@me/channels with a CHAT_MESSAGE, and send to its id',
      )
    const { replyTo, ...content } = readContent(node)
    return { config: { to: channelOf(node), ...content, ...(replyTo ? { replyTo } : {}) } }
  },
  'message.deleteMessage': (node) => ({
    config: { operation: 'delete', to: channelOf(node), message: keepText(node.parameters.messageId) },
    shape: DONE,
  }),
  'message.react': (node) => ({
    config: {
      operation: 'react',
      to: channelOf(node),
      message: keepText(node.parameters.messageId),
      reaction: keepText(node.parameters.emoji),
    },
    shape: DONE,
  }),
  'message.get': (node) => {
    const { messageId } = node.parameters
    const [channel, message] = [channelOf(node), keepText(messageId)]
    const inner = pathOf('', message)
    const path = pathOf(
      'GET channels/',
      channel,
      `/messages/${inner.startsWith('=') ? inner.slice(1) : inner}`,
    )
    const method = inner.startsWith('=') && !path.startsWith('=') ? `=${path}` : path
    return { config: { operation: 'call', method }, ...simplify(node, SIMPLE_MESSAGE) }
  },
  'message.getAll': (node) => ({
    config: {
      operation: 'call',
      method: pathOf('GET channels/', channelOf(node), `/messages${limited(node, 100)}`),
    },
    shape: simplify(node, SIMPLE_MESSAGE).shape ?? '$item',
  }),
  'channel.get': (node) => ({
    config: { operation: 'call', method: pathOf('GET channels/', channelOf(node)) },
  }),
  'channel.deleteChannel': (node) => ({
    config: { operation: 'call', method: pathOf('DELETE channels/', channelOf(node)) },
  }),
  'member.getAll': (node) => {
    const { after } = node.parameters
    if (after) throw new Error('it begins behind a member: call GET guilds/:id/members with a CHAT_MESSAGE')
    const guild = readLocator(node.parameters.guildId, GUILD_URL)
    const method = pathOf('GET guilds/', guild, `/members${limited(node, 100)}`)
    return { config: { operation: 'call', method }, shape: simplify(node, SIMPLE_MEMBER).shape ?? '$item' }
  },
}

/** A limit that is known now, as a query. */
function limited(node: SourceNode, fallback: number): string {
  const limit = readLimit(node, fallback)
  if (isTemplate(limit)) throw new Error('an expression gives its limit')
  return `?limit=${encodeURIComponent(String(limit))}`
}

const SIMPLE_MESSAGE = ['id', 'channel_id', 'author', 'content', 'timestamp', 'type']
const SIMPLE_MEMBER = ['user', 'roles', 'permissions']

function simplify(node: SourceNode, keys: string[]): { shape?: string } {
  const { simplify: simple } = readOptionFields(node, 'options')
  if (simple !== true) return {}
  return { shape: `$item.$sift($, function($v, $k) { $k in ${JSON.stringify(keys)} })` }
}

/** The text, the options and the embeds of a message. */
function readContent(node: SourceNode): Fields {
  const { parameters } = node
  const files = listObjects(objectOf(parameters.files).values).map(({ inputFieldName }) =>
    sentFileOf(inputFieldName),
  )
  const { flags, message_reference: replyTo, wait: _, ...rest } = readOptionFields(node, 'options')
  const embeds = objectOf(parameters.embeds).values
  const options = {
    ...MENTIONS,
    ...keepFields(rest),
    ...(Array.isArray(flags) && flags.length > 0 ? { flags: readFlags(flags) } : {}),
    ...(embeds === undefined ? {} : { embeds: listObjects(embeds).map(readEmbed).filter(isFilled) }),
  }
  const text = parameters.content ?? ''
  return {
    text: keepText(text),
    options,
    ...(replyTo ? { replyTo: keepText(replyTo) } : {}),
    ...(files.length > 0 ? { files } : {}),
  }
}

function readFlags(flags: unknown[]): number {
  const bits: Record<string, number> = { SUPPRESS_EMBEDS: 1 << 2, SUPPRESS_NOTIFICATIONS: 1 << 12 }
  return flags.reduce<number>((sum, flag) => sum + (bits[String(flag)] ?? 0), 0)
}

const isFilled = (embed: Fields) => Object.keys(embed).length > 0

/** An embed of the editor, in the form of Discord. */
function readEmbed({ inputMethod, json, ...given }: Fields): Fields {
  if (inputMethod === 'json') return wrapEmbed(objectOf(readKnownJson(json, 'embeds')))
  return wrapEmbed(keepFields(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ''))))
}

function wrapEmbed({ author, color, video, thumbnail, image, ...rest }: Fields): Fields {
  if (isTemplate(color)) throw new Error('an expression gives the colour of an embed')
  return {
    ...rest,
    ...(author === undefined ? {} : { author: typeof author === 'string' ? { name: author } : author }),
    ...(color === undefined
      ? {}
      : { color: typeof color === 'string' ? Number.parseInt(color.replace('#', ''), 16) : color }),
    ...(video ? { video: { url: video, width: 1270, height: 720 } } : {}),
    ...(thumbnail ? { thumbnail: { url: thumbnail } } : {}),
    ...(image ? { image: { url: image } } : {}),
  }
}

/** By a webhook, whose answer n8n waits for only if it is told so. */
function mapHook(node: SourceNode, { report }: MapperTools): MappedMessage {
  const { wait } = readOptionFields(node, 'options')
  if (isTemplate(wait)) throw new Error('an expression says whether it waits for the message')
  const { replyTo: _, ...config } = readContent(node)
  if (config.files !== undefined) {
    const message =
      'n8n fails after it has sent files by a webhook, since it reads an answer that Discord does not give. Perdure goes on.'
    report('parameter', 'parameters.files', message, null)
  }
  return { config, ...(wait === true ? {} : { shape: DONE }) }
}

/** The first version, which has the webhook's URL in the node. */
function mapOldHook(node: SourceNode, { report }: MapperTools): MappedMessage {
  const { text, webhookUri } = node.parameters
  const options = readOptionFields(node, 'options')
  const { embeds, components, allowed_mentions, avatarUrl, attachments, payloadJson, ...rest } = options
  if (payloadJson || attachments)
    throw new Error(
      "it writes Discord's own list of attachments: write a CHAT_MESSAGE with the files in `files`, which makes that list",
    )
  const message = 'The URL of the webhook is a secret: it is not in the node here, but in its credential.'
  if (webhookUri) report('secret', 'parameters.webhookUri', message, null)
  const json = (value: unknown, name: string) => (value ? { [name]: readKnownJson(value, name) } : {})
  return {
    config: {
      text: keepText(text),
      options: {
        ...MENTIONS,
        ...keepFields(Object.fromEntries(Object.entries(rest).filter(([, value]) => value))),
        ...(avatarUrl ? { avatar_url: keepTexts(avatarUrl) } : {}),
        ...json(embeds, 'embeds'),
        ...json(components, 'components'),
        ...json(allowed_mentions, 'allowed_mentions'),
      },
    },
    shape: DONE,
  }
}
