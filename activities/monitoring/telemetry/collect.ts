import type { CallTokens, TelemetrySpan } from '../../../db/monitoring/telemetry/spans.ts'
import {
  findName,
  findOperation,
  findTokens,
  MODEL_OPERATIONS,
  type TelemetryOperation,
} from './attributes.ts'
import type { RawSpan, SpanTaker } from './rawspan.ts'
import { findVendor } from './vendors.ts'

/** A span that is kept, before the price of its call is known; `baseUrl` says whose prices count. */
export type CollectedSpan = { span: TelemetrySpan; baseUrl: string | undefined }

/** The result of reading a batch. Spans that are not about a model, agent or tool are neither kept nor rejected. */
export type Collected = { spans: CollectedSpan[]; rejected: number; errorMessage: string }

/** The number of spans of models, agents and tools that are kept of one batch. */
const MOST_KEPT = 10_000

/** Older spans are refused, and so are those that end later than this from now. */
const OLDEST_MS = 30 * 86_400_000
const NEWEST_MS = 3_600_000

/** More tokens than any call can have. */
const MOST_CALL_TOKENS = 1_000_000_000

/** A status or the name of an error with which vendors refuse a call, which then costs nothing. */
const REFUSED =
  /^[45]\d\d$|(RateLimit|Authentication|PermissionDenied|BadRequest|NotFound|Overloaded|InternalServer|ServiceUnavailable)(Error|Exception)?$/

const MOST_REASONS = 10

/** Judges the spans of a batch one by one, as they are read. `now` is when it came. */
export function createCollector(now: number): SpanTaker & { finish(): Collected } {
  const spans = new Map<string, CollectedSpan>()
  let unnamed: TelemetrySpan[] = []
  let rejected = 0
  const reasons = new Map<string, { count: number; first: string }>()

  function reject({ spanId }: RawSpan, reason: string): void {
    rejected++
    const known = reasons.get(reason)
    if (known) known.count++
    else reasons.set(reason, { count: 1, first: isId(spanId, 16) ? spanId : '' })
  }

  return {
    take(raw) {
      const fault = findFault(raw, now)
      if (fault) return reject(raw, fault)
      const operation = findOperation(raw.attributes)
      if (!operation) return
      const key = raw.traceId + raw.spanId
      // One that comes twice in a batch counts once, like one of another batch.
      if (spans.has(key)) return
      const read = readCall(raw, operation)
      if (typeof read === 'string') return reject(raw, read)
      if (spans.size >= MOST_KEPT)
        return reject(raw, `the batch has more than ${MOST_KEPT} spans of models, agents and tools`)
      spans.set(key, read)
      unnamed.push(read.span)
    },
    name(service) {
      for (const span of unnamed) span.service = service
      unnamed = []
    },
    finish() {
      const told = [...reasons].map(
        ([reason, { count, first }]) => `${count} x ${reason}${first ? ` (span ${first})` : ''}`,
      )
      const errorMessage = told.slice(0, MOST_REASONS).join('; ')
      return { spans: [...spans.values()], rejected, errorMessage }
    },
  }
}

/** Why a span is rejected, without anything that its sender has written into it; undefined if it is not. */
function findFault({ traceId, spanId, startMs, endMs }: RawSpan, now: number): string | undefined {
  if (!isId(traceId, 32)) return 'the trace id must have 16 bytes that are not all zero'
  if (!isId(spanId, 16)) return 'the span id must have 8 bytes that are not all zero'
  if (!Number.isFinite(startMs) || !Number.isFinite(endMs)) return 'the times must be whole nanoseconds'
  if (endMs < startMs) return 'the span ends before it starts'
  if (startMs < now - OLDEST_MS) return 'the span started more than 30 days ago'
  if (endMs > now + NEWEST_MS) return 'the span ends more than an hour in the future'
  return undefined
}

const isId = (hex: string, length: number) =>
  hex.length === length && /^[0-9a-f]+$/.test(hex) && !/^0+$/.test(hex)

/** The part of a span that is kept, or the reason why it is rejected. */
function readCall(raw: RawSpan, operation: TelemetryOperation): CollectedSpan | string {
  const { traceId, spanId, startMs, endMs, attributes } = raw
  const error = findName(attributes, 'error')
  const failed = raw.failed || error !== undefined
  const { provider, baseUrl } = findVendor(findName(attributes, 'provider'))
  const isCall = (MODEL_OPERATIONS as readonly string[]).includes(operation)
  const span: TelemetrySpan = {
    traceId,
    spanId,
    startedAt: new Date(startMs),
    durationMs: endMs - startMs,
    failed,
    service: '',
    operation,
    provider,
    model: findName(attributes, 'model') ?? (isCall ? 'unknown' : ''),
    agent: findName(attributes, 'agent') ?? '',
    call: null,
  }
  if (!isCall) return { span: { ...span, provider: span.model === '' ? '' : provider }, baseUrl }
  const tokens = readTokens(attributes)
  if (typeof tokens === 'string') return tokens
  const refused = failed && tokens === null && error !== undefined && REFUSED.test(error)
  span.call = {
    status: refused ? 'REFUSED' : failed && tokens === null ? 'LOST' : 'SUCCESS',
    tokens: refused ? NO_TOKENS : tokens,
    cost: refused ? '0' : null,
    price: null,
  }
  return { span, baseUrl }
}

const NO_TOKENS = { input: 0, output: 0, cached: 0, cacheWrite: 0, reasoning: 0 }

/** The tokens that were reported, null if none were, or why they are wrong. */
function readTokens(attributes: RawSpan['attributes']): CallTokens | null | string {
  const tokens = { ...NO_TOKENS }
  for (const kind of ['input', 'output', 'cached', 'cacheWrite', 'reasoning'] as const) {
    const given = findTokens(attributes, kind) ?? 0
    if (typeof given !== 'number' || !Number.isInteger(given) || given < 0 || given > MOST_CALL_TOKENS)
      return `the tokens must be whole numbers from 0 to ${MOST_CALL_TOKENS}`
    tokens[kind] = given
  }
  if (findTokens(attributes, 'input') === undefined && findTokens(attributes, 'output') === undefined)
    return null
  // By the conventions those of a cache are among the input, and those of the reasoning among the output. Some vendors
  // report them apart, which shows only where they are more.
  if (tokens.cached + tokens.cacheWrite > tokens.input) tokens.input += tokens.cached + tokens.cacheWrite
  if (tokens.reasoning > tokens.output) tokens.output += tokens.reasoning
  if (tokens.input > MOST_CALL_TOKENS || tokens.output > MOST_CALL_TOKENS)
    return `the tokens must be whole numbers from 0 to ${MOST_CALL_TOKENS}`
  return tokens
}
