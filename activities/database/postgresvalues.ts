import pg from 'pg'
import { readJsonColumn, readNumber, readTime } from './values.ts'

const { builtins } = pg.types

/** How values are read, by the id of their type; all others are texts. */
const READERS: Record<number, (text: string) => unknown> = {
  [builtins.BOOL]: (text) => text === 't',
  [builtins.INT2]: Number,
  [builtins.INT4]: Number,
  [builtins.OID]: Number,
  [builtins.INT8]: readNumber,
  [builtins.NUMERIC]: readNumber,
  [builtins.FLOAT4]: readFloat,
  [builtins.FLOAT8]: readFloat,
  [builtins.TIMESTAMPTZ]: (text) => readTime(text, 'Z'),
  [builtins.TIMESTAMP]: (text) => readTime(text, ''),
  [builtins.BYTEA]: (text) => Buffer.from(text.slice(2), 'hex').toString('base64'),
  [builtins.JSON]: readJsonColumn,
  [builtins.JSONB]: readJsonColumn,
}

/** The types of elements, by the ids of the arrays of them. */
const ELEMENTS: Record<number, number> = {
  1000: builtins.BOOL,
  1001: builtins.BYTEA,
  1005: builtins.INT2,
  1007: builtins.INT4,
  1009: builtins.TEXT,
  1014: builtins.BPCHAR,
  1015: builtins.VARCHAR,
  1016: builtins.INT8,
  1021: builtins.FLOAT4,
  1022: builtins.FLOAT8,
  1028: builtins.OID,
  1115: builtins.TIMESTAMP,
  1182: builtins.DATE,
  1185: builtins.TIMESTAMPTZ,
  1231: builtins.NUMERIC,
  2951: builtins.UUID,
  199: builtins.JSON,
  3807: builtins.JSONB,
}

const NAMES = new Map<number, string>(
  Object.entries(builtins).map(([name, id]) => [id as number, name.toLowerCase()]),
)

/** What a column of a type is called. */
export function nameSqlType(id: number): string {
  const element = ELEMENTS[id]
  return element === undefined ? (NAMES.get(id) ?? 'text') : `${NAMES.get(element)}[]`
}

// A float may be infinite or no number, which JSON has no form for.
function readFloat(text: string): number | string {
  const value = Number(text)
  return Number.isFinite(value) ? value : text
}

/** What a server has written for a value, as JSON can hold it. */
export function readSqlValue(type: number, text: string): unknown {
  const element = ELEMENTS[type]
  if (element === undefined) return (READERS[type] ?? String)(text)
  return readArray(text, READERS[element] ?? String)
}

/** The most dimensions that an array of PostgreSQL has. */
const MAX_DIMENSIONS = 6

/**
 * Reads an array literal of PostgreSQL as a list. Returns the text itself if the array has bounds of its own, as in
 * `[2:3]={1,2}`, or is not written as PostgreSQL does. Looks at each character once, for any text that a server
 * sends.
 */
function readArray(text: string, read: (text: string) => unknown): unknown {
  if (!text.startsWith('{')) return text
  const outer: unknown[] = []
  const open: unknown[][] = [outer]
  for (let at = 0; at < text.length; ) {
    const list = open.at(-1)!
    const sign = text[at]
    if (sign === '{') {
      if (open.length > MAX_DIMENSIONS || (list === outer && at > 0)) return text
      const inner: unknown[] = []
      list.push(inner)
      open.push(inner)
      at++
    } else if (sign === '}') {
      if (open.length === 1) return text
      open.pop()
      at++
    } else if (sign === ',') at++
    else {
      const end = sign === '"' ? findQuote(text, at + 1) : findEnd(text, at)
      if (end < 0 || list === outer) return text
      if (sign === '"') list.push(read(text.slice(at + 1, end).replace(/\\([\s\S])/g, '$1')))
      else {
        const part = text.slice(at, end)
        list.push(part === 'NULL' ? null : read(part))
      }
      at = sign === '"' ? end + 1 : end
    }
  }
  return open.length === 1 ? outer[0] : text
}

/** Where the quote ends that begins at `from`; -1 if it does not. */
function findQuote(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    if (text[at] === '"') return at
    if (text[at] === '\\') at++
  }
  return -1
}

function findEnd(text: string, from: number): number {
  let at = from
  while (at < text.length && !'{},"'.includes(text[at]!)) at++
  return at
}
