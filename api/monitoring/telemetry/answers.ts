import type { Context } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import protobuf from 'protobufjs/minimal.js'
import * as v from 'valibot'
import type { OtlpEncoding, TelemetryReceipt } from '../../../activities/monitoring/telemetry/receive.ts'
import type { AppEnv } from '../../env.ts'
import { type ErrorBody, InputErrorSchema, type ResponseSpec } from '../../http/responses.ts'

export const PROTOBUF = 'application/x-protobuf'
const JSON_TYPE = 'application/json'

/** The encoding that a request's Content-Type names; undefined if OTLP does not have it. */
export function findEncoding(c: Context): OtlpEncoding | undefined {
  const type = (c.req.header('content-type') ?? '').split(';')[0]!.trim().toLowerCase()
  if (type === PROTOBUF) return 'protobuf'
  return type === JSON_TYPE ? 'json' : undefined
}

/** An ExportTraceServiceResponse, which mentions spans only if some of them were rejected. */
export function answerReceipt(c: Context, encoding: OtlpEncoding, receipt: TelemetryReceipt): Response {
  const { rejected, errorMessage } = receipt
  if (encoding === 'json') {
    // JSON of protobuf writes 64-bit integers as texts.
    return c.json(rejected === 0 ? {} : { partialSuccess: { rejectedSpans: String(rejected), errorMessage } })
  }
  const writer = protobuf.Writer.create()
  if (rejected > 0) {
    writer.uint32(tag(1, 2)).fork().uint32(tag(1, 0)).int64(rejected)
    writer.uint32(tag(2, 2)).string(errorMessage).ldelim()
  }
  return answerBytes(c, writer.finish(), 200)
}

/** What google.rpc.Code calls a status of HTTP. */
const RPC_CODES: Record<number, number> = {
  400: 3,
  401: 16,
  403: 7,
  404: 5,
  413: 3,
  415: 3,
  429: 8,
  500: 13,
  503: 14,
}
const UNKNOWN = 2

/** An error as a google.rpc.Status in the request's encoding; in JSON together with the fields that all errors have. */
export function showOtlpError(c: Context<AppEnv>, body: ErrorBody): Response {
  const code = RPC_CODES[body.status] ?? UNKNOWN
  if (findEncoding(c) !== 'protobuf') return c.json({ ...body, code }, body.status as ContentfulStatusCode)
  const writer = protobuf.Writer.create()
  writer.uint32(tag(1, 0)).int32(code).uint32(tag(2, 2)).string(body.message)
  return answerBytes(c, writer.finish(), body.status as ContentfulStatusCode)
}

const tag = (field: number, type: number) => (field << 3) | type

function answerBytes(c: Context, bytes: Uint8Array, status: ContentfulStatusCode): Response {
  return c.body(new Uint8Array(bytes), status, { 'Content-Type': PROTOBUF })
}

export const ReceiptSchema = v.pipe(
  v.object({
    partialSuccess: v.optional(
      v.pipe(
        v.object({
          rejectedSpans: v.pipe(v.string(), v.description('How many'), v.examples(['1'])),
          errorMessage: v.pipe(
            v.string(),
            v.description('Why, with how many spans of each reason, and the id of the first one'),
          ),
        }),
        v.description('Left out if no span was rejected'),
      ),
    ),
  }),
  v.title('ExportTraceServiceResponse'),
)

const StatusSchema = v.pipe(
  v.object({
    ...InputErrorSchema.entries,
    code: v.optional(
      v.pipe(v.number(), v.integer(), v.description('The code of google.rpc.Code'), v.examples([3])),
    ),
  }),
  v.title('OtlpError'),
)

/** The error of a status, as the document shows it. */
export function otlpFault(status: number, description: string): Record<number, ResponseSpec> {
  const retry: ResponseSpec['headers'] =
    status === 429 || status === 503 ? { 'Retry-After': 'After how many seconds to try again' } : undefined
  return {
    [status]: { description, schema: StatusSchema, texts: [PROTOBUF], ...(retry ? { headers: retry } : {}) },
  }
}
