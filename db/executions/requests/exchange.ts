import { gunzipSync, gzipSync } from 'node:zlib'
import { type RedactionRules, redact } from '../../redaction/redact.ts'
import { IN_REQUESTS, listRequestSecrets } from '../../redaction/requests.ts'
import { type Keys, seal, unseal } from '../../seal.ts'
import { nodeExecutionId } from '../records/projection.ts'

/** The most bytes of a body that are kept. */
const MAX_KEPT_BYTES = 32 * 1024

/**
 * How much more than is kept is read, redacted and thrown away: so a secret that the end of the text cuts in two is
 * not kept in part.
 */
const BEYOND = 4_096
export const MAX_READ_BYTES = MAX_KEPT_BYTES + BEYOND

const MAX_URL = 8_192
const MAX_HEADER = 2_048
const MAX_HEADERS = 200

/**
 * The beginning of a body, at most MAX_READ_BYTES of it: `text` is null if it is not text. `bytes` is the size of the
 * whole body.
 */
export type BodyStart = { text: string | null; bytes: number; isCut: boolean }

/** In an answer, several Set-Cookie headers are a list. */
type Headers = Record<string, string | string[]>

/** A request and what came of it so far, with all its secrets. Times are in milliseconds since 1970. */
export type Exchange = {
  executionId: string
  nodeId: string
  /** '' outside of loops. */
  iteration: string
  attempt: number
  /** Within the attempt, from 0. */
  number: number
  startedAt: number
  /** Null while it is under way. */
  endedAt: number | null
  method: string
  url: string
  headers: Record<string, string>
  body: BodyStart
  /** The answers that have redirected it, and the requests that were then sent instead. */
  redirects: { status: number; method: string; url: string }[]
  response: ({ status: number; statusText: string; headers: Headers } & { body: BodyStart }) | null
  error: string | null
}

const PURPOSE = 'request'

/** The row of a request, to be written. */
export type RequestRow = RequestPlace & { sealed: Buffer }

/** `number` is that within the attempt. */
type RequestPlace = { executionId: string; recordId: string; attempt: number; number: number }

const nameRequest = ({ executionId, recordId, attempt, number }: RequestPlace) =>
  `${executionId}|${recordId}|${attempt}.${number}`

/** Seals a request with all its secrets: they are masked when it is shown. */
export function sealExchange(keys: Keys, exchange: Exchange): RequestRow {
  const { executionId, nodeId, iteration, attempt, number } = exchange
  const recordId = nodeExecutionId(executionId, nodeId, iteration)
  const place = { executionId, recordId, attempt, number }
  const zipped = gzipSync(JSON.stringify(exchange), { level: 1 })
  return { ...place, sealed: seal(keys, PURPOSE, nameRequest(place), zipped) }
}

/** Opens what sealExchange has sealed. Throws if its key has been removed. */
export function openExchange(keys: Keys, { sealed, ...place }: RequestRow): Exchange {
  return JSON.parse(gunzipSync(unseal(keys, PURPOSE, nameRequest(place), sealed)).toString())
}

type ShownBody = {
  /** At most 32 KB; null without a body, or if it is not text. */
  body: string | null
  /** The size of the whole body as it was sent, or as it was received and decompressed. */
  bodyBytes: number
  bodyCut: boolean
}

/** A request as it is shown. `durationMs` is null while it is under way, or if its end was never noted. */
export type ShownRequest = {
  startedAt: string
  durationMs: number | null
  method: string
  url: string
  headers: Record<string, string>
  redirects: { status: number; method: string; url: string }[]
  response: ({ status: number; statusText: string; headers: Headers } & ShownBody) | null
  error: string | null
} & ShownBody

/** A request with all its secrets masked. `rules` are the instance's. Takes up to some 20 ms for 64 KB. */
export function showExchange(exchange: Exchange, rules: RedactionRules): ShownRequest {
  const { startedAt, endedAt, response, method, url, headers, body, redirects, error } = exchange
  const secrets = listRequestSecrets({ url, headers, body: body.text })
  const head = response && { statusText: response.statusText, headers: response.headers }
  const heads = redact({ url, headers, redirects, head, error }, { secrets, rules: joinRules(rules) })
  const bodies = redact([body.text, response?.body.text ?? null], { secrets, rules })
  return {
    startedAt: new Date(startedAt).toISOString(),
    durationMs: endedAt === null ? null : Math.max(0, endedAt - startedAt),
    method,
    url: heads.url.slice(0, MAX_URL),
    headers: showHeaders(heads.headers),
    ...showBody(body, bodies[0] ?? null),
    redirects: heads.redirects.map((hop) => ({ ...hop, url: hop.url.slice(0, MAX_URL) })),
    response: response &&
      heads.head && {
        status: response.status,
        statusText: heads.head.statusText,
        headers: showHeaders(heads.head.headers),
        ...showBody(response.body, bodies[1] ?? null),
      },
    error: heads.error,
  }
}

const joined = new WeakMap<RedactionRules, RedactionRules>()

/** The instance's rules, and what is a secret in every request. */
function joinRules(rules: RedactionRules): RedactionRules {
  const known = joined.get(rules)
  if (known) return known
  const names = new Set([...rules.names, ...IN_REQUESTS.names])
  const both = { ...rules, names, maskOwn: (text: string) => rules.maskOwn(IN_REQUESTS.maskOwn(text)) }
  joined.set(rules, both)
  return both
}

function showHeaders<V extends string | string[]>(headers: Record<string, V>): Record<string, V> {
  const cut = (text: string) => (text.length > MAX_HEADER ? `${text.slice(0, MAX_HEADER)}...` : text)
  const short = Object.entries(headers)
    .slice(0, MAX_HEADERS)
    .map(([name, value]) => [name, Array.isArray(value) ? value.slice(0, MAX_HEADERS).map(cut) : cut(value)])
  return Object.fromEntries(short)
}

function showBody({ text, bytes, isCut }: BodyStart, redacted: string | null): ShownBody {
  if (text === null || redacted === null) return { body: null, bodyBytes: bytes, bodyCut: false }
  const whole = isCut ? redacted.slice(0, Math.max(0, redacted.length - BEYOND)) : redacted
  const body = cutText(whole)
  return { body, bodyBytes: bytes, bodyCut: isCut || body.length < whole.length }
}

/** The beginning of a text, with at most MAX_KEPT_BYTES in UTF-8. */
function cutText(text: string): string {
  if (text.length * 3 <= MAX_KEPT_BYTES || Buffer.byteLength(text) <= MAX_KEPT_BYTES) return text
  return new TextDecoder().decode(Buffer.from(text).subarray(0, MAX_KEPT_BYTES), { stream: true })
}
