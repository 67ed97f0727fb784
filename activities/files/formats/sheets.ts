import {
  InvalidInputError,
  InvalidSpreadsheetError,
  readSheet,
  SheetNotFoundError,
} from 'read-excel-file/universal'
import { invalidConfig, NodeFailure } from '../../nodes/kit/failure.ts'
import { listEntries, storeArchive, unpackEntry } from './archive.ts'
import { nameCells } from './csv.ts'
import { excessiveFile, invalidFile, writeSize } from './faults.ts'
import type { FileSource, ReadingOptions, Warn } from './work.ts'

type Cell = string | number | boolean | Date | null

/** The most bytes that the parts of a workbook may have unpacked, all together. */
const MAX_UNPACKED = 32 * 1024 * 1024

/** The most cells of a sheet, empty ones between others included. */
const MAX_CELLS = 1_000_000

const MS_OF_DAY = 86_400_000

/** The day 0 of Excel's calendar, in days before 1970. */
const DAY_ZERO = 25_569

/**
 * The rows of a sheet of a workbook (XLSX): {items, sheet}, objects with the names in the header's row as keys, or arrays of cells
 * without a header. Cells are strings, numbers, booleans, dates (as `2026-01-31T08:30:00`, without a zone, or as Excel's
 * numbers) and null; a formula is the value that was stored with it. Throws a NodeFailure for what is no workbook,
 * or would be too much.
 */
export async function readWorkbook(source: FileSource, options: ReadingOptions, warn: Warn) {
  const buffer = await unpackParts(source, warn)
  const sheet = options.sheet ?? 1
  let rows: Cell[][]
  try {
    rows = (await readSheet(buffer, sheet, { trim: false })) as unknown as Cell[][]
  } catch (error) {
    throw describeFault(source.name, error)
  }
  const { cells, before } = cutRange(rows, options.range)
  const numbers = options.dates === 'number'
  const plain = cells.map((row) =>
    row.map((cell) => (cell instanceof Date ? writeDate(cell, numbers) : cell)),
  )
  if (options.header === false) return { items: plain, sheet }
  const headerAt = (options.headerRow ?? before + 1) - before - 1
  if (headerAt < 0 || (headerAt >= plain.length && options.headerRow !== undefined))
    throw invalidConfig(
      'headerRow',
      `is ${options.headerRow}, which is no row of ${options.range ?? 'the sheet'}`,
    )
  const items = await nameCells(plain.slice(headerAt))
  // An empty row says nothing, as an empty line of a CSV.
  return { items: items.filter((item) => Object.values(item).some((cell) => cell !== null)), sheet }
}

/**
 * The parts of a workbook that say something, in an archive that is not compressed: its reader would unpack them in threads, which
 * this process may not have, and believe what the archive says of their sizes. Refuses a workbook that would take too much.
 */
