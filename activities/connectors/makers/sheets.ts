import { withoutFiles } from '../../../workflows/itemfiles.ts'
import { isObject, setOwn } from '../../../workflows/json.ts'
import { quoteShort } from '../../../workflows/problem.ts'
import { createPacer } from '../../expressions/pace.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import type { Maker } from './maker.ts'
import { nameColumn, quoteSheet, readColumn } from './ranges.ts'
import { makeRows } from './sheetrows.ts'

type Row = Record<string, unknown>

/** What the actions of Google Sheets work out. */
export const SHEET_MAKERS: Record<string, Maker> = {
  findSheet,
  sheetRows: makeRows,
  keyColumn: findKeyColumn,
  appendPlan: planAppend,
  updatePlan: planUpdate,
  columnRange: findColumns,
}

const ROW_NUMBER = 'row_number'

const wrong = (message: string) => new NodeFailure(message, { type: 'InvalidInput' })

type Sheets = { sheets?: { properties: { sheetId: number; title: string; gridProperties?: object } }[] }

/** The sheet that a text names: by its id as `gid=0`, else by its title. */
function findSheet({ book, sheet }: { book: Sheets; sheet: string }): unknown {
  const all = (book.sheets ?? []).map(({ properties }) => properties)
  const id = /^gid=(\d+)$/.exec(sheet.trim())?.[1]
  const found =
    all.find(({ sheetId }) => id !== undefined && sheetId === Number(id)) ??
    all.find(({ title }) => title === sheet)
  if (!found) {
    const known = all.map(({ title }) => quoteShort(title)).join(', ')
    throw wrong(`sheet: the spreadsheet has none that is ${quoteShort(sheet)}; it has ${known || 'none'}`)
  }
  const { rowCount = 1, columnCount = 1 } = Object(found.gridProperties)
  return { id: found.sheetId, title: found.title, name: quoteSheet(found.title), rowCount, columnCount }
}

type Given = {
  sheet: { name: string; columnCount: number }
  rows: unknown[]
  /** The cells of the row with the names of the columns, as they are shown. */
  header?: unknown[][] | null
  headerRow: number
  extra: 'add' | 'ignore' | 'refuse'
}

/** The rows to write as objects without files, the columns of the sheet, and those that are to be added to it. */
async function readTable({ rows, header, extra, sheet, headerRow }: Given, keeps: string[] = []) {
  const known = (header?.[0] ?? []).map((cell) => String(cell ?? ''))
  const table = rows.map((row, at) => {
    if (!isObject(row)) throw wrong(`rows[${at}]: must be an object`)
    return withoutFiles(row)
  })
  const pace = createPacer()
  const all = new Set(known)
  const added: string[] = []
  const isNew = known.every((name) => name === '')
  for (const [at, row] of table.entries()) {
    await pace()
    for (const name of [...keeps, ...Object.keys(row)]) {
      if (name === ROW_NUMBER || all.has(name) || name === '') continue
      if (extra === 'refuse' && !isNew)
        throw wrong(`rows[${at}]: the sheet has no column ${quoteShort(name)}`)
      if (extra === 'ignore' && !isNew) continue
      all.add(name)
      added.push(name)
    }
  }
  const columns = isNew ? added : [...known, ...added]
  if (columns.length === 0) throw wrong('rows: have no values, and the sheet has no columns')
  const titles = `${sheet.name}!A${headerRow}:${nameColumn(columns.length - 1)}${headerRow}`
  return {
    table,
    columns,
    /** The row of titles to write: null if the sheet has all. */
    titles: added.length > 0 ? { range: titles, values: [columns] } : null,
    /** How many columns the sheet lacks for them. */
    wider: Math.max(0, columns.length - sheet.columnCount),
    range: titles,
  }
}

/** Rows to append, in the order of the sheet's columns. */
async function planAppend(given: Given): Promise<unknown> {
  const { table, columns, titles, wider, range } = await readTable(given)
  return { titles, wider, range, values: await writeRows(table, columns) }
}

async function writeRows(table: Row[], columns: string[]): Promise<unknown[][]> {
  const pace = createPacer()
  const values: unknown[][] = []
  for (const row of table) {
    await pace()
    values.push(columns.map((name) => (Object.hasOwn(row, name) ? (writeCell(row[name]) ?? '') : '')))
  }
  return values
}

/** A value as a cell takes it: null leaves the cell as it is. */
function writeCell(value: unknown): unknown {
  if (value === null || value === undefined) return null
  return typeof value === 'object' ? JSON.stringify(value) : value
}

