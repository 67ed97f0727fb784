import { setOwn } from '../../workflows/json.ts'
import type { LargeNumbers } from '../../workflows/nodes/fields.ts'
import { quoteShort } from '../../workflows/problem.ts'
import type { createPacer } from '../expressions/pace.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'

type Pace = ReturnType<typeof createPacer>

/** A config's choice, by default `text`. */
export function readLargeNumbers({ largeNumbers }: Record<string, unknown>): LargeNumbers {
  return largeNumbers === 'number' ? 'number' : 'text'
}

/** A JSON text's value. `large` tells how many numbers were too large, and the key of the first one. */
export type JsonReading = { value: unknown; large?: { count: number; key: string } }

/** Only texts that match can have a number that is too large. */
const MAY_BE_LARGE = /\d{16}|[eE]\+?\d{3}/

/**
 * Parses JSON that others have sent, at once: every door that takes JSON from outside uses this or
 * `readJsonInTurns`, so that ids of 19 digits stay what they are. Throws a SyntaxError, also for a text that has a large
 * number and is nested some thousand levels deep.
 */
export function readJson(text: string, largeNumbers: LargeNumbers = 'text'): JsonReading {
  if (!MAY_BE_LARGE.test(text)) return { value: JSON.parse(text) }
  const count = countLarge(largeNumbers)
  const revive = (key: string, value: unknown, { source }: { source?: string } = {}) =>
    typeof value === 'number' && source !== undefined ? count.read(source, value, key) : value
  try {
    return { value: JSON.parse(text, revive as (key: string, value: unknown) => unknown), ...count.found() }
  } catch (error) {
    throw error instanceof RangeError ? invalidJson() : error
  }
}

/** The sentence for a node's warnings or a response's; undefined if no number was too large. */
export function describeLarge(
  { large }: Pick<JsonReading, 'large'>,
  largeNumbers: LargeNumbers = 'text',
): string | undefined {
  if (!large) return undefined
  const { count, key } = large
  const where = key === '' ? '' : `, ${count === 1 ? 'at' : 'the first one at'} the key ${quoteShort(key)}`
  const isText = largeNumbers === 'text'
  if (count === 1) {
    const outcome = isText ? 'is a text of its digits' : 'was rounded'
    return `1 number is too large for JavaScript to hold exactly${where}: it ${outcome}`
  }
  const outcome = isText ? 'are texts of their digits' : 'were rounded'
  return `${count} numbers are too large for JavaScript to hold exactly${where}: they ${outcome}`
}

/** Reads numbers by their digits, and counts those that are too large. */
function countLarge(largeNumbers: LargeNumbers) {
  let large: { count: number; key: string } | undefined
  return {
    read(source: string, value: number, key: string): number | string {
      // -9007199254740993 has the value of -2^53, too.
      const isHeld = Math.abs(value) < 2 ** 53 || (Math.abs(value) === 2 ** 53 && String(value) === source)
      if (isHeld || (Number.isFinite(value) && /[eE]/.test(source))) return value
      large ??= { count: 0, key }
      large.count++
      // An infinite number would become null as soon as it is written as JSON.
      return largeNumbers === 'text' || !Number.isFinite(value) ? source : value
    },
    found: (): Pick<JsonReading, 'large'> => (large ? { large } : {}),
  }
}

/** The most levels of a long text, and of a value that is written. */
export const MAX_DEPTH = 1_000

/** Texts up to this length are parsed at once, which takes a few milliseconds. */
const SHORT = 100_000
const SPACE = /[ \t\n\r]*/y
const SCALAR = /null|true|false|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y

/**
 * Reads JSON as `readJson` does, but lets timers and sockets have their turn in between: 8 MB of small arrays or keys
 * take JSON.parse half a second. Throws a SyntaxError for invalid JSON, and a NodeFailure (InvalidInput) for a long text
 * that is nested too deeply.
 */
export async function readJsonInTurns(
  text: string,
  pace: Pace,
  largeNumbers: LargeNumbers = 'text',
): Promise<JsonReading> {
  if (text.length <= SHORT) return readJson(text, largeNumbers)
  const count = countLarge(largeNumbers)
  const open: { items: unknown[] | undefined; fields: Record<string, unknown>; key: string }[] = []
  let at = 0
  const take = (pattern: RegExp): string => {
    pattern.lastIndex = at
    const [found] = pattern.exec(text) ?? []
    if (found === undefined) throw invalidJson()
    at += found.length
    return found
  }
  /** Goes past the character if it comes next, after any space. */
  const skip = (character: string): boolean => {
    take(SPACE)
    const comes = text[at] === character
    if (comes) at++
    return comes
  }
  const takeString = (): string => {
    const from = at - 1
    at = findQuote(text, at) + 1
    return JSON.parse(text.slice(from, at))
  }
  const takeScalar = (): unknown => {
    const source = take(SCALAR)
    const scalar: unknown = JSON.parse(source)
    return typeof scalar === 'number' ? count.read(source, scalar, open.at(-1)?.key ?? '') : scalar
  }
  const takeKey = (): string => {
    if (!skip('"')) throw invalidJson()
    const key = takeString()
    if (!skip(':')) throw invalidJson()
    return key
  }
  for (;;) {
    await pace()
    let value: unknown
    const items: unknown[] | undefined = skip('[') ? [] : undefined
    if (items || skip('{')) {
      const fields: Record<string, unknown> = {}
      value = items ?? fields
      if (!skip(items ? ']' : '}')) {
        if (open.length >= MAX_DEPTH) throw tooDeep()
        open.push({ items, fields, key: items ? '' : takeKey() })
        continue
      }
    } else value = skip('"') ? takeString() : takeScalar()
    // The value ends those that it is the last entry of.
    for (;;) {
      const level = open.at(-1)
      if (!level) {
        take(SPACE)
        if (at < text.length) throw invalidJson()
        return { value, ...count.found() }
      }
      if (level.items) level.items.push(value)
      else setOwn(level.fields, level.key, value)
      if (skip(',')) {
        if (!level.items) level.key = takeKey()
        break
      }
      if (!skip(level.items ? ']' : '}')) throw invalidJson()
      open.pop()
      value = level.items ?? level.fields
    }
  }
}

/** The position of the quote that ends a string. */
function findQuote(text: string, from: number): number {
  for (let at = text.indexOf('"', from); at >= 0; at = text.indexOf('"', at + 1)) {
    let slashes = 0
    while (text[at - 1 - slashes] === '\\') slashes++
    if (slashes % 2 === 0) return at
  }
  throw invalidJson()
}

function invalidJson(): SyntaxError {
  return new SyntaxError('invalid JSON')
}

/** What a value that is nested too deeply fails with. */
export function tooDeep(): NodeFailure {
  return new NodeFailure(`value is nested more than ${MAX_DEPTH} levels deep`, { type: 'InvalidInput' })
}
