import writeXlsxFile from 'write-excel-file/universal'
import { isObject } from '../../../workflows/json.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import { buildXml } from '../../reading/xml/build.ts'
import { findColumns, writeCsvItems } from './csv.ts'
import { flattenItem, writeSheetCsv } from './sheetcsv.ts'
import type { FileWork, WritingOptions } from './work.ts'

type Writing = Extract<FileWork, { write: unknown }>['write']

const MARK = '\ufeff'

/** Excel's own limits. */
const MAX_ROWS = 1_048_576
const MAX_COLUMNS = 16_384
const MAX_CELL_CHARS = 32_767

/** The most cells of a workbook. */
const MAX_CELLS = 1_000_000

/**
 * The bytes of a file with this data. Throws a NodeFailure: InvalidInput for data that the format cannot have,
 * OutputTooLarge. Only for an evaluator process.
 */
export async function writeFormat({ format, data, options }: Writing): Promise<Uint8Array> {
  const value: unknown = JSON.parse(data)
  if (format === 'xlsx') return writeWorkbook(listRows(value, options), options)
  if (format === 'base64') return decodeBase64(value)
  const text = await writeText(format, value, options)
  return encodeText(options.bom ? MARK + text : text, options.encoding)
}

async function writeText(
  format: Writing['format'],
  value: unknown,
  options: WritingOptions,
): Promise<string> {
  if (format === 'csv' && options.sheets) return writeSheetCsv(listRows(value, options), options)
  if (format === 'csv') return writeCsvItems(listItems(value), options)
  if (format === 'json') return JSON.stringify(value, null, options.indent)
  if (format === 'ics') return (await import('./calendar.ts')).writeCalendar(listItems(value), new Date())
  if (format !== 'xml') return typeof value === 'string' ? value : JSON.stringify(value)
  if (!isObject(value)) throw invalidData('must be an object to write XML of')
  try {
    return buildXml(value, { document: true })
  } catch (error) {
    if (error instanceof RangeError) throw error
    throw invalidData(`cannot be written as XML: ${(error as Error).message.slice(0, 300)}`)
  }
}

function listItems(value: unknown): unknown[] {
  if (Array.isArray(value)) return value
  return value === null ? [] : [value]
}

function listRows(value: unknown, { sheets }: WritingOptions): unknown[] {
  return sheets ? listItems(value).map(flattenItem) : listItems(value)
}

function encodeText(text: string, encoding: WritingOptions['encoding'] = 'utf-8'): Uint8Array {
  if (encoding !== 'iso-8859-1') return Buffer.from(text, encoding === 'utf-8' ? 'utf8' : 'utf16le')
  return Buffer.from(text.replace(/[\u0100-\uffff]/g, '?'), 'latin1')
}

function decodeBase64(value: unknown): Uint8Array {
  const text =
    typeof value === 'string' ? value.replace(/^data:[^,]{0,200};base64,/, '').replace(/\s+/g, '') : ''
  const isValid = /^[A-Za-z0-9+/_-]*={0,2}$/.test(text) && text.replace(/=+$/, '').length % 4 !== 1
  if (typeof value !== 'string' || !isValid) throw invalidData('must be a string of base64')
  return Buffer.from(text, 'base64')
}

type Cell = { value: string | number | boolean; type: typeof String | typeof Number | typeof Boolean } | null

/** A workbook of one sheet, with a column for each key of the items, or of `columns`. Texts are never formulas. */
async function writeWorkbook(
  items: unknown[],
  { header = true, columns: chosen, sheet }: WritingOptions,
): Promise<Uint8Array> {
  const columns = chosen ?? (await findColumns(items))
  if (header) demandWidth(columns.length)
  const head = header && columns.length > 0 ? [columns.map((name) => makeCell(name, 0))] : []
  if (items.length + head.length > MAX_ROWS)
    throw invalidData(`has ${items.length} items; a sheet has at most ${MAX_ROWS} rows`)
  let cells = 0
  const rows = items.map((item, at) => {
    const values = Array.isArray(item)
      ? item
      : isObject(item)
        ? columns.map((name) => (Object.hasOwn(item, name) ? item[name] : null))
        : [item]
    demandWidth(values.length)
    cells += values.length
    if (cells > MAX_CELLS) throw invalidData(`has more than ${MAX_CELLS} cells`)
    return values.map((value) => makeCell(value, at))
  })
  const made = writeXlsxFile([...head, ...rows] as never, { sheet: sheet ?? 'Sheet1' } as never)
  const blob = await (made as unknown as { toBlob(): Promise<Blob> }).toBlob()
  return new Uint8Array(await blob.arrayBuffer())
}

function demandWidth(columns: number): void {
  if (columns > MAX_COLUMNS) throw invalidData(`has ${columns} columns; a sheet has at most ${MAX_COLUMNS}`)
}

function makeCell(value: unknown, at: number): Cell {
  if (value === null || value === undefined) return null
  if (typeof value === 'number') return { value, type: Number }
  if (typeof value === 'boolean') return { value, type: Boolean }
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  if (text.length <= MAX_CELL_CHARS) return { value: escapeCell(text), type: String }
  throw invalidData(
    `has a text of ${text.length} characters at index ${at}; a cell has at most ${MAX_CELL_CHARS}`,
  )
}

/** XML has no control characters, so a workbook writes them as `_x0001_`, and so that an underscore that looks like that. */
function escapeCell(text: string): string {
  return text.replace(/_(?=x[\da-f]{4}_)/gi, '_x005F_').replace(/[^\P{Cc}\t\n\x7f-\x9f]/gu, (sign) => {
    const code = sign.charCodeAt(0).toString(16).padStart(4, '0')
    return `_x${code.toUpperCase()}_`
  })
}

function invalidData(problem: string): NodeFailure {
  return new NodeFailure(`data ${problem}`, { type: 'InvalidInput' })
}