/** Where the values of the key stand below the titles; null where there is no such column, or no column is needed. */
function findKeyColumn({
  header,
  key,
  sheet,
  headerRow,
  firstRow,
}: Given & { key: string; firstRow?: number | null }): unknown {
  const at = (header?.[0] ?? []).findIndex((cell) => String(cell ?? '') === key)
  if (key === ROW_NUMBER || at < 0) return null
  return { range: `${sheet.name}!${nameColumn(at)}${readFirst({ headerRow, firstRow })}:${nameColumn(at)}` }
}

/** The number of the first row below the titles. */
const readFirst = ({ headerRow, firstRow }: { headerRow: number; firstRow?: number | null }) =>
  firstRow ?? headerRow + 1

type Update = Given & {
  key: string
  firstRow?: number | null
  /** The key's cells as they are shown, and as they are. */
  shown?: unknown[][] | null
  plain?: unknown[][] | null
  upsert: boolean
  missing: 'fail' | 'ignore'
}

/** The cells to set in rows that are there, and the rows to append. */
async function planUpdate(given: Update): Promise<unknown> {
  const { key, sheet, upsert, missing } = given
  const byNumber = key === ROW_NUMBER
  const columns = (given.header?.[0] ?? []).map((cell) => String(cell ?? ''))
  if (!byNumber && !columns.includes(key) && (!upsert || (given.extra !== 'add' && columns.some(Boolean))))
    throw wrong(`key: the sheet has no column ${quoteShort(key)}`)
  const read = await readTable(given, upsert ? [key] : [])
  const places = byNumber ? undefined : placeKeys(given)
  const pace = createPacer()
  const data: object[] = []
  const append = new Map<string, Row>()
  const unkeyed: Row[] = []
  for (const [at, row] of read.table.entries()) {
    await pace()
    const value = Object.hasOwn(row, key) ? row[key] : undefined
    if (byNumber) {
      const isRow = Number.isInteger(Number(value)) && Number(value) > given.headerRow
      if (!isRow) throw wrong(`rows[${at}]: ${ROW_NUMBER} must be the number of a row below the titles`)
      addCells(data, sheet.name, read.columns, row, Number(value), ROW_NUMBER)
      continue
    }
    const known = value === null || value === undefined ? undefined : places!.get(String(value))
    if (known !== undefined) addCells(data, sheet.name, read.columns, row, known, key)
    else if (upsert && (value === null || value === undefined)) unkeyed.push(row)
    else if (upsert) append.set(String(value), { ...append.get(String(value)), ...row })
    else if (missing === 'fail')
      throw wrong(
        `rows[${at}]: no row has ${quoteShort(String(value ?? ''))} in the column ${quoteShort(key)}`,
      )
  }
  const values = await writeRows([...append.values(), ...unkeyed], read.columns)
  const { titles, wider, range } = read
  const [updates, appends] = [data.length > 0, values.length > 0]
  return { titles, wider, range, data, values, updates, appends }
}

/** The number of the first row for each value of the key: as its cell shows it, or as it is. */
function placeKeys({ shown, plain, ...rows }: Update): Map<string, number> {
  const firstRow = readFirst(rows)
  const places = new Map<string, number>()
  for (const cells of [shown, plain])
    for (const [at, row] of (cells ?? []).entries()) {
      const text = String(row[0] ?? '')
      const known = places.get(text)
      if (text !== '' && (known === undefined || (cells === shown && known > firstRow + at)))
        places.set(text, firstRow + at)
    }
  return places
}

function addCells(data: object[], sheet: string, columns: string[], row: Row, number: number, key: string) {
  for (const [at, name] of columns.entries()) {
    // The first of several columns of the same name is meant.
    if (name === key || name === '' || !Object.hasOwn(row, name) || columns.indexOf(name) !== at) continue
    const cell = writeCell(row[name])
    if (cell !== null) data.push({ range: `${sheet}!${nameColumn(at)}${number}`, values: [[cell]] })
  }
}

/** The columns that a letter and a number of them name, as the API counts: from 0, without the last one. */
function findColumns({ start, count }: { start: string; count: number }): unknown {
  const at = readColumn(start)
  if (at === undefined) throw wrong('start: must be the letters of a column, such as B')
  const range = {}
  setOwn(range, 'startIndex', at)
  setOwn(range, 'endIndex', at + count)
  return { ...range, letters: `${nameColumn(at)}:${nameColumn(at + count - 1)}` }
}
