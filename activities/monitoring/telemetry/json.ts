import type { Work } from '../../../workflows/turns.ts'
import { KEPT_ATTRIBUTES } from './attributes.ts'
import { createJsonReader, type JsonReader, type JsonScalar } from './jsontext.ts'
import {
  type AttributeValue,
  createRawSpan,
  MalformedBatch,
  readServiceName,
  type SpanTaker,
} from './rawspan.ts'

/**
 * Reads an ExportTraceServiceRequest in OTLP's JSON: ids are hex, 64-bit integers texts or numbers, enums numbers or
 * names; unknown fields are skipped. Throws MalformedBatch.
 */
export function* readJsonSpans(text: string, taker: SpanTaker): Work<void> {
  const json = createJsonReader(text)
  // Null means a message that is not there, which only a field can do.
  if (/^[ \t\r\n]*null/.test(text)) throw new MalformedBatch('The body must be an object')
  yield* json.object('The body', function* (key) {
    if (key !== 'resourceSpans') return yield* json.skip()
    yield* json.array(key, () => readResourceSpans(json, taker))
  })
  json.end()
}

function* readResourceSpans(json: JsonReader, taker: SpanTaker): Work<void> {
  const resource = new Map<string, AttributeValue>()
  yield* json.object('resourceSpans[]', function* (key) {
    if (key === 'resource') {
      yield* json.object(key, (inner) =>
        inner === 'attributes' ? readAttributes(json, resource) : json.skip(),
      )
    } else if (key === 'scopeSpans') {
      yield* json.array(key, () =>
        json.object('scopeSpans[]', (inner) =>
          inner === 'spans' ? json.array(inner, () => readSpan(json, taker)) : json.skip(),
        ),
      )
    } else yield* json.skip()
  })
  taker.name(readServiceName(resource))
}

function* readSpan(json: JsonReader, taker: SpanTaker): Work<void> {
  const span = createRawSpan()
  yield* json.object('spans[]', function* (key) {
    if (key === 'traceId' || key === 'spanId') span[key] = ((yield* json.scalar())?.text ?? '').toLowerCase()
    else if (key === 'startTimeUnixNano') span.startMs = toMs(yield* json.scalar())
    else if (key === 'endTimeUnixNano') span.endMs = toMs(yield* json.scalar())
    else if (key === 'attributes') yield* readAttributes(json, span.attributes)
    else if (key === 'status') {
      yield* json.object(key, function* (inner) {
        if (inner !== 'code') return yield* json.skip()
        span.failed = ['2', 'STATUS_CODE_ERROR'].includes((yield* json.scalar())?.text ?? '')
      })
    } else yield* json.skip()
  })
  taker.take(span)
}

function* readAttributes(json: JsonReader, attributes: Map<string, AttributeValue>): Work<void> {
  yield* json.array('attributes', function* () {
    let name = ''
    let value: AttributeValue | undefined
    yield* json.object('attributes[]', function* (key) {
      if (key === 'key') name = (yield* json.scalar())?.text ?? ''
      else if (key === 'value') {
        yield* json.object(key, function* (kind) {
          const given = yield* json.scalar()
          if (given) value = readValue(kind, given) ?? value
        })
      } else yield* json.skip()
    })
    if (value !== undefined && KEPT_ATTRIBUTES.has(name)) attributes.set(name, value)
  })
}

function readValue(kind: string, { type, text }: JsonScalar): AttributeValue | undefined {
  if (type === 'null') return undefined
  if (kind === 'stringValue') return type === 'string' ? text : undefined
  if (kind === 'boolValue') return type === 'boolean' ? text === 'true' : undefined
  if (kind === 'intValue' || kind === 'doubleValue') return text === '' ? Number.NaN : Number(text)
  return undefined
}

/** Nanoseconds as milliseconds; NaN if they are no number. */
function toMs(given: JsonScalar | undefined): number {
  if (!given || given.type === 'null') return 0
  if (/^\d{1,20}$/.test(given.text)) return Number(BigInt(given.text) / 1_000_000n)
  return given.text === '' ? Number.NaN : Math.floor(Number(given.text) / 1e6)
}
