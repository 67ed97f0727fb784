import type { OpenedCredential } from '../../db/credentials/open.ts'
import { createExactMask } from '../../db/redaction/exact.ts'
import { isObject } from '../../workflows/json.ts'
import type { HttpError } from '../http/httperror.ts'
import { requestFailure } from '../nodes/http.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import { readRetryAfter } from '../nodes/kit/retryafter.ts'

/** The most characters of what a vendor says about a failure that are shown. */
const SHOWN = 500

/** Statuses that say that the same request may be taken later; 529 is Anthropic's for too many callers. */
const LATER = new Set([408, 409, 425, 429])

/** Kinds of errors within a stream, which no longer has a status, that no later try mends. */
const FINAL_KINDS =
  /^(?:invalid_|authentication_|permission_|not_found|request_too_large|billing_|insufficient_quota|content_policy|unsupported|INVALID_ARGUMENT|PERMISSION_DENIED|UNAUTHENTICATED|NOT_FOUND|FAILED_PRECONDITION)/

/** Who was asked, and what must not be shown of what they said. */
export type Vendor = { name: string; secrets: string[] }

/** A credential as failures name it: who answers for it, and its secrets. */
export function nameVendor({ name, type }: OpenedCredential, secrets: string[]): Vendor {
  return { name: `${type} (credential ${name})`, secrets }
}

/** The failure for an answer of the vendor that has a status of 300 or more. */
export function refusedBy(
  vendor: Vendor,
  { status, headers, text }: { status: number; headers: Record<string, string>; text: string },
): NodeFailure {
  const said = quote(vendor, findMessage(text))
  const message = `${vendor.name} responded with ${status}${said ? `: ${said}` : ''}`
  const later = (LATER.has(status) && !isSpent(text)) || status >= 500
  if (!later) return new NodeFailure(message, { type: 'ModelRefused' })
  const retryAfterMs = readDelay(headers, Date.now())
  return new NodeFailure(message, {
    type: 'ModelUnavailable',
    retryable: true,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  })
}

/** A 429 that waiting does not mend: the account has no money left. */
const isSpent = (text: string) => /"insufficient_quota"|"billing_hard_limit_reached"/.test(text)

/** How long the vendor asks to wait: `retry-after-ms`, or `retry-after` in seconds, also broken ones, or as a date. */
export function readDelay(headers: Record<string, string>, now: number): number | undefined {
  const exact = Number(headers['retry-after-ms'] || Number.NaN)
  if (Number.isFinite(exact) && exact >= 0) return readRetryAfter(String(Math.ceil(exact / 1_000)), now)
  const header = headers['retry-after']?.trim()
  return readRetryAfter(
    header && /^\d{1,12}\.\d{1,9}$/.test(header) ? String(Math.ceil(Number(header))) : header,
    now,
  )
}

/** The failure for an error that the vendor has sent within the stream of its answer. */
export function brokenOffBy(vendor: Vendor, error: unknown): NodeFailure {
  const { message, kind, status } = describeStreamError(error)
  const said = quote(vendor, message)
  const text = `${vendor.name} broke off its answer${kind ? ` with ${kind.slice(0, 100)}` : ''}${said ? `: ${said}` : ''}`
  const refused =
    FINAL_KINDS.test(kind) || (status !== undefined && status >= 400 && status < 500 && !LATER.has(status))
  return refused
    ? new NodeFailure(text, { type: 'ModelRefused' })
    : new NodeFailure(text, { type: 'ModelUnavailable', retryable: true })
}

/** The failure for an answer that came to no end. */
export function cutOff(vendor: Vendor): NodeFailure {
  return new NodeFailure(`${vendor.name} ended its answer in the middle`, {
    type: 'ModelUnavailable',
    retryable: true,
  })
}

/** The failure for a vendor from whom nothing came for so many milliseconds. */
export function silentFor(vendor: Vendor, ms: number): NodeFailure {
  return new NodeFailure(`${vendor.name} sent nothing for ${ms / 1_000} seconds`, {
    type: 'ModelUnavailable',
    retryable: true,
  })
}

