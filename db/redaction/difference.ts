/** What an audit entry says of a change: the names of what differs, and their values before and after. */
export type Difference = {
  changed: string[]
  before: Record<string, unknown>
  after: Record<string, unknown>
}

/** A larger value is not repeated in an audit entry. As JSON, in bytes. */
const MAX_VALUE_BYTES = 2_000

/**
 * Compares two states of a thing, key by key, for an audit entry, which masks secrets in it. For a value that is too
 * large it only says its size.
 */
export function describeChange(before: Record<string, unknown>, after: Record<string, unknown>): Difference {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  const changed = keys.filter((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]))
  return { changed, before: choose(before, changed), after: choose(after, changed) }
}

function choose(values: Record<string, unknown>, keys: string[]): Record<string, unknown> {
  const given = keys.filter((key) => values[key] !== undefined)
  return Object.fromEntries(given.map((key) => [key, shorten(values[key])]))
}

/** The value, or how large it is if it is too large for an audit entry. */
export function shorten(value: unknown): unknown {
  const bytes = Buffer.byteLength(JSON.stringify(value) ?? '')
  return bytes <= MAX_VALUE_BYTES ? value : { omitted: true, bytes }
}
