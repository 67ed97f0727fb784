import type {
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from '@ai-sdk/provider'
import { isDeeper } from '../../db/records/depth.ts'
import { isObject } from '../../workflows/json.ts'
import { createPacer } from '../expressions/pace.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import { describeLarge, type JsonReading, readJsonInTurns } from '../reading/json.ts'
import { brokenOffBy, cutOff, uselessAnswer, type Vendor } from './failures.ts'
import type { ModelReply, ModelUsage, ToolCall } from './model.ts'
import type { AnswerPart } from './prompt.ts'

/** The most characters of text, reasoning and arguments of one answer. */
const MAX_CHARS = 8 * 1024 * 1024
/** The most calls of tools of one answer; how many of them are carried out is the agent's rule. */
const MAX_CALLS = 20_000
/** After this many pieces the reader gives others their turn. */
const PARTS_AT_ONCE = 256
const MAX_ARGUMENTS_CHARS = 1024 * 1024
const MAX_DEPTH = 100

type Metadata = AnswerPart['providerOptions']
type Open = { type: 'text' | 'reasoning'; text: string; providerOptions?: Metadata }

/** What a model has answered, read to its end. */
export type ModelAnswer = {
  text: string
  toolCalls: ToolCall[]
  finish: ModelReply['finish']
  reason?: string
  usage: ModelUsage | null
  /** Warnings to be told with the answer. */
  warnings: string[]
  /** All that was said, in its order and as the vendor's library wants it back. */
  parts: AnswerPart[]
}

/**
 * The bytes that a call to a model holds, at two for each character. Models rarely answer with more; longer answers
 * get more room piece by piece, because calls to models are many and long.
 */
export const HELD_FOR_MODEL = 2 * 1024 * 1024

/**
 * Reads the stream of an answer. `grow` takes more room for it, or refuses it. `said` is told each piece of text as
 * it comes, `began` the first piece of any kind. Throws a NodeFailure for an answer that breaks off, is too long, or
 * that the vendor ends with an error.
 */
export async function readAnswer(
  stream: AsyncIterable<LanguageModelV4StreamPart>,
  {
    vendor,
    began,
    said,
    grow,
  }: {
    vendor: Vendor
    began: () => void
    said: (text: string) => void
    grow: (bytes: number) => boolean
  },
): Promise<ModelAnswer> {
  const answer: ModelAnswer = {
    text: '',
    toolCalls: [],
    finish: 'other',
    usage: null,
    warnings: [],
    parts: [],
  }
  const texts: string[] = []
  const open = new Map<string, Open>()
  let chars = 0
  let calls = 0
  let end: LanguageModelV4FinishReason | undefined
  let held = HELD_FOR_MODEL
  let isUnended = false
  const count = (more: number) => {
    chars += more
    if (chars > MAX_CHARS) throw uselessAnswer(vendor, `is longer than ${MAX_CHARS} characters`, false)
    for (; 2 * chars > held; held += HELD_FOR_MODEL) {
      if (!grow(HELD_FOR_MODEL))
        throw uselessAnswer(vendor, 'is longer than the worker has room for beside others', false)
    }
  }
  const begin = (type: Open['type'], id: string): Open => {
    const key = `${type} ${id}`
    let part = open.get(key)
    if (!part) {
      part = { type, text: '' }
      open.set(key, part)
      answer.parts.push(part)
    }
    return part
  }
  const ids = new Map<string, number>()
  const pace = createPacer()
  let read = 0
  for await (const part of stream) {
    // A large part of an answer that is there at once is read in turns, so that others are not held up. A stream that
    // comes word by word never has to wait for its turn.
    if (++read % PARTS_AT_ONCE === 0) await pace()
    switch (part.type) {
      case 'text-start':
      case 'reasoning-start':
      case 'text-end':
      case 'reasoning-end': {
        const type = part.type.startsWith('text') ? 'text' : 'reasoning'
        addMetadata(begin(type, part.id), part.providerMetadata)
        if (part.type.endsWith('end')) open.delete(`${type} ${part.id}`)
        break
      }
      case 'text-delta':
      case 'reasoning-delta': {
        const type = part.type === 'text-delta' ? 'text' : 'reasoning'
        const piece = begin(type, part.id)
        addMetadata(piece, part.providerMetadata)
        count(part.delta.length)
        piece.text += part.delta
        if (part.delta === '') break
        began()
        if (type === 'reasoning') break
        texts.push(part.delta)
        said(part.delta)
        break
      }
      case 'tool-input-start':
        began()
        if (++calls > MAX_CALLS)
          throw uselessAnswer(vendor, `has more than ${MAX_CALLS} calls of tools`, false)
        break
      case 'tool-call': {
        if (part.providerExecuted) break
        began()
        count(part.input.length + part.toolName.length)
        const { warning, ...read } = await readCall(part.input, pace)
        if (warning)
          answer.warnings.push(`the arguments of ${part.toolName.slice(0, MAX_REASON)}: ${warning}`)
        const call = {
          ...read,
          id: chooseId(part.toolCallId, ids),
          name: part.toolName,
        }
        answer.toolCalls.push(call)
        answer.parts.push({
          type: 'tool-call',
          toolCallId: call.id,
          toolName: call.name,
          input: call.arguments,
          ...(part.providerMetadata ? { providerOptions: part.providerMetadata } : {}),
        })
        break
      }
      case 'finish':
        end = isUnended ? UNENDED : part.finishReason
        answer.usage = readUsage(part.usage)
        // Other protocols report their usage before the end.
        if (isUnnamed(end) && answer.usage && isChatUsage(part.usage)) {
          if (answer.toolCalls.length > 0 || texts.every((piece) => piece.trim() === '')) break
          end = { unified: 'stop', raw: undefined }
          answer.warnings.push(
            'the vendor did not say why the answer ended (finish_reason): it was taken as whole',
          )
        }
        break
      case 'error':
        // The end comes after it, with the usage.
        isUnended ||= lacksReason(part.error)
        if (isUnended) break
        throw judgeAnswerError(vendor, part.error)
    }
  }
  if (!end || isUnnamed(end)) throw cutOff(vendor)
  const finish = readFinish(end)
  if (finish === 'broken') throw brokenOffBy(vendor, {})
  answer.text = texts.join('')
  answer.finish = answer.toolCalls.length > 0 && (finish === 'stop' || finish === 'other') ? 'tools' : finish
  if (finish === 'other') answer.reason = String(end.raw).slice(0, MAX_REASON)
  if (finish === 'length' || finish === 'filter') doubtLastCall(answer)
  return answer
}

const UNENDED: LanguageModelV4FinishReason = { unified: 'interrupted', raw: undefined }

const isUnnamed = ({ unified, raw }: LanguageModelV4FinishReason) =>
  unified === 'interrupted' || (unified === 'other' && raw === undefined)

const lacksReason = (error: unknown) =>
  /ended without a finish reason/.test((error as Error | undefined)?.message ?? '')

/** What an error that a vendor's library has thrown, or found in the answer, means for the node. */
export function judgeAnswerError(vendor: Vendor, error: unknown): unknown {
  if (error instanceof NodeFailure) return error
  const name = error instanceof Error ? error.name : ''
  if (/^AI_(?:Invalid(?:Prompt|Argument)|UnsupportedFunctionality|NoSuchModel)/.test(name))
    return new NodeFailure(`${vendor.name} cannot be asked this: ${(error as Error).message}`, {
      type: 'ModelRefused',
    })
  if (lacksReason(error)) return cutOff(vendor)
  const unreadable = /^AI_(?:JSONParse|TypeValidation|InvalidResponseData|EmptyResponseBody)/.test(name)
  if (
    unreadable ||
    /Expected a normalized|^Unsupported (?:chunk|delta)/.test((error as Error)?.message ?? '')
  )
    return uselessAnswer(vendor, 'is not in the form of its protocol')
  // Others are faults of ours.
  return error instanceof Error && !name.startsWith('AI_') ? error : brokenOffBy(vendor, error)
}

function addMetadata(part: Open, metadata: Metadata): void {
  for (const [provider, values] of Object.entries(metadata ?? {}))
    part.providerOptions = {
      ...part.providerOptions,
      [provider]: { ...part.providerOptions?.[provider], ...values },
    }
}

const FINISHES: Partial<Record<LanguageModelV4FinishReason['unified'], ModelReply['finish'] | 'broken'>> = {
  stop: 'stop',
  length: 'length',
  'content-filter': 'filter',
  'tool-calls': 'tools',
  error: 'broken',
}

/** How servers name the end of an answer beside the names of their protocol. */
const OWN_FINISHES: [RegExp, ModelReply['finish'] | 'broken'][] = [
  [/error|abort|cancel|fail|insufficient|timeout|interrupt|malformed/i, 'broken'],
  [/length|max_?tokens|token_limit/i, 'length'],
  [/filter|safety|sensitive|moderation|refus|recitation|prohibited|blocklist/i, 'filter'],
  [/^(?:eos|eos_token|end|end_turn|end_of_text|complete|completed|done|stop_\w{1,20})$/i, 'stop'],
]

const MAX_REASON = 100

function readFinish({ unified, raw }: LanguageModelV4FinishReason): ModelReply['finish'] | 'broken' {
  const known = FINISHES[unified]
  if (known) return known
  const said = String(raw).slice(0, MAX_REASON)
  return OWN_FINISHES.find(([name]) => name.test(said))?.[1] ?? 'other'
}

/** If an answer was cut off at a call, the arguments of that call may be missing: without arguments it is invalid. */
function doubtLastCall({ toolCalls }: ModelAnswer): void {
  const last = toolCalls.at(-1)
  if (last && Object.keys(last.arguments).length === 0) last.invalid ??= ''
}

/** By what names vendors report the tokens of the input and of the output; of the latter one is enough. */
const REPORTED: [string, string[]][] = [
  ['prompt_tokens', ['completion_tokens']],
  ['input_tokens', ['output_tokens']],
  ['promptTokenCount', ['candidatesTokenCount', 'thoughtsTokenCount']],
]

const isChatUsage = ({ raw }: LanguageModelV4Usage) => isObject(raw) && 'completion_tokens' in raw

/** Whether a vendor has reported both counts: libraries take what was not sent for 0. */
function isReported({ raw, inputTokens, outputTokens }: LanguageModelV4Usage): boolean {
  // No call takes nothing at all.
  if (!inputTokens.total && !outputTokens.total) return false
  if (!isObject(raw)) return true
  return REPORTED.some(
    ([input, outputs]) =>
      typeof raw[input] === 'number' && outputs.some((output) => typeof raw[output] === 'number'),
  )
}

/** Null if the vendor has reported none, or a part. Libraries may give parts that are more than their whole. */
function readUsage(usage: LanguageModelV4Usage): ModelUsage | null {
  const { inputTokens, outputTokens } = usage
  if (inputTokens.total === undefined || outputTokens.total === undefined || !isReported(usage)) return null
  const count = (value: number | undefined, most: number) =>
    Math.min(Number.isFinite(value) ? Math.max(0, Math.round(value!)) : 0, most)
  const input = count(inputTokens.total, Number.MAX_SAFE_INTEGER)
  const output = count(outputTokens.total, Number.MAX_SAFE_INTEGER)
  const cached = count(inputTokens.cacheRead, input)
  return {
    input,
    output,
    cached,
    cacheWrite: count(inputTokens.cacheWrite, input - cached),
    reasoning: count(outputTokens.reasoning, output),
  }
}

async function readCall(
  text: string,
  pace: ReturnType<typeof createPacer>,
): Promise<Pick<ToolCall, 'arguments' | 'invalid'> & { warning?: string | undefined }> {
  if (text.trim() === '') return { arguments: {} }
  const read = await readLongJson(text, pace)
  return read && isObject(read.value)
    ? { arguments: read.value, warning: describeLarge(read) }
    : { arguments: {}, invalid: text.slice(0, MAX_ARGUMENTS_CHARS) }
}

/** Undefined for what is too long, too deep, or no JSON. */
async function readLongJson(
  text: string,
  pace: ReturnType<typeof createPacer>,
): Promise<JsonReading | undefined> {
  if (text.length > MAX_ARGUMENTS_CHARS || isDeeper(text, MAX_DEPTH)) return undefined
  return readJsonInTurns(text, pace).catch(() => undefined)
}

/** Each call needs an id of its own, by which its result is found. `taken` are those so far, each with its last number. */
function chooseId(given: string, taken: Map<string, number>): string {
  const stem = given === '' ? 'call' : given
  const first = stem === 'call' ? 'call-1' : stem
  let n = taken.get(stem) ?? 1
  let id = n === 1 ? first : `${stem}-${n}`
  while (taken.has(id)) id = `${stem}-${++n}`
  taken.set(id, taken.get(id) ?? 1)
  taken.set(stem, n)
  return id
}