async function unpackParts(source: FileSource, warn: Warn): Promise<ArrayBuffer> {
  const { name } = source
  const parts: { name: string; bytes: Uint8Array }[] = []
  let left = MAX_UNPACKED
  const entries = await listEntries(source)
  if (!entries.some(({ fileName }) => fileName === 'xl/workbook.xml'))
    throw invalidFile(name, 'is not XLSX, but another kind of archive')
  for (const entry of entries.filter(({ fileName }) => /\.xml(\.rels)?$/.test(fileName))) {
    if (entry.uncompressedSize > left)
      throw excessiveFile(
        name,
        `has more than ${writeSize(MAX_UNPACKED)} unpacked, which is too much for a workbook`,
      )
    const unpacked = await unpackEntry(source, entry, left)
    left -= unpacked.length
    parts.push({ name: entry.fileName, bytes: unpacked })
    const text = Buffer.from(unpacked.buffer, unpacked.byteOffset, unpacked.length).toString('latin1')
    if (/<!DOCTYPE/i.test(text.slice(0, 1_000)))
      throw invalidFile(name, 'has a document type, which no workbook needs')
    if (!text.includes('<sheetData')) continue
    if (/<(?:\w+:)?c(?=[\s/>])(?![^>]{0,100}\sr=")/.test(text))
      throw invalidFile(name, 'has cells without an address, which cannot be read')
    const { rows, columns, empty, broken } = measureSheet(text)
    if (rows * columns > MAX_CELLS)
      throw excessiveFile(
        name,
        `has a sheet of ${rows} rows and ${columns} columns; at most ${MAX_CELLS} cells are read`,
      )
    if (empty > 0)
      warn(
        `${empty} formulas of ${entry.fileName} have no stored value, and are null: open and save it in Excel`,
      )
    if (broken > 0) warn(`${broken} cells of ${entry.fileName} have an error such as #N/A, and are null`)
  }
  const whole = storeArchive(parts)
  return whole.buffer.slice(whole.byteOffset, whole.byteOffset + whole.length) as ArrayBuffer
}

/** How far the cells of a sheet reach, how many formulas have no value, and how many cells have an error. */
function measureSheet(text: string): { rows: number; columns: number; empty: number; broken: number } {
  let [rows, columns, cells] = [0, 0, 0]
  for (const [, letters, digits] of text.matchAll(/<(?:\w+:)?c\b[^>]{0,100}?\sr="([A-Z]{1,4})(\d{1,8})"/g)) {
    cells++
    rows = Math.max(rows, Number(digits))
    columns = Math.max(columns, numberColumn(letters!))
  }
  for (const [, digits] of text.matchAll(/<(?:\w+:)?row\b[^>]{0,100}?\sr="(\d{1,8})"/g))
    rows = Math.max(rows, Number(digits))
  const broken = text.matchAll(/<(?:\w+:)?c\b[^>]{0,100}?\st="e"/g)
  const formulas = text.matchAll(/<\/f>(?:<v><\/v>|<v\/>)?<\/c>/g)
  return {
    rows: Math.max(rows, cells > 0 ? 1 : 0),
    columns,
    empty: [...formulas].length,
    broken: [...broken].length,
  }
}

/** The cells of a range such as `B2:D20`, and how many rows of the sheet are before them. */
function cutRange(rows: Cell[][], range: string | undefined): { cells: Cell[][]; before: number } {
  if (range === undefined) return { cells: rows, before: 0 }
  const [, left, top, right, bottom] = /^([A-Z]+)(\d+):([A-Z]+)(\d+)$/.exec(range.toUpperCase())!
  const [from, to] = [numberColumn(left!), numberColumn(right!)].sort((a, b) => a - b) as [number, number]
  const [first, last] = [Number(top), Number(bottom)].sort((a, b) => a - b) as [number, number]
  return { cells: rows.slice(first - 1, last).map((row) => row.slice(from - 1, to)), before: first - 1 }
}

/** The number of a column from 1: `A` is 1, `AA` is 27. */
function numberColumn(letters: string): number {
  return [...letters].reduce((number, letter) => number * 26 + letter.charCodeAt(0) - 64, 0)
}

/** A date of a sheet has no zone. */
function writeDate(date: Date, asNumber: boolean): string | number {
  return asNumber ? date.getTime() / MS_OF_DAY + DAY_ZERO : date.toISOString().slice(0, 19)
}

function describeFault(name: string, error: unknown): Error {
  if (error instanceof SheetNotFoundError)
    return invalidConfig('sheet', `is no sheet of ${name}: ${error.message}`)
  if (error instanceof InvalidSpreadsheetError || error instanceof InvalidInputError)
    return invalidFile(name, `is not XLSX that can be read: ${error.message}`)
  if (error instanceof NodeFailure || error instanceof RangeError || !(error instanceof Error))
    return error as Error
  return invalidFile(name, `is not XLSX that can be read: ${error.message.slice(0, 300)}`)
}
