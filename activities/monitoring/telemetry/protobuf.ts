import protobuf from 'protobufjs/minimal.js'
import { TURN_UNITS, type Work } from '../../../workflows/turns.ts'
import { KEPT_ATTRIBUTES } from './attributes.ts'
import {
  type AttributeValue,
  createRawSpan,
  createToll,
  MalformedBatch,
  MOST_KEY,
  MOST_TEXT,
  type RawSpan,
  readServiceName,
  type SpanTaker,
} from './rawspan.ts'

/** A part of the body: a message, or a field's bytes. */
type Part = { start: number; end: number }

/** The wire types of protobuf. Groups, which no message of OTLP has, are refused. */
const VARINT = 0
const FIXED64 = 1
const BYTES = 2
const FIXED32 = 5

/**
 * Reads an ExportTraceServiceRequest in protobuf, by the fields' numbers in opentelemetry-proto. Fields that are not
 * needed are skipped by their length, so that nothing is as deep as the sender likes. Throws MalformedBatch.
 */
export function* readProtobufSpans(bytes: Buffer, taker: SpanTaker): Work<void> {
  const body = createProtobufReader(bytes)
  try {
    for (const [field, part] of body.fields({ start: 0, end: bytes.length })) {
      yield* body.pay()
      if (field === 1 && part) yield* readResourceSpans(body, part, taker)
    }
  } catch (error) {
    if (error instanceof MalformedBatch) throw error
    throw new MalformedBatch('The body is no valid protobuf of an ExportTraceServiceRequest')
  }
}

type Body = ReturnType<typeof createProtobufReader>

function* readResourceSpans(body: Body, message: Part, taker: SpanTaker): Work<void> {
  const resource = new Map<string, AttributeValue>()
  for (const [field, part] of body.fields(message)) {
    yield* body.pay()
    if (!part) continue
    if (field === 1) {
      for (const [inner, attribute] of body.fields(part)) {
        yield* body.pay()
        if (inner === 1 && attribute) readAttribute(body, attribute, resource)
      }
    } else if (field === 2) {
      for (const [inner, span] of body.fields(part)) {
        yield* body.pay()
        if (inner === 2 && span) taker.take(yield* readSpan(body, span))
      }
    }
  }
  taker.name(readServiceName(resource))
}

function* readSpan(body: Body, message: Part): Work<RawSpan> {
  const span = createRawSpan()
  for (const [field, part, value] of body.fields(message)) {
    yield* body.pay()
    if (field === 1 && part) span.traceId = body.hex(part)
    else if (field === 2 && part) span.spanId = body.hex(part)
    else if (field === 7) span.startMs = value
    else if (field === 8) span.endMs = value
    else if (field === 9 && part) readAttribute(body, part, span.attributes)
    else if (field === 15 && part) {
      for (const [inner, , code] of body.fields(part)) {
        yield* body.pay()
        if (inner === 3) span.failed = code === 2
      }
    }
  }
  return span
}

function readAttribute(body: Body, message: Part, attributes: Map<string, AttributeValue>): void {
  let key = ''
  let given: Part | undefined
  for (const [field, part] of body.fields(message)) {
    if (field === 1 && part) key = part.end - part.start > MOST_KEY ? '' : body.text(part)
    if (field === 2) given = part
  }
  if (!given || !KEPT_ATTRIBUTES.has(key)) return
  for (const [field, part, value] of body.fields(given)) {
    if (field === 1 && part) attributes.set(key, body.text(part).slice(0, MOST_TEXT))
    else if (field === 2) attributes.set(key, value !== 0)
    else if (field === 3 || field === 4) attributes.set(key, value)
  }
}

/** A text of MOST_TEXT UTF-16 units has no more bytes. */
const MOST_TEXT_BYTES = 4 * MOST_TEXT

function createProtobufReader(bytes: Buffer) {
  const reader = protobuf.Reader.create(bytes)
  const toll = createToll(TURN_UNITS)
  /** Where the last field began: what is in it is still to be read. */
  let begun = 0

  /** The fields of a message: a part for bytes, else a number. Fixed 64-bit ones are times: milliseconds of nanoseconds. */
  function* fields({ start, end }: Part): Generator<[field: number, part: Part | undefined, value: number]> {
    let at = start
    while (at < end) {
      reader.pos = at
      begun = at
      const tag = reader.uint32()
      const [field, type] = [tag >>> 3, tag & 7]
      let part: Part | undefined
      let value = 0
      if (type === VARINT) value = Number(String(reader.int64()))
      else if (type === FIXED64) {
        value = readFixed(reader.pos, field)
        reader.skip(8)
      } else if (type === FIXED32) reader.skip(4)
      else if (type === BYTES) {
        const length = reader.uint32()
        part = { start: reader.pos, end: reader.pos + length }
        reader.pos = part.end
      }
      at = reader.pos
      if (field === 0 || ![VARINT, FIXED64, BYTES, FIXED32].includes(type) || at > end)
        throw new MalformedBatch('The body is no valid protobuf of an ExportTraceServiceRequest')
      yield [field, part, value]
    }
  }

  /** The only fixed 64-bit fields are times, and the double of an attribute, which has the number 4. */
  function readFixed(at: number, field: number): number {
    if (field === 4) return bytes.readDoubleLE(at)
    return Number(bytes.readBigUInt64LE(at) / 1_000_000n)
  }

  return {
    fields,
    *pay(): Work<void> {
      const units = toll(begun)
      if (units > 0) yield units
    },
    text({ start, end }: Part): string {
      return bytes.toString('utf8', start, Math.min(end, start + MOST_TEXT_BYTES))
    },
    /** Long ones are cut: they are no ids anyway. */
    hex({ start, end }: Part): string {
      return bytes.toString('hex', start, Math.min(end, start + 17))
    },
  }
}
