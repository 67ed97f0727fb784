import { createHash } from 'node:crypto'
import * as v from 'valibot'
import type { CredentialType } from '../../db/credentials/types.ts'
import { isObject } from '../../workflows/json.ts'
import { MAX_MAIL_BYTES } from '../../workflows/nodes/messages.ts'
import { authorizeWith, type HttpPass, listAllowedHosts } from '../credentials/authorize.ts'
import type { Credentials } from '../credentials/credentials.ts'
import { DISCORD } from '../send/discord.ts'
import { openFiles } from '../send/files.ts'
import { type Handover, type Once, sendOnce } from '../send/once.ts'
import { SLACK } from '../send/slack.ts'
import { TELEGRAM } from '../send/telegram.ts'
import { type ChatMessage, type ChatVendor, openLine } from '../send/vendor.ts'
import { renderText } from './kit/config.ts'
import { invalidConfig } from './kit/failure.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'

/** How often the bytes of a message's files are held at once: as they are, as parts of a form, and as its body. */
export const HELD_FOR_CHAT = 3

const VENDORS: Partial<Record<CredentialType, ChatVendor>> = { SLACK, TELEGRAM, DISCORD }

const idText = v.union([
  v.pipe(v.string(), v.trim(), v.nonEmpty(), v.maxLength(200)),
  v.pipe(v.number(), v.integer(), v.transform(String)),
])

/**
 * CHAT_MESSAGE: sends a message to a channel, and outputs {messageId, to, response} as the vendor answers. Retried:
 * 429 and what else says so (after the vendor's delay), and what never reached the vendor. Final: what it refuses
 * (ChatRefused, Http401 and so on), and a config that cannot be sent (InvalidConfig). If it is not known whether the
 * message was taken, it is sent again only where the vendor recognises it, or with `repeat`; else the node fails for
 * good (ChatUncertain).
 */
export const runChatMessage: NodeRunner = async (context) => {
  const { config, credentials } = context
  if (!credentials) throw new Error('only attempts send messages')
  async function findVendor() {
    const opened = await credentials!.open(config.credentialId, 'CHAT')
    const vendor = VENDORS[opened.type]
    if (!vendor) throw invalidConfig('credentialId', `is of the type ${opened.type}, which is no chat`)
    return { opened, vendor }
  }
  async function send(handover: Handover) {
    const { opened, vendor } = await findVendor()
    const message = await renderMessage(context, vendor)
    const pass = await findPass(opened, credentials!)
    return vendor.send(message, openLine(context, vendor, opened, pass, handover))
  }
  const knownFor = async () => (await findVendor()).vendor.knownForMs
  const repeat = config.repeat === true
  const once: Once = { what: 'The message', uncertain: 'ChatUncertain', repeat, knownFor }
  return { output: await sendOnce(context, once, send) }
}

/** Telegram has its token in the path, so nothing is added to its requests. */
async function findPass(
  opened: Parameters<typeof authorizeWith>[0],
  credentials: Credentials,
): Promise<HttpPass> {
  if (opened.type !== 'TELEGRAM') return authorizeWith(opened, credentials)
  return { allowedHosts: listAllowedHosts(opened) ?? [] }
}

async function renderMessage(context: NodeContext, vendor: ChatVendor): Promise<ChatMessage> {
  const { config, bindings, evaluator, idempotencyKey } = context
  const [to, thread, replyTo] = await Promise.all(
    ['to', 'thread', 'replyTo'].map((key) => renderId(context, key)),
  )
  if (to === undefined) throw invalidConfig('to', 'must be the id of a channel or a chat')
  const format = config.format as ChatMessage['format']
  if (format !== undefined && !vendor.formats.includes(format))
    throw invalidConfig('format', `must be ${vendor.formats.join(' or ')} for ${vendor.name}`)
  const options = (await evaluator.render(config.options ?? {}, bindings)) as unknown
  if (!isObject(options)) throw invalidConfig('options', 'must be an object')
  for (const key of vendor.reserved)
    if (Object.hasOwn(options, key)) throw invalidConfig(`options.${key}`, 'is set by the node itself')
  const files = await openFiles(context, 'files', MAX_MAIL_BYTES)
  context.share?.shrink(HELD_FOR_CHAT * files.reduce((sum, { bytes }) => sum + bytes, 0))
  if (files.length > vendor.maxFiles)
    throw invalidConfig('files', `must have at most ${vendor.maxFiles} files for ${vendor.name}`)
  const text = config.text === undefined ? undefined : await renderText(context, 'text')
  const most = files.length > 0 ? vendor.maxCaption : vendor.maxText
  if (text !== undefined && [...text].length > most) {
    const where = files.length > 0 ? `${vendor.name} with files` : vendor.name
    throw invalidConfig('text', `must have at most ${most} characters for ${where}`)
  }
  if (files.length === 0 && (text ?? '').trim() === '' && Object.keys(options).length === 0)
    throw invalidConfig('text', 'must have a value, but it is empty')
  const key = createHash('sha256').update(idempotencyKey).digest('hex').slice(0, 32)
  return { to, text, format, thread, replyTo, files, options, key }
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
