import { setOwn } from '../../../workflows/json.ts'
import { quoteShort } from '../../../workflows/problem.ts'
import { createPacer } from '../../expressions/pace.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import { readFirstRow } from './ranges.ts'

type Cells = unknown[]
type Filter = { column: string; value?: unknown }
type Reading = {
  answer: { range?: string; values?: Cells[] } | null
  /** The row of the range with the titles, from 1; without it the first one that is not empty. */
  headerRow?: number | null
  firstRow?: number | null
  emptyRows: 'skip' | 'stop' | 'keep'
  filters?: Filter[] | null
  combine: 'all' | 'any'
  /** first: the first row of all that match; each: the first one for each filter. */
  matches: 'all' | 'first' | 'each'
}

const wrong = (message: string) => new NodeFailure(message, { type: 'InvalidInput' })

/** A row of the range: its number in the sheet, and its cells. */
type Line = { number: number; cells: Cells }

const isFilled = (cell: unknown) => cell !== '' && cell !== null && cell !== undefined

/**
 * The rows of a sheet as objects by the titles of their columns, each with its number in the sheet as `row_number`.
 * Columns without a title are `col_1` and so on; those that are empty throughout are left out.
 */
export async function makeRows(reading: Reading): Promise<unknown[]> {
  const { answer, headerRow, firstRow, emptyRows } = reading
  const first = readFirstRow(answer?.range)
  const lines = (answer?.values ?? []).map((cells, at) => ({ number: first + at, cells }))
  const at = headerRow ? headerRow - 1 : lines.findIndex(({ cells }) => cells.some(isFilled))
  const header = lines[at]
  if (!header) {
    if (headerRow && lines.length > 0) throw wrong(`headerRow: the range has only ${lines.length} rows`)
    return []
  }
  const found = lines.slice(firstRow ? firstRow - 1 : at + 1)
  const end = emptyRows === 'stop' ? found.findIndex(({ cells }) => !cells.some(isFilled)) : -1
  const kept = end < 0 ? found : found.slice(0, end)
  const rows = emptyRows === 'keep' ? kept : kept.filter(({ cells }) => cells.some(isFilled))
  // A column whose cell in the first row is empty is a column, too: n8n has it, and expressions name it.
  const width = headerRow ? 0 : lines[0]!.cells.length
  const titles = nameTitles(header.cells, found, width)
  return writeLines(await filterRows(rows, titles, reading), titles)
}

type Title = { name: string; at: number }

/** The columns that are not empty throughout, or that are behind the first row, with their titles. */
function nameTitles(header: Cells, rows: Line[], firstWidth: number): Title[] {
  const width = rows.reduce((most, { cells }) => Math.max(most, cells.length), header.length)
  const filled = Array.from({ length: width }, (_, at) => isFilled(header[at]))
  for (const { cells } of rows)
    for (const [at, cell] of cells.entries()) if (isFilled(cell)) filled[at] = true
  const kept = [...filled.keys()].filter((at) => at >= firstWidth || filled[at])
  // The number of the row is the column before the first one.
  return kept.map((at, place) => ({
    name: isFilled(header[at]) ? String(header[at]) : `col_${place + 1}`,
    at,
  }))
}

async function filterRows(rows: Line[], titles: Title[], reading: Reading): Promise<Line[]> {
  const { filters, combine, matches } = reading
  if (!filters || filters.length === 0) return matches === 'first' ? rows.slice(0, 1) : rows
  const tests = filters.map(({ column, value }) => {
    const title = titles.find(({ name }) => name === column)
    if (!title && column !== 'row_number') throw wrong(`The column ${quoteShort(column)} could not be found`)
    const wanted = String(value ?? '')
    return ({ cells, number }: Line) => String((title ? cells[title.at] : number) ?? '') === wanted
  })
  const pace = createPacer()
  const found: Line[] = []
  if (combine === 'all')
    for (const row of rows) {
      await pace()
      if (tests.every((test) => test(row))) found.push(row)
    }
  else
    for (const test of tests) {
      const known = new Set(found)
      const own: Line[] = []
      for (const row of rows) {
        await pace()
        if (test(row)) own.push(row)
      }
      found.push(...(matches === 'each' ? own.slice(0, 1) : own).filter((row) => !known.has(row)))
    }
  return matches === 'first' || (matches === 'each' && combine === 'all') ? found.slice(0, 1) : found
}

async function writeLines(rows: Line[], titles: Title[]): Promise<unknown[]> {
  const pace = createPacer()
  const written: unknown[] = []
  for (const { number, cells } of rows) {
    await pace()
    const row: Record<string, unknown> = { row_number: number }
    for (const { name, at } of titles) setOwn(row, name, cells[at] ?? '')
    written.push(row)
  }
  return written
}
