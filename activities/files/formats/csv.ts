import { once } from 'node:events'
import { parse } from 'csv-parse'
import { stringify } from 'csv-stringify/sync'
import { isObject, setOwn } from '../../../workflows/json.ts'
import { createPacer } from '../../expressions/pace.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import { SOME_DELIMITER } from './delimiters.ts'

const CHUNK = 32_768
const ROWS = 200

/** The most characters of items that are read, and of CSV that is written. */
const MAX_CHARS = 8_000_000

/** What the parser says of a quote that `lenient` would take. */
const STRAY_QUOTES = ['INVALID_OPENING_QUOTE', 'CSV_INVALID_CLOSING_QUOTE']

/** `header`: whether the first line has the names of the columns. `lenient` takes quotes where CSV has none. */
export type CsvReading = {
  delimiter?: string | undefined
  header?: boolean | undefined
  lenient?: boolean | undefined
}

/** `columns`: which keys of the items are written, all of them if it is not said. */
export type CsvWriting = Omit<CsvReading, 'lenient'> & {
  columns?: string[] | undefined
  escapeFormulas?: boolean | undefined
}

/**
 * The items of a CSV text: objects with the first line's names as keys, or arrays without a header. Every cell is a
 * string, a missing one null. `what` begins the message of a failure: InvalidInput, or OutputTooLarge above 8 MB.
 */
export async function readCsvItems(
  text: string,
  { delimiter = ',', header = true, lenient = false }: CsvReading,
  what: string,
): Promise<unknown[]> {
  const rows = await parseCsv(text, { delimiter, lenient }, what)
  return header ? nameCells(rows) : rows
}

/**
 * A row of names and rows of cells as objects. A name that is missing or taken gets a number. Throws a NodeFailure
 * (OutputTooLarge) if the names alone would be more than 8 MB.
 */
export async function nameCells(rows: unknown[][]): Promise<Record<string, unknown>[]> {
  const [first = [], ...rest] = rows
  const width = rest.reduce((widest, row) => Math.max(widest, row.length), first.length)
  const names = nameColumns(
    first.map((name) => (name === null || name === undefined ? '' : String(name))),
    width,
  )
  if (rest.length * names.reduce((sum, name) => sum + name.length + 6, 0) > MAX_CHARS) throw outputTooLarge()
  const pace = createPacer()
  const items: Record<string, unknown>[] = []
  for (const row of rest) {
    await pace()
    const item: Record<string, unknown> = {}
    for (const [i, name] of names.entries()) setOwn(item, name, row[i] ?? null)
    items.push(item)
  }
  return items
}

async function parseCsv(
  text: string,
  { delimiter, lenient }: { delimiter: string; lenient: boolean },
  what: string,
): Promise<string[][]> {
  const parser = parse({
    delimiter,
    relax_quotes: lenient,
    record_delimiter: ['\r\n', '\n', '\r'],
    bom: true,
    relax_column_count: true,
    skip_empty_lines: true,
    // A quote that is never closed makes all the rest one field.
    max_record_size: MAX_CHARS,
  })
  const rows: string[][] = []
  let chars = 0
  parser.on('data', (row: string[]) => {
    for (const cell of row) chars += cell.length + 3
    if (chars <= MAX_CHARS) rows.push(row)
  })
  const bytes = Buffer.from(text)
  const pace = createPacer()
  try {
    const end = once(parser, 'end')
    // A parse error reaches the write below first; this keeps it from being an unhandled rejection as well.
    end.catch(() => {})
    for (let at = 0; at < bytes.length && chars <= MAX_CHARS; at += CHUNK) {
      await pace()
      await new Promise<void>((resolve, reject) => {
        parser.write(bytes.subarray(at, at + CHUNK), (error) => (error ? reject(error) : resolve()))
      })
    }
    parser.end()
    await end
  } catch (error) {
    if ((error as { code?: string }).code === 'CSV_MAX_RECORD_SIZE') throw outputTooLarge()
    const { code, message } = error as Error & { code?: string }
    const hint = !lenient && STRAY_QUOTES.includes(code ?? '') ? '; lenient takes stray quotes' : ''
    throw new NodeFailure(`${what} is not valid CSV: ${message}${hint}`, { type: 'InvalidInput' })
  }
  if (chars > MAX_CHARS) throw outputTooLarge()
  return rows
}

/** A unique name for each column. */
function nameColumns(given: string[], width: number): string[] {
  const taken = new Set<string>()
  /** By name the number to try next: a million columns may have the same one. */
  const numbers = new Map<string, number>()
  return Array.from({ length: width }, (_, i) => {
    const base = given[i]?.trim() || `column_${i + 1}`
    let name = base
    let number = numbers.get(base) ?? 2
    for (; taken.has(name); number++) name = `${base}_${number}`
    numbers.set(base, number)
    taken.add(name)
    return name
  })
}

/**
 * Items as CSV with a column for each of their keys: null and missing values are empty cells, objects are JSON.
 * Throws a NodeFailure (OutputTooLarge) above 8 MB.
 */
export async function writeCsvItems(
  items: unknown[],
  { delimiter = ',', header = true, columns: chosen, escapeFormulas = false }: CsvWriting,
): Promise<string> {
  const columns = chosen ?? (await findColumns(items))
  // Each cell takes at least one character, its delimiter.
  if (items.length * columns.length > MAX_CHARS) throw outputTooLarge()
  const head = !header || columns.length === 0 ? [] : [columns]
  const options = { delimiter, escape_formulas: escapeFormulas, quoted_match: SOME_DELIMITER }
  const pace = createPacer()
  const parts = [stringify(head, options)]
  let chars = 0
  for (let at = 0; at < items.length; at += ROWS) {
    await pace()
    const rows = items.slice(at, at + ROWS).map((item) => {
      if (Array.isArray(item)) return item.map(writeCell)
      return isObject(item)
        ? columns.map((name) => writeCell(Object.hasOwn(item, name) ? item[name] : null))
        : [writeCell(item)]
    })
    const part = stringify(rows, options)
    chars += part.length
    if (chars > MAX_CHARS) throw outputTooLarge()
    parts.push(part)
  }
  return parts.join('')
}

/** The keys of all items, in the order in which they are found. */
export async function findColumns(items: unknown[]): Promise<string[]> {
  const names = new Set<string>()
  const pace = createPacer()
  for (const item of items) {
    await pace()
    if (isObject(item)) for (const name of Object.keys(item)) names.add(name)
  }
  return [...names]
}

function writeCell(value: unknown): string {
  if (value === null || value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function outputTooLarge(): NodeFailure {
  return new NodeFailure('The output would be larger than 8 MB', { type: 'OutputTooLarge' })
}
