type Weight = { bytes: number; whole: boolean }

const weights = new WeakMap<object, Weight>()

/**
 * Estimates the size of a value as JSON; the estimate may be up to five times too high. A value heavier than
 * `limit` gets some number above it. Values that flow between nodes never change, so each is counted
 * only once.
 */
export function weighValue(value: unknown, limit: number): number {
  if (typeof value === 'string') return 8 + value.length
  if (typeof value !== 'object' || value === null) return 8
  const known = weights.get(value)
  if (known && (known.whole || known.bytes > limit)) return known.bytes
  const bytes = countBytes(value, limit)
  weights.set(value, { bytes, whole: bytes <= limit })
  return bytes
}

function countBytes(value: object, limit: number): number {
  let bytes = 0
  const open: unknown[] = [value]
  while (open.length > 0 && bytes <= limit) {
    const next = open.pop()
    bytes += typeof next === 'string' ? 8 + next.length : 8
    if (typeof next !== 'object' || next === null) continue
    // Checked before the items are pushed: a long list would cost its whole length in spite of the limit.
    const keys = Array.isArray(next) ? undefined : Object.keys(next)
    if ((keys ?? (next as unknown[])).length * 8 > limit - bytes) return limit + 1
    if (!keys) {
      for (const item of next as unknown[]) open.push(item)
      continue
    }
    for (const key of keys) {
      bytes += key.length
      open.push((next as Record<string, unknown>)[key])
    }
  }
  return bytes
}
