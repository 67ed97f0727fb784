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
