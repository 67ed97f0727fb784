import { once } from 'node:events'
import { parse } from 'csv-parse'
import { stringify } from 'csv-stringify/sync'
import { isObject, setOwn } from '../../workflows/inputs.ts'
import { createPause } from '../pace.ts'
import { readText } from './config.ts'
import { NodeFailure } from './failure.ts'
import { readItems } from './items.ts'
import type { NodeContext, NodeRunner } from './node.ts'

const CHUNK = 32_768
const ROWS = 200
const MAX_CHARS = 8_000_000

/**
 * CSV: `parse` outputs {items}, objects by the first line's names (arrays without `header`); every cell is a text, a
 * missing one null. `format` outputs {text}: a column for each key of the items, or those of `columns`; nothing is an
 * empty cell, objects are JSON.
 */
export const runCsv: NodeRunner = async (context) => {
  if (context.config.operation === 'format') return { output: { text: await formatCsv(context) } }
  const rows = await parseCsv(await readText(context, 'value'), String(context.config.delimiter ?? ','))
  if (context.config.header === false) return { output: { items: rows } }
  const [first = [], ...rest] = rows
  const width = rest.reduce((widest, row) => Math.max(widest, row.length), first.length)
  const names = nameColumns(first, width)
  if (rest.length * names.reduce((sum, name) => sum + name.length + 6, 0) > MAX_CHARS) throw tooLarge()
  const pause = createPause()
  const items: Record<string, unknown>[] = []
  for (const row of rest) {
    await pause()
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
  const pause = createPause()
  try {
    const end = once(parser, 'end')
    // Whoever writes hears of an error first.
    end.catch(() => {})
    for (let at = 0; at < bytes.length && chars <= MAX_CHARS; at += CHUNK) {
      await pause()
      await new Promise<void>((resolve, reject) => {
        parser.write(bytes.subarray(at, at + CHUNK), (error) => (error ? reject(error) : resolve()))
      })
    }
    parser.end()
    await end
  } catch (error) {
    throw new NodeFailure(`value is no CSV: ${(error as Error).message}`, { type: 'InvalidInput' })
  }
  if (chars > MAX_CHARS) throw tooLarge()
  return rows
}

/** A name for each column, no two alike. */
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
  // Each cell is a comma at least.
  if (items.length * columns.length > MAX_CHARS) throw tooLarge()
  const head = config.header === false || columns.length === 0 ? [] : [columns]
  const options = {
    delimiter: String(config.delimiter ?? ','),
    escape_formulas: config.escapeFormulas === true,
  }
  const pause = createPause()
  const parts = [stringify(head, options)]
  let chars = 0
  for (let at = 0; at < items.length; at += ROWS) {
    await pause()
    const rows = items.slice(at, at + ROWS).map((item) => {
      if (Array.isArray(item)) return item.map(writeCell)
      return isObject(item)
        ? columns.map((name) => writeCell(Object.hasOwn(item, name) ? item[name] : null))
        : [writeCell(item)]
    })
    const part = stringify(rows, options)
    chars += part.length
    if (chars > MAX_CHARS) throw tooLarge()
    parts.push(part)
  }
  return parts.join('')
}

async function findColumns(items: unknown[]): Promise<string[]> {
  const names = new Set<string>()
  const pause = createPause()
  for (const item of items) {
    await pause()
    if (isObject(item)) for (const name of Object.keys(item)) names.add(name)
  }
  return [...names]
}

function writeCell(value: unknown): string {
  if (value === null || value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function tooLarge(): NodeFailure {
  return new NodeFailure('The output would have more than 8 MB', { type: 'OutputTooLarge' })
}
