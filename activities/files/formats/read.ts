import { isObject } from '../../../workflows/json.ts'
import type { ReadableFormat } from '../../../workflows/nodes/formats.ts'
import { convertFormat } from '../../expressions/convert.ts'
import type { HtmlPick } from '../../expressions/formats.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import { describeLarge, readJson } from '../../reading/json.ts'
import { parseXml } from '../../reading/xml/parse.ts'
import { readCsvItems } from './csv.ts'
import { findDelimiter, nameDelimiter } from './delimiters.ts'
import { demandFormatOf, detectFormat } from './detect.ts'
import { invalidFile } from './faults.ts'
import { readFileText } from './texts.ts'
import type { FileReading, FileWork, Warn } from './work.ts'

type Reading = Extract<FileWork, { read: unknown }>['read']

/**
 * The content of a file, in the shapes of the nodes CSV, JSON, XML and HTML, with its `format`. Throws a NodeFailure:
 * InvalidInput for a file that is not in the format, FileTooLarge for one that would take too much, InvalidConfig for
 * options that do not fit it. Only for an evaluator process.
 */
export async function readFormat(source: Reading, warn: Warn): Promise<FileReading> {
  const format = source.format === 'auto' ? chooseFormat(source) : source.format
  demandFormatOf(source, format)
  if (source.options.item) return (await import('./itemreading.ts')).readIntoItem(format, source, warn)
  const reading = await readAs(format, source, warn)
  return 'output' in reading ? { output: { format, ...Object(reading.output) } } : reading
}

function chooseFormat(source: Reading): ReadableFormat {
  if (!source.options.item?.unpack) return detectFormat(source)
  if (/\.(?:tgz|tar|tar\.gz)$/i.test(source.name))
    throw invalidFile(source.name, 'is a TAR archive, which cannot be unpacked: use ZIP')
  return source.bytes[0] === 0x1f && source.bytes[1] === 0x8b ? 'gzip' : 'zip'
}

async function readAs(
  format: Exclude<Reading['format'], 'auto'>,
  source: Reading,
  warn: Warn,
): Promise<FileReading> {
  const { options, name, bytes } = source
  if (format === 'base64') return { output: { text: Buffer.from(bytes).toString('base64') } }
  if (format === 'gzip') return (await import('./pack.ts')).unpackGzip(source, options, warn)
  if (format === 'zip') return (await import('./archive.ts')).readArchive(source, options, warn)
  if (format === 'xlsx')
    return { output: await (await import('./sheets.ts')).readWorkbook(source, options, warn) }
  if (format === 'pdf')
    return { output: await (await import('./pdf.ts')).readPdf(source, options.pages, warn) }
  const text = readFileText(source, { encoding: options.encoding, format }, warn)
  if (format === 'text') return { output: { text } }
  if (format === 'ics') return { output: (await import('./calendar.ts')).readCalendar(name, text) }
  if (format === 'csv') {
    const { delimiter: found, others, rest } = findDelimiter(text)
    const delimiter = options.delimiter ?? found
    if (options.delimiter === undefined && others.length > 0)
      warn(
        `Its cells were told apart by ${nameDelimiter(found)}, but ${others.map(nameDelimiter).join(' or ')} would do, too. Set delimiter to say which.`,
      )
    return { output: { items: await readCsvItems(rest, { ...options, delimiter }, name), delimiter } }
  }
  try {
    if (format === 'json') {
      const reading = readJson(text, options.largeNumbers)
      const message = describeLarge(reading, options.largeNumbers)
      if (message) warn(message)
      return { output: { value: reading.value } }
    }
    if (format === 'xml') return { output: { value: parseXml(text, { order: options.order }) } }
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
