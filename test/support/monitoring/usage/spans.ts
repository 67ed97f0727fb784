import { randomBytes } from 'node:crypto'
import protobuf from 'protobufjs/minimal.js'

/** A span of a test. Attributes are texts, numbers or booleans; `raw` are fields of the JSON that replace others. */
export type SentSpan = {
  traceId?: string
  spanId?: string
  start?: number
  end?: number
  attributes?: Record<string, string | number | boolean>
  /** 2 is an error. */
  status?: number
  raw?: Record<string, unknown>
}

export const newSpanId = () => randomBytes(8).toString('hex')
const newTraceId = () => randomBytes(16).toString('hex')

/** The attributes of a call to a model. */
export const CHAT = {
  'gen_ai.operation.name': 'chat',
  'gen_ai.provider.name': 'openai',
  'gen_ai.request.model': 'gpt-4o',
  'gen_ai.usage.input_tokens': 1_000,
  'gen_ai.usage.output_tokens': 100,
}

/** Gives a span what it lacks: ids, and times a minute ago. */
export function fillSpan(span: SentSpan) {
  const end = span.end ?? (span.start === undefined ? Date.now() - 60_000 : span.start + 250)
  return {
    traceId: newTraceId(),
    spanId: newSpanId(),
    start: end - 250,
    status: 0,
    attributes: CHAT as NonNullable<SentSpan['attributes']>,
    raw: {},
    ...span,
    end,
  }
}

/** A batch in OTLP's JSON. */
export function toJson(spans: SentSpan[], service = 'a service') {
  return {
    resourceSpans: [
      {
        resource: { attributes: listAttributes({ 'service.name': service }) },
        scopeSpans: [
          {
            scope: { name: 'test' },
            spans: spans.map(fillSpan).map(({ traceId, spanId, start, end, status, attributes, raw }) => ({
              traceId,
              spanId,
              name: 'a span',
              kind: 3,
              startTimeUnixNano: `${start}000000`,
              endTimeUnixNano: `${end}000000`,
              attributes: listAttributes(attributes),
              status: { code: status },
              ...raw,
            })),
          },
        ],
      },
    ],
  }
}

export function listAttributes(attributes: NonNullable<SentSpan['attributes']>) {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: toValue(value) }))
}

function toValue(value: string | number | boolean) {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value }
}

/** The same batch in protobuf. */
export function toProtobuf(spans: SentSpan[], service = 'a service'): Buffer {
  const writer = protobuf.Writer.create()
  writer.uint32(10).fork()
  writer.uint32(10).fork()
  writeAttribute(writer, 1, 'service.name', service)
  writer.ldelim()
  writer.uint32(18).fork()
  for (const { traceId, spanId, start, end, status, attributes } of spans.map(fillSpan)) {
    writer.uint32(18).fork()
    writer.uint32(10).bytes(Buffer.from(traceId, 'hex')).uint32(18).bytes(Buffer.from(spanId, 'hex'))
    writer.uint32(42).string('a span').uint32(48).int32(3)
    writeTime(writer, 57, start)
    writeTime(writer, 65, end)
    for (const [key, value] of Object.entries(attributes)) writeAttribute(writer, 9, key, value)
    writer.uint32(122).fork().uint32(24).int32(status).ldelim()
    writer.ldelim()
  }
  writer.ldelim().ldelim()
  return Buffer.from(writer.finish())
}

function writeTime(writer: protobuf.Writer, tag: number, ms: number): void {
  const nanos = BigInt(ms) * 1_000_000n
  writer.uint32(tag).fixed32(Number(nanos & 0xffffffffn))
  writer.fixed32(Number(nanos >> 32n))
}

function writeAttribute(
  writer: protobuf.Writer,
  field: number,
  key: string,
  value: string | number | boolean,
): void {
  writer.uint32((field << 3) | 2).fork()
  writer.uint32(10).string(key).uint32(18).fork()
  if (typeof value === 'string') writer.uint32(10).string(value)
  else if (typeof value === 'boolean') writer.uint32(16).bool(value)
  else if (Number.isInteger(value)) writer.uint32(24).int64(value)
  else writer.uint32(33).double(value)
  writer.ldelim().ldelim()
}
