import { isObject, setOwn } from '../../../workflows/json.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import { findColumns } from './csv.ts'
import type { WritingOptions } from './work.ts'

const MAX_CHARS = 8_000_000

/** A byte order mark, with which n8n's files begin. */
const MARK = '\ufeff'

/** An item with its nested fields at the top, under names with dots. Empty objects and lists are left out. */
export function flattenItem(item: unknown): Record<string, unknown> {
  const flat: Record<string, unknown> = {}
  const open: [path: string, value: unknown][] = Object.entries(
    isObject(item) ? item : { value: item },
  ).reverse()
  while (open.length > 0) {
    const [path, value] = open.pop()!
    if (typeof value !== 'object' || value === null) setOwn(flat, path, value)
    else for (const [key, inner] of Object.entries(value).reverse()) open.push([`${path}.${key}`, inner])
  }
  return flat
}

/**
 * Items as the CSV that SheetJS writes, which n8n uses: lines end with a line feed but for the last one, numbers are in
 * the general format of spreadsheets, and booleans in capitals. Throws a NodeFailure (OutputTooLarge).
 */
export async function writeSheetCsv(
  items: unknown[],
  { delimiter = ',', header = true }: WritingOptions,
): Promise<string> {
  const columns = await findColumns(items)
  const quote = (text: string) =>
    text.includes(delimiter) || /["\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
  const lines: string[] = header && items.length > 0 ? [columns.map(quote).join(delimiter)] : []
  let chars = 0
  for (const item of items) {
    const row = columns.map((name) =>
      quote(writeCell(Object.hasOwn(Object(item), name) ? Object(item)[name] : null)),
    )
    const line = row.join(delimiter)
    chars += line.length + 1
    if (chars > MAX_CHARS)
      throw new NodeFailure('The output would be larger than 8 MB', { type: 'OutputTooLarge' })
    lines.push(line)
  }
  if (lines[0]?.startsWith('ID')) lines[0] = lines[0].replace(/^ID(?=[,;\t|]|$)/, '"ID"')
  return MARK + lines.join('\n')
}

function writeCell(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'boolean') return value ? 'TRUE' : 'FALSE'
  return typeof value === 'number' ? writeNumber(value) : String(value)
}

/** A number in the general format: at most 11 characters, longer ones with an exponent. */
function writeNumber(value: number): string {
  if ((value | 0) === value) return String(value)
  const power = Math.floor(Math.log10(Math.abs(value)))
  const most = value < 0 ? 12 : 11
  const bare = (text: string) =>
    text.includes('.') && !text.includes('e') ? text.replace(/\.?0+$/, '') : text.replace(/\.?0+e/, 'e')
  const shorten = () => {
    const fixed = bare(value.toFixed(12))
    if (fixed.length <= most) return fixed
    const short = value.toPrecision(10)
    return short.length <= most ? short : value.toExponential(5)
  }
  const large = () => {
    const fixed = bare(value.toFixed(11))
    return fixed.length > most || fixed === '0' || fixed === '-0' ? value.toPrecision(6) : fixed
  }
  const text =
    power >= -4 && power <= -1
      ? value.toPrecision(10 + power)
      : Math.abs(power) <= 9
        ? shorten()
        : power === 10
          ? value.toFixed(10).slice(0, 12)
          : large()
  return bare(text)
    .toUpperCase()
    .replace(/E([+-])(\d)$/, 'E$10$2')
}
