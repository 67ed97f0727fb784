import type { ColumnType } from '../../workflows/nodes/tables.ts'
import { nameType } from '../../workflows/problem.ts'
import type { StoredColumn } from './columns.ts'

/** The cells of a row by the ids of their columns. An empty cell has no key. */
export type Cells = Record<string, unknown>

/** A row as it is stored. */
export type StoredRow = { id: string; cells: Cells; createdAt: Date; updatedAt: Date }

/** The value of a cell, or in `problem` why the cell cannot have it. Null is an empty cell. */
type Read = { value: unknown } | { problem: string }

/** Reads a value that someone sends for a column: a number beyond what JavaScript holds exactly is a text of its digits. */
export function readCell(type: ColumnType, given: unknown): Read {
  if (given === null || given === undefined) return { value: null }
  return READERS[type](given)
}

const READERS: Record<ColumnType, (given: unknown) => Read> = {
  text: (given) => (typeof given === 'string' ? { value: given } : wrong('a text', given)),
  number: readNumber,
  boolean: (given) => (typeof given === 'boolean' ? { value: given } : wrong('true or false', given)),
  date: readDate,
  json: (given) => ({ value: given }),
}

const wrong = (wanted: string, given: unknown): Read => ({
  problem: `must be ${wanted}, not ${typeof given === 'string' ? 'this text' : nameType(given)}`,
})

const DECIMAL = /^([+-]?)(\d{1,400})(?:\.(\d{1,400}))?(?:[eE]([+-]?\d{1,3}))?$/

function readNumber(given: unknown): Read {
  if (typeof given === 'number')
    return Number.isFinite(given)
      ? { value: given === 0 ? 0 : given }
      : { problem: 'must be a finite number' }
  const text = typeof given === 'string' ? given.trim() : undefined
  if (text === undefined || !DECIMAL.test(text)) return wrong('a number', given)
  const number = Number(text)
  if (!Number.isFinite(number)) return { problem: 'must be at most 1.8e308' }
  return { value: writeDigits(String(number)) === writeDigits(text) ? number : tidy(text) }
}

const tidy = (text: string) => text.replace(/^\+/, '')

/** The number's digits without zeros around them, and where its point is: the same for texts of the same number. */
function writeDigits(text: string): string {
  const [, sign, whole = '', fraction = '', exponent = '0'] = DECIMAL.exec(text) ?? []
  const all = whole + fraction
  const digits = all.replace(/^0+/, '')
  if (digits === '') return '0'
  const point = whole.length - (all.length - digits.length) + Number(exponent)
  return `${sign === '-' ? '-' : ''}${digits.replace(/0+$/, '')}@${point}`
}

const DATE = /^(?!0000)(\d{4})-(\d\d)-(\d\d)(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?$/

function readDate(given: unknown): Read {
  if (typeof given !== 'string') return wrong('a date in ISO 8601', given)
  const [text, year, month, day, time, , , offset] = DATE.exec(given.trim()) ?? []
  // Date would read February 30 as March 2.
  const midnight = new Date(`${year}-${month}-${day}T00:00:00Z`)
  const date = new Date(time && !offset ? `${text}Z` : (text ?? ''))
  if (Number.isNaN(date.getTime()) || midnight.getUTCDate() !== Number(day))
    return wrong('a date in ISO 8601', given)
  return { value: date.toISOString() }
}

/** A value as the search column of its column has it; null for an empty one. */
export function searchValue({ type }: Pick<StoredColumn, 'type'>, value: unknown): Buffer | string | null {
  if (value === null || value === undefined) return null
  if (type === 'text') return writeText(value as string)
  if (type === 'json') return String(JSON.stringify(value).length)
  if (type === 'boolean') return value === true ? '1' : '0'
  return type === 'date' ? String(Date.parse(value as string)) : String(value)
}

/** A text in UTF-8, where a lone surrogate has the three bytes that its code would have: no two texts are the same. */
function writeText(text: string): Buffer {
  if (text.isWellFormed()) return Buffer.from(text)
  return Buffer.concat(
    Array.from(text, (sign) => {
      const code = sign.charCodeAt(0)
      if (sign.length > 1 || code < 0xd800 || code > 0xdfff) return Buffer.from(sign)
      return Buffer.from([0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f)])
    }),
  )
}

/** The same text for values that are equal to the database. */
export function equalityKey(column: Pick<StoredColumn, 'type'>, value: unknown): string {
  const found = searchValue(column, value)
  if (typeof found === 'string') return writeDigits(found)
  return found === null ? '' : found.toString('latin1')
}
