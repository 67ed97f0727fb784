import { DateTime } from 'luxon'
import { isObject } from '../../../workflows/json.ts'
import { readJson } from '../../reading/json.ts'

/** The types to which SET and conditions convert values. `any` takes every value as it is. */
export type CastType = 'string' | 'number' | 'boolean' | 'array' | 'object' | 'dateTime' | 'any'

/** A value in its type, or undefined in `cast` if it cannot be had. */
export type Cast = { cast: unknown } | undefined

/** The longest text that is read as a date: luxon's patterns are slow on long ones. */
const MAX_DATE_CHARS = 1_000

/** A whole number as text. To read more digits takes the square of how many they are. */
const WHOLE = /^[+-]?\d{16,1000}$/

/** The whole number that a text is, if no number of JavaScript is the same. */
export function readLargeWhole(value: unknown): bigint | undefined {
  const text = typeof value === 'string' ? value.trim() : ''
  if (!WHOLE.test(text)) return undefined
  const [exact, number] = [BigInt(text), Number(text)]
  return Number.isFinite(number) && BigInt(number) === exact ? undefined : exact
}

/** Converts a value that is not null: "12" is the number 12, 1 and "true" are true, '["a"]' is an array. */
export function castValue(value: unknown, type: CastType): Cast {
  switch (type) {
    case 'string':
      return { cast: typeof value === 'object' ? JSON.stringify(value) : String(value) }
    case 'number': {
      const number = Number(value)
      return Number.isNaN(number) ? undefined : { cast: number }
    }
    case 'boolean':
      return castBoolean(value)
    case 'array': {
      const list = typeof value === 'string' ? parseList(value) : value
      return Array.isArray(list) ? { cast: list } : undefined
    }
    case 'object': {
      const object = typeof value === 'string' ? parse(value) : value
      return isObject(object) ? { cast: object } : undefined
    }
    case 'dateTime': {
      const date = parseDate(value)
      return date && { cast: date }
    }
    case 'any':
      return { cast: value }
  }
}

function castBoolean(value: unknown): Cast {
  if (typeof value === 'boolean') return { cast: value }
  if (typeof value === 'string' && /^(true|false)$/i.test(value))
    return { cast: value.toLowerCase() === 'true' }
  if (typeof value === 'string' && value.trim() === '') return undefined
  const number = Number(value)
  return number === 0 || number === 1 ? { cast: number === 1 } : undefined
}

function parseList(text: string): unknown {
  return parse(text) ?? parse(text.replaceAll("'", '"'))
}

function parse(text: string): unknown {
  try {
    return readJson(text).value
  } catch {
    return undefined
  }
}

/** A date from ISO 8601, an HTTP date, RFC 2822 or SQL; undefined if the value is not a date. */
function parseDate(value: unknown): DateTime | undefined {
  const text = String(value).trim()
  if (text.length > MAX_DATE_CHARS) return undefined
  const readers = [DateTime.fromISO, DateTime.fromHTTP, DateTime.fromRFC2822, DateTime.fromSQL]
  const zone = { setZone: true }
  const found = readers.map((read) => read(text, zone)).find((date) => date.isValid)
  if (found) return found
  const millis = DateTime.fromMillis(Date.parse(text) || Number.NaN)
  return millis.isValid ? millis : undefined
}

/** A value as an error names it: 'abc', array, object. */
export function describeValue(value: unknown): string {
  if (value === null || typeof value !== 'object') return `'${String(value)}'`
  return Array.isArray(value) ? 'array' : 'object'
}
