import type { LargeNumbers } from '../../../../workflows/nodes/fields.ts'
import { readJson } from '../../../reading/json.ts'
import type { DateKind } from './formatcodes.ts'
import type { SheetPlace, Workbook } from './parts.ts'
import { DAYS_TO_1904, readIsoSerial, writeSerial } from './serials.ts'
import { collectText, unescapeText } from './strings.ts'
import type { Styles } from './styles.ts'

export type Cell = string | number | boolean | null

/** The cells of a sheet that have a value, and what was found about the others. Rows and columns count from 1. */
export type SheetCells = {
  cells: { row: number; column: number; value: Exclude<Cell, null> }[]
  rows: number
  columns: number
  /**
   * The number of cells without an address, of formulas without a value, of errors, of dates that are no day, and of
   * numbers with too many digits.
   */
  unplaced: number
  /** How many cells name a shared text that the workbook does not have. */
  lost: number
  empty: number
  broken: number
  impossible: number
  large: number
}

type CellOptions = {
  strings: string[]
  styles: Styles
  dates: 'text' | 'number'
  largeNumbers: LargeNumbers
}

type Open = { address: string; type: string; style: number; value: string | undefined; isFormula: boolean }

/** The most columns that Excel has is XFD, and its most rows are 1048576. */
const ADDRESS = /^([A-Z]{1,4})([1-9]\d{0,7})$/

/** Reads the cells of a sheet. */
export async function readCells(
  workbook: Workbook,
  sheet: SheetPlace,
  how: CellOptions,
): Promise<SheetCells> {
  const found: SheetCells = {
    cells: [],
    rows: 0,
    columns: 0,
    unplaced: 0,
    lost: 0,
    empty: 0,
    broken: 0,
    impossible: 0,
    large: 0,
  }
  const inline = collectText()
  let cell: Open | undefined
  let isValue = false
  await workbook.scan(sheet.path, {
    open(name, attributes) {
      if (name === 'c') {
        const style = Number(attributes.get('s') ?? 0)
        const [address, type] = [attributes.get('r') ?? '', attributes.get('t') ?? 'n']
        cell = { address, type, style, value: undefined, isFormula: false }
        inline.clear()
      } else if (cell && name === 'v') {
        isValue = true
        cell.value = ''
      } else if (cell && name === 'f') cell.isFormula = true
      else if (cell) inline.open(name)
    },
    text(text) {
      if (cell && isValue) cell.value += text
      else inline.add(text)
    },
    close(name) {
      if (name === 'v') isValue = false
      else if (name === 'c' && cell) {
        const [, letters, digits] = ADDRESS.exec(cell.address) ?? []
        const value = readCell(cell, inline.read(), { ...how, from1904: workbook.from1904 }, found)
        if (letters === undefined) found.unplaced++
        else if (value !== null) {
          const [row, column] = [Number(digits), numberColumn(letters)]
          found.rows = Math.max(found.rows, row)
          found.columns = Math.max(found.columns, column)
          found.cells.push({ row, column, value })
        }
        cell = undefined
      } else inline.close(name)
    },
  })
  return found
}

function readCell(
  { type, style, value, isFormula }: Open,
  inline: string,
  how: CellOptions & { from1904: boolean },
  found: SheetCells,
): Cell {
  if (type === 'e') {
    found.broken++
    return null
  }
  if (type === 'inlineStr') return inline || null
  if (value === undefined || (value.trim() === '' && type !== 'str')) {
    if (isFormula) found.empty++
    return null
  }
  if (type === 's') {
    const text = /^\s*\d+\s*$/.test(value) ? how.strings[Number(value)] : undefined
    if (text === undefined) found.lost++
    return text || null
  }
  if (type === 'str') return unescapeText(value) || null
  if (type === 'b') return value.trim() === '1' || value.trim() === 'true'
  if (type === 'd') return readIsoDate(value.trim(), style, how, found)
  return readNumber(value.trim(), style, how, found)
}

function readNumber(
  source: string,
  style: number,
  how: CellOptions & { from1904: boolean },
  found: SheetCells,
): Cell {
  const number = Number(source)
  if (!Number.isFinite(number)) return source
  const kind = how.styles(style, number)
  if (kind !== undefined) return describeDate(number, kind, how, found)
  if (!/^-?\d{16,}$/.test(source)) return number
  const { value, large } = readJson(source.replace(/^(-?)0+(?=\d)/, '$1'), how.largeNumbers)
  if (large) found.large++
  return value as number | string
}

function readIsoDate(
  text: string,
  style: number,
  how: CellOptions & { from1904: boolean },
  found: SheetCells,
): Cell {
  const serial = readIsoSerial(text, how.from1904)
  if (serial === undefined) return text
  const kind = how.styles(style, serial) ?? (/^T?\d\d:/.test(text) ? 'time' : 'moment')
  return describeDate(serial, kind, how, found)
}

function describeDate(
  serial: number,
  kind: DateKind,
  { dates, from1904 }: CellOptions & { from1904: boolean },
  found: SheetCells,
): Cell {
  const text = writeSerial(serial, kind, from1904)
  if (text === undefined && dates === 'text') found.impossible++
  if (text !== undefined && dates === 'text') return text
  // Numbers of dates are days of the calendar that begins with 1900, whatever the workbook has.
  return from1904 && text?.includes('T') ? serial + DAYS_TO_1904 : serial
}

/** The number of a column from 1: `A` is 1, `AA` is 27. */
export function numberColumn(letters: string): number {
  let number = 0
  for (const letter of letters) number = number * 26 + letter.charCodeAt(0) - 64
  return number
}
