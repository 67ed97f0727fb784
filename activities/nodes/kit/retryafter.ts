import { NodeFailure } from './failure.ts'

const MAX_RETRY_AFTER_MS = 3_600_000

/**
 * The delay of a Retry-After header (seconds or an HTTP date) in milliseconds, at most an hour; undefined for
 * other values. `now` is epoch milliseconds.
 */
export function readRetryAfter(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined
  const text = value.trim()
  const wait = /^\d{1,12}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now
  if (Number.isNaN(wait) || !/^\d+$|^[A-Z][a-z]+,? /.test(text)) return undefined
  return Math.min(Math.max(wait, 0), MAX_RETRY_AFTER_MS)
}

/**
 * The failure `Http<status>` for an answer that refuses: `message` and what the other side says in it. Retried, after the
 * delay that its header asks for, are 408, 425, 429 and 5xx, and what is `busy`.
 */
export function refuseStatus(
  message: string,
  said: string,
  { status, headers }: { status: number; headers: Record<string, string> },
  { busy = false } = {},
): NodeFailure {
  const retryable = busy || status >= 500 || status === 408 || status === 425 || status === 429
  const retryAfterMs = retryable ? readRetryAfter(headers['retry-after'], Date.now()) : undefined
  return new NodeFailure(said ? `${message}: ${said}` : message, {
    type: `Http${status}`,
    retryable,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  })
}
