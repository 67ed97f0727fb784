import { createExactMask, type ExactMask } from '../../db/redaction/exact.ts'
import { invalidConfig, NodeFailure } from '../nodes/kit/failure.ts'
import type { NodeContext } from '../nodes/kit/node.ts'
import { type ModelAnswer, readAnswer } from './answer.ts'
import { startDemo } from './demo.ts'
import { judgeAnswerError } from './endings.ts'
import { nameVendor, saidNothing, uselessAnswer, type Vendor } from './failures.ts'
import { findJson } from './jsontext.ts'
import { openModelLine } from './line.ts'
import type { ModelReply, ModelRequest } from './model.ts'
import { openNote } from './note.ts'
import type { AnswerPart } from './prompt.ts'
import { startAnswer } from './providers.ts'

/** What asking a model needs of its surroundings. */
export type ModelContext = Pick<
  NodeContext,
  'credentials' | 'http' | 'meter' | 'models' | 'reply' | 'share' | 'signal'
> &
  Partial<Pick<NodeContext, 'notes'>>

export type ModelAsk = {
  /** The id of a credential that is for models; its type is the provider. */
  credentialId: unknown
  /** The vendor's name of the model; of Azure that of the deployment. */
  model: string
  request: ModelRequest
  /** Told each piece of text as it comes. */
  onText?: (text: string) => void
  /** With `maxCost` (US dollars) the model must have a known price. Spending is watched by the caller. */
  budget?: { maxCost?: number | undefined } | undefined
}

/** How long a vendor may send nothing, if the process has no other limit. */
const SILENCE_MS = 30_000
const MAX_NAME = 200

/**
 * Asks a model once: one request, never repeated here, its answer read as it comes. The text goes to `onText` and to
 * `context.reply` as it comes: what is not meant for the chat's reader is asked with a context without it. The call is
 * noted before it is sent, and its end whatever becomes of it. The reply has no secret that the node has opened.
 *
 * Throws a NodeFailure. Final: ModelRefused (the vendor refuses the request, or its filter the whole answer),
 * ModelUnpriced, InvalidConfig, those of credentials, HttpRefusedAddress and HttpRefusedHost. Retryable:
 * ModelUnavailable (408, 409, 425, 429, 5xx, after Retry-After; network errors, silence, an answer that breaks off) and
 * ModelAnswer (an answer that is not in the vendor's protocol, or empty; final if it is too long, or if all its tokens
 * went into reasoning). Throws the signal's reason once that is aborted.
 */
export async function askModel(context: ModelContext, ask: ModelAsk): Promise<ModelReply> {
  const { credentials, signal } = context
  if (!credentials) throw invalidConfig('credentialId', 'can only be used by an attempt of its own')
  const { model, request } = ask
  if (typeof model !== 'string' || model.trim() === '' || model.length > MAX_NAME)
    throw invalidConfig('model', `must be the name of a model, of at most ${MAX_NAME} characters`)
  const opened = await credentials.open(ask.credentialId, 'LLM')
  const provider = opened.type
  const { baseUrl } = opened.data
  const called = { provider, model, ...(typeof baseUrl === 'string' ? { baseUrl } : {}) }
  await demandPrice(context, called, ask)
  const note = openNote(context, { ...called, credentialId: opened.id })
  const vendor = nameVendor(opened, credentials.secrets())
  const silenceMs = context.models?.silenceMs ?? SILENCE_MS
  const line =
    provider === 'DEMO' ? undefined : await openModelLine(context, opened, { vendor, note, silenceMs })
  let answer: ModelAnswer | undefined
  let cost: number | null = null
  try {
    const stream = line
      ? await startAnswer(opened, model, request, line, signal)
      : startDemo(model, request, signal)
    if (!line) await note.begin()
    answer = await readAnswer(stream, {
      vendor,
      began: note.first,
      grow: (bytes) => context.share?.grow(bytes) ?? true,
      said(text) {
        context.reply?.write(text)
        ask.onText?.(text)
      },
    })
    note.succeed(answer.usage)
  } catch (error) {
    signal.throwIfAborted()
    const fault = line?.fault()
    throw fault === undefined ? judgeAnswerError(vendor, error) : fault
  } finally {
    line?.close()
    cost = await note.end()
  }
  demandContent(vendor, answer)
  const mask = createExactMask(credentials.secrets())
  const found = request.schema ? findJson(answer.text) : undefined
  const warnings = found?.warning
    ? [...answer.warnings, `the JSON of the answer: ${found.warning}`]
    : answer.warnings
  if (warnings.length > 0)
    context.notes?.add({
      warnings: warnings.map((one) => ({ path: 'config.model', message: mask.text(one) })),
    })
  return writeReply(provider, answer, { cost, mask, object: found?.value })
}

async function demandPrice(
  { meter }: ModelContext,
  { provider, model, baseUrl }: { provider: string; model: string; baseUrl?: string },
  { budget }: ModelAsk,
): Promise<void> {
  if (budget?.maxCost === undefined) return
  if (await meter?.isPriced(provider, model, baseUrl)) return
  throw new NodeFailure(
    `maxCost needs the price of the model ${model} of ${provider}, which is not known: set a price for your team, or leave maxCost out`,
    { type: 'ModelUnpriced' },
  )
}

function demandContent(vendor: Vendor, { text, toolCalls, finish }: ModelAnswer): void {
  if (text.trim() !== '' || toolCalls.length > 0) return
  if (finish === 'filter')
    throw new NodeFailure(`${vendor.name} has filtered the whole answer`, { type: 'ModelRefused' })
  if (finish === 'length') throw saidNothing(vendor)
  throw uselessAnswer(vendor, 'is empty')
}

/**
 * The reply without the secrets that a vendor may send back: later code cuts and quotes the reply, and could hide
 * only whole secrets.
 */
function writeReply(
  provider: string,
  { finish, usage, ...said }: ModelAnswer,
  { cost, mask, object: given }: { cost: number | null; mask: ExactMask; object: unknown },
): ModelReply {
  const object = given === undefined ? undefined : mask.value(given)
  const { text, parts, reason, ...clean } = mask.value({
    text: said.text,
    // What a tool is called with is in the message's `toolCalls`.
    parts: said.parts.some(isSigned) ? said.parts.map(withoutInput) : [],
    toolCalls: said.toolCalls,
    reason: said.reason,
  })
  // Text that is not JSON may have been cut, and a secret with it.
  const toolCalls = clean.toolCalls.map((call) =>
    call.invalid === undefined ? call : { ...call, invalid: mask.start(call.invalid) },
  )
  return {
    text,
    toolCalls,
    ...(object === undefined ? {} : { object }),
    finish,
    ...(reason === undefined ? {} : { reason }),
    usage,
    cost,
    message: {
      role: 'assistant',
      content: text,
      ...(toolCalls.length > 0 ? { toolCalls } : {}),
      ...(parts.length > 0 ? { parts: { provider, value: parts } } : {}),
    },
  }
}

/** Parts that say more than the text and the calls do. The ids of what a vendor does not store are of no use. */
function isSigned(part: AnswerPart): boolean {
  const values = Object.values(part.providerOptions ?? {})
  const keys = values.flatMap((one) => Object.keys(one ?? {}))
  return part.type === 'reasoning' || keys.some((key) => key !== 'itemId' && key !== 'annotations')
}

const withoutInput = (part: AnswerPart) => (part.type === 'tool-call' ? { ...part, input: {} } : part)
