import { parse } from 'csv-parse/sync'
import { isObject, setOwn } from '../../../workflows/json.ts'
import type { ReadableFormat } from '../../../workflows/nodes/formats.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import { copyValue, setField } from '../../nodes/kit/paths.ts'
import { describeLarge, readJson } from '../../reading/json.ts'
import { invalidFile } from './faults.ts'
import { gunzip, unpackAll } from './pack.ts'
import { readRows } from './sheets.ts'
import { readFileText } from './texts.ts'
import type { FileReading, FileSource, ReadingOptions, Warn } from './work.ts'
import type { Cell } from './workbook/cells.ts'

type Item = Record<string, unknown>
type Source = FileSource & { options: ReadingOptions }

/**
 * What a file says as items, in the shapes that n8n gives it: rows are items, all else goes into a field of the item
 * that had the file. Only for an evaluator process. Throws a NodeFailure as readFormat does.
 */
export async function readIntoItem(format: ReadableFormat, source: Source, warn: Warn): Promise<FileReading> {
  const { options } = source
  const { base, field } = options.item!
  if (format === 'zip') return { unpacked: await unpackAll(source) }
  if (format === 'gzip') return { unpacked: [{ name: source.name, bytes: gunzip(source) }] }
  if (format === 'csv') return { output: readCsvRows(source, warn) }
  if (format === 'xlsx') return { output: await readSheetRows(source, warn) }
  if (format === 'pdf') {
    const read = await (await import('./pdf.ts')).readPdfForItem(source, options.item!)
    return { output: { ...base, ...read } }
  }
  const value = readValue(format, source, warn)
  if (field === undefined)
    return { output: isObject(value) ? { ...value, ...base } : { ...base, data: value } }
  const item = copyValue(base)
  setField(item, field, value)
  return { output: item }
}

function readValue(format: ReadableFormat, source: Source, warn: Warn): unknown {
  if (format === 'base64') return Buffer.from(source.bytes).toString('base64')
  const { encoding, largeNumbers } = source.options
  const text = readFileText(source, { encoding, format: format === 'json' ? 'json' : 'text' }, warn)
  if (format !== 'json') return text
  if (text === '') return {}
  try {
    const read = readJson(text, largeNumbers)
    const message = describeLarge(read, largeNumbers)
    if (message) warn(message)
    return read.value
  } catch (error) {
    throw invalidFile(source.name, `is not valid JSON: ${(error as Error).message.slice(0, 300)}`)
  }
}

/** Rows of CSV as items; without a header each is {row}. Empty cells are left out, if `empty` does not keep them. */
function readCsvRows(source: Source, warn: Warn): Item[] {
  const { options, name } = source
  const { empty, bom, fromLine = 1, maxRows, faulty } = options.item!
  const text = readFileText(
    { ...source, keepsMark: true },
    { encoding: options.encoding, format: 'text' },
    warn,
  )
  let skipped = 0
  let records: (Item | string[])[]
  try {
    records = parse(text, {
      delimiter: options.delimiter ?? ',',
      from_line: fromLine,
      bom: bom === true,
      ...(maxRows === undefined ? {} : { to: maxRows }),
      skip_records_with_error: faulty !== undefined,
      skip_empty_lines: true,
      columns: options.header !== false,
      relax_quotes: options.lenient === true,
      on_skip: () => {
        skipped++
        return undefined
      },
    })
  } catch (error) {
    throw new NodeFailure(`${name} is not valid CSV: ${(error as Error).message.slice(0, 300)}`, {
      type: 'InvalidInput',
    })
  }
  if (faulty !== undefined && faulty > 0 && skipped > faulty)
    throw invalidFile(name, `has ${skipped} rows that cannot be read; at most ${faulty} are left out`)
  if (skipped > 0) warn(`${skipped} rows that cannot be read were left out`)
  const rows = records.map((record) =>
    empty ? record : Object.fromEntries(Object.entries(record).filter(([, cell]) => cell !== '')),
  )
  return options.header === false ? rows.map((row) => ({ row })) : (rows as Item[])
}

/** Rows of a sheet as items, named as SheetJS names them. Dates are Excel's numbers. */
async function readSheetRows(source: Source, warn: Warn): Promise<Item[]> {
  const { options } = source
  const { cells } = await readRows(source, { ...options, dates: 'number', largeNumbers: 'number' }, warn)
  const from = (options.headerRow ?? 1) - 1
  const rows = cells.slice(from)
  const fill = options.item!.empty === true ? '' : undefined
  if (options.header === false) return rows.map((row) => ({ row: trimRow(row, fill) }))
  const names = nameColumns(rows[0] ?? [])
  return rows.slice(1).flatMap((row) => {
    const item: Item = {}
    for (const [at, name] of names.entries()) {
      const cell = row[at] ?? fill
      if (cell !== undefined) setOwn(item, name, cell)
    }
    return row.every((cell) => cell === null) ? [] : [item]
  })
}

function trimRow(row: Cell[], fill: string | undefined): unknown[] {
  const last = row.findLastIndex((cell) => cell !== null)
  return (fill === undefined ? row.slice(0, last + 1) : row).map((cell) => cell ?? fill ?? null)
}

function nameColumns(row: Cell[]): string[] {
  const counts = new Map<string, number>()
  return row.map((cell) => {
    const name =
      cell === null ? '__EMPTY' : typeof cell === 'boolean' ? String(cell).toUpperCase() : String(cell)
    let count = counts.get(name) ?? 0
    if (count === 0) {
      counts.set(name, 1)
      return name
    }
    let other = name
    do {
      other = `${name}_${count}`
      count++
    } while (counts.has(other))
    counts.set(name, count)
    counts.set(other, 1)
    return other
  })
}
