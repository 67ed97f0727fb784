import { isObject } from '../../../workflows/json.ts'
import { convertFormat, type HtmlPick } from '../../expressions/formats.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import { readCsvItems } from './csv.ts'
import { demandFormatOf, detectFormat } from './detect.ts'
import { invalidFile } from './faults.ts'
import { readFileText } from './texts.ts'
import type { FileReading, FileWork, Warn } from './work.ts'

type Reading = Extract<FileWork, { read: unknown }>['read']

/**
 * What a file says, in the shapes of the nodes CSV, JSON, XML and HTML, with its `format`. Throws a NodeFailure: InvalidInput for
 * a file that is not in the format, FileTooLarge for one that would take too much, InvalidConfig for options that
 * do not fit it. Only for an evaluator process.
 */
export async function readFormat(source: Reading, warn: Warn): Promise<FileReading> {
  const format = source.format === 'auto' ? detectFormat(source) : source.format
  demandFormatOf(source, format)
  const reading = await readAs(format, source, warn)
  return 'bytes' in reading ? reading : { output: { format, ...reading.output } }
}

async function readAs(
  format: Exclude<Reading['format'], 'auto'>,
  source: Reading,
  warn: Warn,
): Promise<FileReading> {
  const { options, name } = source
  if (format === 'zip') return (await import('./archive.ts')).readArchive(source, options, warn)
  if (format === 'xlsx')
    return { output: await (await import('./sheets.ts')).readWorkbook(source, options, warn) }
  if (format === 'pdf')
    return { output: await (await import('./pdf.ts')).readPdf(source, options.pages, warn) }
  const text = readFileText(source, { encoding: options.encoding, format }, warn)
  if (format === 'text') return { output: { text } }
  if (format === 'ics') return { output: (await import('./calendar.ts')).readCalendar(name, text) }
  if (format === 'csv') {
    const delimiter = options.delimiter ?? guessDelimiter(text)
    return { output: { items: await readCsvItems(text, { ...options, delimiter }, name), delimiter } }
  }
  try {
    if (format === 'json') return { output: { value: JSON.parse(text) } }
    if (format === 'xml') return { output: { value: await convertFormat({ kind: 'xml', parse: text }) } }
    if (!options.fields) return { output: { text: await convertFormat({ kind: 'html', text }) } }
    const picks = Object.entries(options.fields).map(
      ([key, wanted]) => [key, (isObject(wanted) ? wanted : { selector: wanted }) as HtmlPick] as const,
    )
    return { output: { values: await convertFormat({ kind: 'html', page: text, picks }) } }
  } catch (error) {
    if (error instanceof NodeFailure || error instanceof RangeError) throw error
    throw invalidFile(name, `is not valid ${format.toUpperCase()}: ${(error as Error).message.slice(0, 300)}`)
  }
}

const DELIMITERS = [',', ';', '\t', '|']

/** The delimiter that stands most often in the first line, outside of quotes. */
function guessDelimiter(text: string): string {
  const counts = new Map<string, number>()
  let quoted = false
  for (let at = 0; at < Math.min(text.length, 65_536); at++) {
    const char = text[at]!
    if (char === '"') quoted = !quoted
    else if (quoted) continue
    else if ((char === '\n' || char === '\r') && counts.size > 0) break
    else if (DELIMITERS.includes(char)) counts.set(char, (counts.get(char) ?? 0) + 1)
  }
  const [most] = [...counts].sort(([, a], [, b]) => b - a)
  return most?.[0] ?? ','
}
