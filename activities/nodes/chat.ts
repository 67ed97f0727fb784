import { createHash } from 'node:crypto'
import * as v from 'valibot'
import type { CredentialType } from '../../db/credentials/types.ts'
import { isObject } from '../../workflows/json.ts'
import {
  type Button,
  buttonsField,
  type ChatOperation,
  MAX_MAIL_BYTES,
} from '../../workflows/nodes/messages.ts'
import { authorizeWith, type HttpPass, listAllowedHosts } from '../credentials/authorize.ts'
import type { Credentials } from '../credentials/credentials.ts'
import { DISCORD, DISCORD_WEBHOOK } from '../send/discord.ts'
import { openFiles, openNamedFiles } from '../send/files.ts'
import { MATTERMOST } from '../send/mattermost.ts'
import { type Handover, type Once, sendOnce } from '../send/once.ts'
import { SLACK } from '../send/slack.ts'
import { TELEGRAM } from '../send/telegram.ts'
import { TWILIO } from '../send/twilio.ts'
import { type ChatMessage, type ChatVendor, openLine } from '../send/vendor.ts'
import { WHATSAPP } from '../send/whatsapp.ts'
import { renderText } from './kit/config.ts'
import { invalidConfig } from './kit/failure.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'

/** How often the bytes of a message's files are held at once: as they are, as parts of a form, and as its body. */
export const HELD_FOR_CHAT = 3

const VENDORS: Partial<Record<CredentialType, ChatVendor>> = {
  SLACK,
  TELEGRAM,
  DISCORD,
  DISCORD_WEBHOOK,
  MATTERMOST,
  WHATSAPP,
  TWILIO,
}

const idText = v.union([
  v.pipe(v.string(), v.trim(), v.nonEmpty(), v.maxLength(200)),
  v.pipe(v.number(), v.integer(), v.transform(String)),
])

/** What comes out the same when it is done once more. All else is done at most once. */
const REPEATABLE: ReadonlySet<ChatOperation> = new Set(['edit', 'delete', 'react', 'action'])

const MAX_BODY = 1024 * 1024

/**
 * CHAT_MESSAGE: does something with a message of a chat, and outputs {messageId, to, response} as the vendor answers,
 * or its whole answer. Retried: 429 and what else says so (after the vendor's delay), and what never reached the
 * vendor. Final: what it refuses (ChatRefused, Http401 and so on), and a config that cannot be sent (InvalidConfig). If
 * it is not known whether a message was taken, it is sent again only where the vendor recognises it, or with `repeat`;
 * else the node fails for good (ChatUncertain). Edits, deletions, reactions and methods that only read are made again.
 */
export const runChatMessage: NodeRunner = async (context) => {
  const { config, credentials } = context
  if (!credentials) throw new Error('only attempts send messages')
  const operation = (config.operation ?? 'send') as ChatOperation
  const method = operation === 'call' ? await renderText(context, 'method') : undefined
  async function findVendor() {
    const opened = await credentials!.open(config.credentialId, 'CHAT')
    const vendor = VENDORS[opened.type]
    if (!vendor) throw invalidConfig('credentialId', `is of the type ${opened.type}, which is no chat`)
    const deed = vendor.deeds[operation]
    if (!deed)
      throw invalidConfig('operation', `must not be ${operation}: ${vendor.name} has nothing like it`)
    return { opened, vendor, deed }
  }
  async function send(handover: Handover) {
    const { opened, vendor, deed } = await findVendor()
    const message = await renderMessage(context, vendor, operation, method)
    const pass = await findPass(opened, credentials!)
    const { body, ...answer } = await deed(message, openLine(context, vendor, opened, pass, handover))
    return config.output === 'answer' ? (body ?? answer.response) : answer
  }
  const { vendor } = await findVendor()
  // It changes nothing there, and its file is that of this attempt.
  if (operation === 'download') return { output: await send(UNNOTED) }
  const repeat =
    config.repeat === true ||
    REPEATABLE.has(operation) ||
    (method !== undefined && vendor.reads?.(method) === true)
  const knownFor = async () => (operation === 'send' ? vendor.knownForMs : 0)
  const once: Once = {
    what: operation === 'send' ? 'The message' : 'The request',
    ...{ uncertain: 'ChatUncertain', repeat, knownFor },
  }
  return { output: await sendOnce(context, once, send) }
}

const UNNOTED: Handover = { begin: async () => {}, refused: () => {} }

/** Those have their secret in the URL, so nothing is added to their requests. */
const IN_URL: ReadonlySet<CredentialType> = new Set(['TELEGRAM', 'DISCORD_WEBHOOK'])

async function findPass(
  opened: Parameters<typeof authorizeWith>[0],
  credentials: Credentials,
): Promise<HttpPass> {
  if (!IN_URL.has(opened.type)) return authorizeWith(opened, credentials)
  return { allowedHosts: listAllowedHosts(opened) ?? [] }
}

