import { createPacer } from '../../activities/expressions/pace.ts'
import { openDecoder } from '../../activities/reading/charset.ts'
import { type JsonReading, readJson, readJsonInTurns } from '../../activities/reading/json.ts'
import { invalid } from '../../db/fault.ts'
import type { LargeNumbers } from '../../workflows/nodes/fields.ts'
import { joinPath } from '../../workflows/problem.ts'

/** How deep a body of JSON may be, and how many values it may have: each entry of a list or an object is one. */
export type JsonBounds = { depth: number; values: number }

/** The bounds of every body. The number of values is bounded by the body's bytes alone. */
const JSON_BOUNDS: JsonBounds = { depth: 64, values: Number.POSITIVE_INFINITY }

export type JsonSettings = { charset?: string | undefined; largeNumbers?: LargeNumbers } & Partial<JsonBounds>

/**
 * Parses JSON at once: for a body that is small, or on a thread of its own. Throws INVALID unless it is valid in its
 * charset and within its bounds, and for the key __proto__, which a later copy could turn into a prototype.
 */
export function parseJson(bytes: Uint8Array, settings: JsonSettings = {}): JsonReading {
  const { charset, largeNumbers, ...bounds } = settings
  const text = decodeJson(bytes, charset)
  const reading = refuseInvalid(charset, () => readJson(text, largeNumbers))
  for (const _ of checkJson(reading.value, { ...JSON_BOUNDS, ...bounds }));
  return reading
}

/** JSON of fewer values is parsed within some milliseconds. */
const FEW_VALUES = 20_000

/** The same for a larger body: in turns with others, unless it is large by a few long texts. */
export async function parseJsonInTurns(bytes: Uint8Array, settings: JsonSettings = {}): Promise<JsonReading> {
  if (countMarks(bytes) <= FEW_VALUES) return parseJson(bytes, settings)
  const { charset, largeNumbers, ...bounds } = settings
  const text = decodeJson(bytes, charset)
  const pace = createPacer()
  let reading: JsonReading
  try {
    reading = await readJsonInTurns(text, pace, largeNumbers)
  } catch (error) {
    throw notJson(charset, error)
  }
  for (const _ of checkJson(reading.value, { ...JSON_BOUNDS, ...bounds })) await pace()
  return reading
}

/** At least as many as JSON has values. */
function countMarks(bytes: Uint8Array): number {
  let marks = 1
  for (const byte of bytes) if (byte === 0x2c || byte === 0x5b || byte === 0x7b) marks++
  return marks
}

function decodeJson(bytes: Uint8Array, charset = 'utf-8'): string {
  return refuseInvalid(charset, () => openDecoder(charset, { fatal: true })!.decode(bytes))
}

function refuseInvalid<T>(charset: string | undefined, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw notJson(charset, error)
  }
}

function notJson(charset = 'utf-8', error?: unknown) {
  if ((error as Error | undefined)?.name === 'NodeFailure')
    return invalid([{ path: 'body', message: `must not be nested deeper than ${JSON_BOUNDS.depth} levels` }])
  const name = /^utf-?8$/i.test(charset) ? 'UTF-8' : charset
  return invalid([{ path: 'body', message: `must be valid JSON in ${name}` }])
}

/** Looks at every value, each time it is asked to go on at some thousand of them. Throws INVALID. */
function* checkJson(root: unknown, { depth: most, values }: JsonBounds): Generator<void, void> {
  const open: { value: object; path: string; depth: number }[] = []
  if (typeof root === 'object' && root !== null) open.push({ value: root, path: '', depth: 1 })
  let count = 1
  let looked = 0
  for (let next = open.pop(); next; next = open.pop()) {
    const { value: at, path, depth } = next
    if (depth > most)
      throw invalid([{ path: path || 'body', message: `must not be nested deeper than ${most} levels` }])
    if (Object.hasOwn(at, '__proto__'))
      throw invalid([{ path: joinPath(path, '__proto__'), message: 'is not allowed as a key' }])
    const isList = Array.isArray(at)
    const keys = isList ? undefined : Object.keys(at)
    const size = isList ? at.length : keys!.length
    count += size
    if (count > values) throw invalid([{ path: 'body', message: `must have at most ${values} values` }])
    for (let n = 0; n < size; n++) {
      if (++looked % 1_000 === 0) yield
      const key = isList ? n : keys![n]!
      const item = (at as Record<string | number, unknown>)[key]
      if (typeof item === 'object' && item !== null)
        open.push({ value: item, path: joinPath(path, key), depth: depth + 1 })
    }
  }
}
