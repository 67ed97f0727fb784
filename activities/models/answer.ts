import type { LanguageModelV4FinishReason, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { isDeeper } from '../../db/executions/records/depth.ts'
import { isObject } from '../../workflows/json.ts'
import { createPacer } from '../expressions/pace.ts'
import { describeLarge, type JsonReading, readJsonInTurns } from '../reading/json.ts'
import { isUnnamed, judgeAnswerError, lacksReason, MAX_REASON, readFinish, UNENDED } from './endings.ts'
import { brokenOffBy, cutOff, uselessAnswer, type Vendor } from './failures.ts'
import type { ModelReply, ModelUsage, ToolCall } from './model.ts'
import type { AnswerPart } from './prompt.ts'
import { isChatUsage, readUsage } from './reported.ts'

/** The most characters of text, reasoning and arguments of one answer. */
const MAX_CHARS = 8 * 1024 * 1024
/** The most calls of tools of one answer; how many of them are carried out is the agent's rule. */
const MAX_CALLS = 20_000
/** After this many pieces the reader gives others their turn. */
const PARTS_AT_ONCE = 256
const MAX_ARGUMENTS_CHARS = 1024 * 1024
const MAX_DEPTH = 100

type Pace = ReturnType<typeof createPacer>
type Part<T extends LanguageModelV4StreamPart['type']> = Extract<LanguageModelV4StreamPart, { type: T }>
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

/** What an answer is read for, and who is told of it while it comes. */
type Listener = {
  vendor: Vendor
  /** Is called at each piece that says something. */
  began: () => void
  /** Is told each piece of text. */
  said: (text: string) => void
  /** Takes more room, in bytes; false: it is refused. */
  grow: (bytes: number) => boolean
}

/** An answer that is being read. */
type Reading = {
  listener: Listener
  answer: ModelAnswer
  texts: string[]
  /** The parts of the answer that go on, by type and id. */
  open: Map<string, Open>
  /** How many characters and calls of tools it has so far. */
  chars: number
  calls: number
  /** For how many bytes there is room. */
  held: number
  /** The ids of its calls, each with its last number. */
  ids: Map<string, number>
  pace: Pace
  end: LanguageModelV4FinishReason | undefined
  /** The vendor's library has said that the end of the answer has no reason. */
  isUnended: boolean
}

/**
 * Reads the stream of an answer. Throws a NodeFailure for an answer that breaks off, is too long, or that the vendor ends
 * with an error.
 */
export async function readAnswer(
  stream: AsyncIterable<LanguageModelV4StreamPart>,
  listener: Listener,
): Promise<ModelAnswer> {
  const reading: Reading = {
    listener,
    answer: { text: '', toolCalls: [], finish: 'other', usage: null, warnings: [], parts: [] },
    texts: [],
    open: new Map(),
    chars: 0,
    calls: 0,
    held: HELD_FOR_MODEL,
    ids: new Map(),
    pace: createPacer(),
    end: undefined,
    isUnended: false,
  }
  let read = 0
  for await (const part of stream) {
    // A large part of an answer that is there at once is read in turns, so that others are not held up. A stream that
    // comes word by word never has to wait for its turn.
    if (++read % PARTS_AT_ONCE === 0) await reading.pace()
    switch (part.type) {
      case 'text-start':
      case 'reasoning-start':
      case 'text-end':
      case 'reasoning-end':
        takeEdge(reading, part)
        break
      case 'text-delta':
      case 'reasoning-delta':
        takeDelta(reading, part)
        break
      case 'tool-input-start':
        takeCallStart(reading)
        break
      case 'tool-call':
        if (!part.providerExecuted) await takeCall(reading, part)
        break
      case 'finish':
        takeFinish(reading, part)
        break
      case 'error':
        takeError(reading, part.error)
    }
  }
  return endAnswer(reading)
}

function endAnswer({ listener: { vendor }, answer, texts, end }: Reading): ModelAnswer {
  if (!end || isUnnamed(end)) throw cutOff(vendor)
  const finish = readFinish(end)
  if (finish === 'broken') throw brokenOffBy(vendor, {})
  answer.text = texts.join('')
  answer.finish = answer.toolCalls.length > 0 && (finish === 'stop' || finish === 'other') ? 'tools' : finish
  if (finish === 'other') answer.reason = String(end.raw).slice(0, MAX_REASON)
  if (finish === 'length' || finish === 'filter') doubtLastCall(answer)
  return answer
}

/** The part of the answer that goes on under the id, or a new one. */
function findOpen({ open, answer }: Reading, type: Open['type'], id: string): Open {
  const key = `${type} ${id}`
  let part = open.get(key)
  if (!part) {
    part = { type, text: '' }
    open.set(key, part)
    answer.parts.push(part)
  }
  return part
}

function countChars(reading: Reading, more: number): void {
  const { vendor, grow } = reading.listener
  reading.chars += more
  if (reading.chars > MAX_CHARS) throw uselessAnswer(vendor, `is longer than ${MAX_CHARS} characters`, false)
  for (; 2 * reading.chars > reading.held; reading.held += HELD_FOR_MODEL) {
    if (!grow(HELD_FOR_MODEL))
      throw uselessAnswer(vendor, 'is longer than the worker has room for beside others', false)
  }
}

function takeEdge(
  reading: Reading,
  part: Part<'text-start' | 'reasoning-start' | 'text-end' | 'reasoning-end'>,
): void {
  const type = part.type.startsWith('text') ? 'text' : 'reasoning'
  addMetadata(findOpen(reading, type, part.id), part.providerMetadata)
  if (part.type.endsWith('end')) reading.open.delete(`${type} ${part.id}`)
}

function takeDelta(reading: Reading, part: Part<'text-delta' | 'reasoning-delta'>): void {
  const { delta } = part
  const type = part.type === 'text-delta' ? 'text' : 'reasoning'
  const piece = findOpen(reading, type, part.id)
  addMetadata(piece, part.providerMetadata)
  countChars(reading, delta.length)
  piece.text += delta
  if (delta === '') return
  reading.listener.began()
  if (type === 'reasoning') return
  reading.texts.push(delta)
  reading.listener.said(delta)
}

function takeCallStart(reading: Reading): void {
  reading.listener.began()
  if (++reading.calls > MAX_CALLS)
    throw uselessAnswer(reading.listener.vendor, `has more than ${MAX_CALLS} calls of tools`, false)
}

async function takeCall(reading: Reading, part: Part<'tool-call'>): Promise<void> {
  const { listener, answer, ids, pace } = reading
  const { toolName: name, input, toolCallId, providerMetadata } = part
  listener.began()
  countChars(reading, input.length + name.length)
  const { warning, ...read } = await readCall(input, pace)
  if (warning) answer.warnings.push(`the arguments of ${name.slice(0, MAX_REASON)}: ${warning}`)
  const call = { ...read, id: chooseId(toolCallId, ids), name }
  answer.toolCalls.push(call)
  answer.parts.push({
    type: 'tool-call',
    toolCallId: call.id,
    toolName: name,
    input: call.arguments,
    ...(providerMetadata ? { providerOptions: providerMetadata } : {}),
  })
}

function takeFinish(reading: Reading, { finishReason, usage }: Part<'finish'>): void {
  const { answer, texts } = reading
  reading.end = reading.isUnended ? UNENDED : finishReason
  answer.usage = readUsage(usage)
  // Other protocols report their usage before the end.
  if (!isUnnamed(reading.end) || !answer.usage || !isChatUsage(usage)) return
  if (answer.toolCalls.length > 0 || texts.every((piece) => piece.trim() === '')) return
  reading.end = { unified: 'stop', raw: undefined }
  answer.warnings.push('the vendor did not say why the answer ended (finish_reason): it was taken as whole')
}

function takeError(reading: Reading, error: unknown): void {
  // The end comes after it, with the usage.
  reading.isUnended ||= lacksReason(error)
  if (!reading.isUnended) throw judgeAnswerError(reading.listener.vendor, error)
}

function addMetadata(part: Open, metadata: Metadata): void {
  for (const [provider, values] of Object.entries(metadata ?? {}))
    part.providerOptions = {
      ...part.providerOptions,
      [provider]: { ...part.providerOptions?.[provider], ...values },
    }
}

/** If an answer was cut off at a call, the arguments of that call may be missing: without arguments it is invalid. */
function doubtLastCall({ toolCalls }: ModelAnswer): void {
  const last = toolCalls.at(-1)
  if (last && Object.keys(last.arguments).length === 0) last.invalid ??= ''
}

async function readCall(
  text: string,
  pace: Pace,
): Promise<Pick<ToolCall, 'arguments' | 'invalid'> & { warning?: string | undefined }> {
  if (text.trim() === '') return { arguments: {} }
  const read = await readLongJson(text, pace)
  return read && isObject(read.value)
    ? { arguments: read.value, warning: describeLarge(read) }
    : { arguments: {}, invalid: text.slice(0, MAX_ARGUMENTS_CHARS) }
}

/** Undefined for what is too long, too deep, or no JSON. */
async function readLongJson(text: string, pace: Pace): Promise<JsonReading | undefined> {
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
