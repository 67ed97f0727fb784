import { invalidConfig } from '../../nodes/kit/failure.ts'
import { describeLarge } from '../../reading/json.ts'
import { nameCells } from './csv.ts'
import { excessiveFile, invalidFile } from './faults.ts'
import type { FileSource, ReadingOptions, Warn } from './work.ts'
import { type Cell, numberColumn, readCells, type SheetCells } from './workbook/cells.ts'
import { openWorkbook, type SheetPlace } from './workbook/parts.ts'
import { readStrings } from './workbook/strings.ts'
import { readStyles } from './workbook/styles.ts'

/** The most cells of a sheet, empty ones between others included. */
const MAX_CELLS = 1_000_000

/**
 * The rows of a sheet of a workbook (XLSX): {items, sheet}, objects with the names in the header's row as keys, or
 * arrays of cells without a header. Cells are strings, numbers, booleans and null; what is formatted as a date is
 * `2026-01-31T08:30:00`, without a zone, a time alone `08:30:00`, a time that has passed `36:00:00`, or all of them
 * Excel's numbers. A formula is the value that was stored with it. Throws a NodeFailure if the file is not a
 * workbook, or is too large.
 */
export async function readWorkbook(source: FileSource, options: ReadingOptions, warn: Warn) {
  const { cells, before, sheet } = await readRows(source, options, warn)
  if (options.header === false) return { items: cells, sheet }
  const headerAt = (options.headerRow ?? before + 1) - before - 1
  if (headerAt < 0 || (headerAt >= cells.length && options.headerRow !== undefined))
    throw invalidConfig(
      'headerRow',
      `is ${options.headerRow}, which is no row of ${options.range ?? 'the sheet'}`,
    )
  const items = await nameCells(cells.slice(headerAt))
  // An empty row says nothing, as an empty line of a CSV.
  return { items: items.filter((item) => Object.values(item).some((cell) => cell !== null)), sheet }
}

/** The rows of a sheet's cells in its range, and how many rows of the sheet are before them. */
export async function readRows(source: FileSource, options: ReadingOptions, warn: Warn) {
  const workbook = await openWorkbook(source)
  const sheet = options.sheet ?? 1
  const place = findSheet(source.name, workbook.sheets, sheet)
  const how = { dates: options.dates ?? 'text', largeNumbers: options.largeNumbers ?? 'text' }
  const [strings, styles] = [await readStrings(workbook), await readStyles(workbook)]
  const found = await readCells(workbook, place, { ...how, strings, styles })
  if (found.unplaced > 0) throw invalidFile(source.name, 'has cells without an address, which cannot be read')
  if (found.lost > 0) throw invalidFile(source.name, 'has cells whose texts are missing in it')
  if (found.rows * found.columns > MAX_CELLS)
    throw excessiveFile(
      source.name,
      `has a sheet of ${found.rows} rows and ${found.columns} columns; at most ${MAX_CELLS} cells are read`,
    )
  warnOfCells(place.name, found, options, warn)
  return { ...cutRange(fillRows(found), options.range), sheet }
}

function findSheet(name: string, sheets: SheetPlace[], wanted: string | number): SheetPlace {
  const found =
    typeof wanted === 'number' ? sheets[wanted - 1] : sheets.find((sheet) => sheet.name === wanted)
  if (found) return found
  if (sheets.length === 0) throw invalidFile(name, 'is not XLSX that can be read: it has no sheets')
  const names = sheets.slice(0, 10).map((sheet) => sheet.name.slice(0, 100))
  throw invalidConfig(
    'sheet',
    `is no sheet of ${name}: it has ${names.join(', ')}${sheets.length > 10 ? ' ...' : ''}`,
  )
}

function warnOfCells(
  sheet: string,
  { empty, broken, impossible, large }: SheetCells,
  { largeNumbers }: ReadingOptions,
  warn: Warn,
): void {
  const count = (cells: number, one: string, more: string) =>
    `${cells} ${cells === 1 ? one : more} of ${sheet}`
  if (empty > 0)
    warn(
      `${count(empty, 'formula', 'formulas')} ${empty === 1 ? 'has no stored value, and is' : 'have no stored value, and are'} null: open and save the file in Excel`,
    )
  if (broken > 0)
    warn(
      `${count(broken, 'cell', 'cells')} ${broken === 1 ? 'has an error such as #N/A, and is' : 'have an error such as #N/A, and are'} null`,
    )
  if (impossible > 0)
    warn(
      `${count(impossible, 'date', 'dates')} ${impossible === 1 ? 'is' : 'are'} no day of the calendar, such as Excel's 29 February 1900, and ${impossible === 1 ? 'stays a number' : 'stay numbers'}`,
    )
  const message = describeLarge(large > 0 ? { large: { count: large, key: '' } } : {}, largeNumbers)
  if (message) warn(message)
}

/** All cells up to the last row and column that have one; missing cells are null. */
function fillRows({ cells, rows, columns }: SheetCells): Cell[][] {
  const filled = Array.from({ length: rows }, () => new Array<Cell>(columns).fill(null))
  for (const { row, column, value } of cells) {
    const cellsOfRow = filled[row - 1]
    if (cellsOfRow) cellsOfRow[column - 1] = value
  }
  return filled
}

/** The cells of a range such as `B2:D20`, and how many rows of the sheet are before them. */
function cutRange(rows: Cell[][], range: string | undefined): { cells: Cell[][]; before: number } {
  if (range === undefined) return { cells: rows, before: 0 }
  const [, left, top, right, bottom] = /^([A-Z]+)(\d+):([A-Z]+)(\d+)$/.exec(range.toUpperCase())!
  const [from, to] = [numberColumn(left!), numberColumn(right!)].sort((a, b) => a - b) as [number, number]
  const [first, last] = [Number(top), Number(bottom)].sort((a, b) => a - b) as [number, number]
  return { cells: rows.slice(first - 1, last).map((row) => row.slice(from - 1, to)), before: first - 1 }
}