/** The failure for an answer that cannot be read, or has nothing in it. `problem` follows "the answer of ...". */
export function uselessAnswer(vendor: Vendor, problem: string, retryable = true): NodeFailure {
  return new NodeFailure(`The answer of ${vendor.name} ${problem}`, { type: 'ModelAnswer', retryable })
}

/** Why all of an answer's tokens went into reasoning, as the `cause` of that failure. */
export const OUT_OF_TOKENS = 'length'

/** The failure for a model that has come to the end of its tokens before it said anything. */
export function saidNothing(vendor: Vendor): NodeFailure {
  const message = `The answer of ${vendor.name} has used up its tokens before its first word`
  return new NodeFailure(message, { type: 'ModelAnswer', cause: OUT_OF_TOKENS })
}

/** The failure for an answer that is whole, and not a stream of events. */
export function noStream(vendor: Vendor, text: string): NodeFailure {
  return uselessAnswer(vendor, `is no stream of events: ${quote(vendor, findMessage(text))}`)
}

/** The failure for a request that got no answer, or of which only a part came. */
export function unreached(vendor: Vendor, error: HttpError): NodeFailure {
  const { kind, message } = error
  if (kind === 'too-large') return uselessAnswer(vendor, 'is too long', false)
  if (kind !== 'network' && kind !== 'timeout') return requestFailure(`The call to ${vendor.name}`, error)
  return new NodeFailure(`The call to ${vendor.name} failed: ${message}`, {
    type: 'ModelUnavailable',
    retryable: true,
    cause: error,
  })
}

const NEVER_SENT = new Set(['ENOTFOUND', 'EAI_AGAIN', 'ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH'])

/** Whether a request has certainly not reached the other side. */
export function isUnsent(error: HttpError): boolean {
  if (error.followed) return false
  const { code } = (error.cause ?? {}) as { code?: string }
  if (error.kind === 'network') return NEVER_SENT.has(code ?? '')
  if (error.kind === 'timeout') return code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'ETIMEDOUT'
  return error.kind !== 'aborted' && error.kind !== 'too-large' && error.kind !== 'redirect'
}

/** What a vendor's body says: the message of its JSON, in the forms that vendors use, or the body itself. */
export function findMessage(text: string): string {
  const value = parse(text)
  // Google answers a stream that fails with a list.
  const body = Array.isArray(value) ? value[0] : value
  if (!isObject(body)) return text
  const { error } = body
  for (const found of [isObject(error) ? error.message : error, body.message, body.detail])
    if (typeof found === 'string' && found !== '') return found
  return text
}

function describeStreamError(error: unknown): { message: string; kind: string; status: number | undefined } {
  if (typeof error === 'string') return { message: error, kind: '', status: undefined }
  const outer = isObject(error) || error instanceof Error ? (error as Record<string, unknown>) : {}
  const data = [outer.data, parse(outer.responseBody)].find(isObject) ?? outer
  const inner = isObject(data.error)
    ? data.error
    : isObject(data.response) && isObject(data.response.error)
      ? data.response.error
      : data
  const pick = (key: string) => [outer, data, inner].map((one) => one[key])
  const message = pick('message').find((one): one is string => typeof one === 'string' && one !== '') ?? ''
  const kinds = [inner.code, inner.type, outer.code, outer.type, inner.status]
  const kind =
    kinds.find((one): one is string => typeof one === 'string' && /[a-z]/i.test(one) && one !== 'error') ?? ''
  const statuses = [outer.statusCode, inner.code, inner.status].map(Number)
  return { message, kind, status: statuses.find((one) => Number.isInteger(one) && one >= 400 && one < 600) }
}

function parse(text: unknown): unknown {
  try {
    return typeof text === 'string' ? JSON.parse(text) : undefined
  } catch {
    return undefined
  }
}

/** The words of a vendor, in one line, without secrets, and not too long. */
function quote({ secrets }: Vendor, text: string): string {
  const start = text.slice(0, 16_384)
  const clean = secrets.length > 0 ? createExactMask(secrets).start(start) : start
  const line = clean.replace(/[\p{Cc}\p{Cs}\s]+/gu, ' ').trim()
  return line.length > SHOWN ? `${line.slice(0, SHOWN)}...` : line
}