async function renderMessage(
  context: NodeContext,
  vendor: ChatVendor,
  operation: ChatOperation,
  method: string | undefined,
): Promise<ChatMessage> {
  const { config, bindings, evaluator, idempotencyKey } = context
  const [to, from, thread, replyTo, message] = await Promise.all(
    ['to', 'from', 'thread', 'replyTo', 'message'].map((key) => renderId(context, key)),
  )
  demandPlace(vendor, operation, { to, message, hasFiles: config.files !== undefined })
  const format = config.format as ChatMessage['format']
  if (format !== undefined && !vendor.formats.includes(format))
    throw invalidConfig('format', `must be ${vendor.formats.join(' or ')} for ${vendor.name}`)
  const options = (await evaluator.render(config.options ?? {}, bindings)) as unknown
  if (!isObject(options)) throw invalidConfig('options', 'must be an object')
  for (const key of vendor.reserved)
    if (Object.hasOwn(options, key)) throw invalidConfig(`options.${key}`, 'is set by the node itself')
  const files = operation === 'call' ? [] : await openFiles(context, 'files', MAX_MAIL_BYTES)
  const named = operation === 'call' ? await openNamedFiles(context, 'files', MAX_MAIL_BYTES) : {}
  const held = [...files, ...Object.values(named)].reduce((sum, { bytes }) => sum + bytes, 0)
  context.share?.shrink(HELD_FOR_CHAT * held)
  if (files.length > vendor.maxFiles)
    throw invalidConfig('files', `must have at most ${vendor.maxFiles} files for ${vendor.name}`)
  const text = config.text === undefined ? undefined : await renderText(context, 'text')
  const most = files.length > 0 ? vendor.maxCaption : vendor.maxText
  if (text !== undefined && [...text].length > most) {
    const where = files.length > 0 ? `${vendor.name} with files` : vendor.name
    throw invalidConfig('text', `must have at most ${most} characters for ${where}`)
  }
  const buttons = await renderButtons(context, vendor)
  const says = files.length > 0 || (text ?? '').trim() !== '' || Object.keys(options).length > 0
  if ((operation === 'send' || (operation === 'edit' && buttons.length === 0)) && !says)
    throw invalidConfig('text', 'must have a value, but it is empty')
  const body = (await evaluator.render(config.body ?? {}, bindings)) as unknown
  if (!isObject(body)) throw invalidConfig('body', 'must be an object')
  if (JSON.stringify(body).length > MAX_BODY)
    throw invalidConfig('body', `must have at most ${MAX_BODY} characters as JSON`)
  const short = async (key: 'reaction' | 'action') => {
    const value = config[key] === undefined ? undefined : await renderText(context, key)
    if (value !== undefined && (value.trim() === '' || value.length > 100))
      throw invalidConfig(key, 'must have 1 to 100 characters')
    return value
  }
  return {
    ...{ to, from, text, format, thread, replyTo, files, named, buttons, options, message, method, body },
    file: operation === 'download' ? await renderText(context, 'file') : undefined,
    reaction: operation === 'react' ? await short('reaction') : undefined,
    remove: config.remove === true,
    action: operation === 'action' ? await short('action') : undefined,
    key: createHash('sha256').update(idempotencyKey).digest('hex').slice(0, 32),
  }
}

/** Throws a NodeFailure without the place that an operation is about. */
function demandPlace(
  vendor: ChatVendor,
  operation: ChatOperation,
  { to, message, hasFiles }: Pick<ChatMessage, 'to' | 'message'> & { hasFiles: boolean },
): void {
  const isPlaced =
    vendor.fixedPlace ||
    operation === 'call' ||
    operation === 'download' ||
    (vendor === TELEGRAM && operation === 'edit') ||
    // Files of its own, which are in no channel.
    (vendor === SLACK && operation === 'send' && hasFiles)
  // Posts and messages with ids of their own need no channel.
  const hasOwnId = operation !== 'send' && operation !== 'action' && NAMED_BY_ID.has(vendor)
  if (to === undefined && !isPlaced && !hasOwnId)
    throw invalidConfig('to', 'must be the id of a channel or a chat')
  if (message === undefined && ['edit', 'delete', 'react'].includes(operation))
    throw invalidConfig('message', 'must be the id of a message')
}

const NAMED_BY_ID: ReadonlySet<ChatVendor> = new Set([MATTERMOST, TWILIO])

async function renderButtons(
  { config, bindings, evaluator }: NodeContext,
  vendor: ChatVendor,
): Promise<Button[][]> {
  if (config.buttons === undefined) return []
  const parsed = v.safeParse(buttonsField, await evaluator.render(config.buttons, bindings))
  if (!parsed.success) throw invalidConfig('buttons', parsed.issues[0].message)
  if (!vendor.buttons) throw invalidConfig('buttons', `must not be there: ${vendor.name} has none`)
  const { rows, perRow } = vendor.buttons
  // A list without rows of its own is a row for each few.
  const given = parsed.output as (Button | Button[])[]
  const flat = given.filter((one): one is Button => !Array.isArray(one))
  const made = flat.length > 0 ? chunk(flat, perRow) : (given as Button[][])
  if (made.length > rows || made.some((row) => row.length > perRow))
    throw invalidConfig('buttons', `must have at most ${rows} rows of ${perRow} buttons for ${vendor.name}`)
  return made
}

function chunk<T>(list: T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, i) => list.slice(i * size, (i + 1) * size))
}

async function renderId(
  { config, bindings, evaluator }: NodeContext,
  key: string,
): Promise<string | undefined> {
  const value = await evaluator.render(config[key] ?? null, bindings)
  if (value === null || value === undefined || value === '') return undefined
  const parsed = v.safeParse(idText, value)
  if (!parsed.success) throw invalidConfig(key, 'must be a text of at most 200 characters, or a whole number')
  return parsed.output
}
