import { setOwn } from '../workflows/inputs.ts'

const FLAGS = ['_jsonata_lambda', '_jsonata_function']

/**
 * JSONata's result as plain JSON: no functions, no sequence flags, no shared arrays of its own. Undefined where it
 * is nothing. Throws for numbers JSON has no form for.
 */
export function toPlain(value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value)) throw new Error('the result is no finite number')
  if (typeof value === 'function') return undefined
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return Array.from(value, (item) => toPlain(item) ?? null)
  if (FLAGS.some((flag) => Object.hasOwn(value, flag))) return undefined
  const plain: Record<string, unknown> = {}
  for (const key of Object.keys(value)) {
    const item = toPlain((value as Record<string, unknown>)[key])
    if (item !== undefined) setOwn(plain, key, item)
  }
  return plain
}

/** JSONata's `$boolean`, with nothing as false. */
export function isTruthy(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(isTruthy)
  if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0
  return Boolean(value)
}

type Weight = { bytes: number; whole: boolean }

const weights = new WeakMap<object, Weight>()

/**
 * About how many bytes a value takes as JSON, counted up to `limit` (then some number above it). Values that flow
 * between nodes never change, so each is counted once.
 */
export function weigh(value: unknown, limit: number): number {
  if (typeof value === 'string') return 8 + value.length
  if (typeof value !== 'object' || value === null) return 8
  const known = weights.get(value)
  if (known && (known.whole || known.bytes > limit)) return known.bytes
  const bytes = count(value, limit)
  weights.set(value, { bytes, whole: bytes <= limit })
  return bytes
}

function count(value: object, limit: number): number {
  let bytes = 0
  const open: unknown[] = [value]
  while (open.length > 0 && bytes <= limit) {
    const next = open.pop()
    bytes += typeof next === 'string' ? 8 + next.length : 8
    if (typeof next !== 'object' || next === null) continue
    // Looked at before it is walked: a long list would cost its whole length in spite of the limit.
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

/**
 * Keeps what was made of texts, for up to `maxChars` characters of text: in two generations, the younger half
 * takes the place of the older. (Deleting the oldest key of a Map one by one gets slow: it leaves gaps.)
 */
export function createTextCache<T>(maxChars: number): (text: string, make: () => T) => T {
  let young = new Map<string, T>()
  let old = young
  let chars = 0
  return (text, make) => {
    let value = young.get(text)
    if (value !== undefined) return value
    value = old.get(text) ?? make()
    chars += text.length
    if (chars > maxChars / 2) {
      old = young
      young = new Map()
      chars = text.length
    }
    young.set(text, value)
    return value
  }
}
