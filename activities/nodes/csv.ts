import { once } from 'node:events'
import { parse } from 'csv-parse'
import { stringify } from 'csv-stringify/sync'
import { isObject, setOwn } from '../../workflows/json.ts'
import { createPacer } from '../expressions/pace.ts'
import { renderText } from './kit/config.ts'
import { NodeFailure } from './kit/failure.ts'
import { readItems } from './kit/items.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'

const CHUNK = 32_768
const ROWS = 200
const MAX_CHARS = 8_000_000

/**
 * CSV: `parse` outputs {items}, objects with the first line's names as keys (arrays if `header` is false).
 * Every cell is a string, a missing one null. `format` outputs {text} with a column for each key of the
 * items, or for each of `columns`: null and missing values are empty cells, objects are JSON. Fails with
 * InvalidInput for invalid CSV and with OutputTooLarge above 8 MB.
 */
export const runCsv: NodeRunner = async (context) => {
  if (context.config.operation === 'format') return { output: { text: await formatCsv(context) } }
  const rows = await parseCsv(await renderText(context, 'value'), String(context.config.delimiter ?? ','))
  if (context.config.header === false) return { output: { items: rows } }
  const [first = [], ...rest] = rows
  const width = rest.reduce((widest, row) => Math.max(widest, row.length), first.length)
  const names = nameColumns(first, width)
  if (rest.length * names.reduce((sum, name) => sum + name.length + 6, 0) > MAX_CHARS) throw outputTooLarge()
  const pace = createPacer()
  const items: Record<string, unknown>[] = []
  for (const row of rest) {
    await pace()
    const item: Record<string, unknown> = {}
    for (const [i, name] of names.entries()) setOwn(item, name, row[i] ?? null)
    items.push(item)
  }
  return { output: { items } }
}

async function parseCsv(text: string, delimiter: string): Promise<string[][]> {
  const parser = parse({
    delimiter,
    record_delimiter: ['\r\n', '\n', '\r'],
    bom: true,
    relax_column_count: true,
    skip_empty_lines: true,
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
    throw new NodeFailure(`value is not valid CSV: ${(error as Error).message}`, { type: 'InvalidInput' })
  }
  if (chars > MAX_CHARS) throw outputTooLarge()
  return rows
}

/** A unique name for each column. */
function nameColumns(given: string[], width: number): string[] {
  const taken = new Set<string>()
  return Array.from({ length: width }, (_, i) => {
    const base = given[i]?.trim() || `column_${i + 1}`
    let name = base
    for (let n = 2; taken.has(name); n++) name = `${base}_${n}`
    taken.add(name)
    return name
  })
}

async function formatCsv(context: NodeContext): Promise<string> {
  const { config } = context
  const items = await readItems(context)
  const columns = (config.columns as string[] | undefined) ?? (await findColumns(items))
  // Each cell takes at least one character, its delimiter.
  if (items.length * columns.length > MAX_CHARS) throw outputTooLarge()
  const head = config.header === false || columns.length === 0 ? [] : [columns]
  const options = {
    delimiter: String(config.delimiter ?? ','),
    escape_formulas: config.escapeFormulas === true,
  }
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

async function findColumns(items: unknown[]): Promise<string[]> {
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
