import type { ReadableFormat } from '../../../workflows/nodes/formats.ts'
import { invalidFile } from './faults.ts'
import type { FileSource } from './work.ts'

const TYPES: Record<string, ReadableFormat> = {
  'application/gzip': 'gzip',
  'application/json': 'json',
  'application/pdf': 'pdf',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': 'xlsx',
  'application/vnd.ms-excel.sheet.macroenabled.12': 'xlsx',
  'application/x-zip-compressed': 'zip',
  'application/x-gzip': 'gzip',
  'application/xml': 'xml',
  'application/zip': 'zip',
  'application/xhtml+xml': 'html',
  'text/calendar': 'ics',
  'text/csv': 'csv',
  'text/html': 'html',
  'text/tab-separated-values': 'csv',
  'text/xml': 'xml',
}

const EXTENSIONS: Record<string, ReadableFormat> = {
  csv: 'csv',
  gz: 'gzip',
  gzip: 'gzip',
  htm: 'html',
  html: 'html',
  ics: 'ics',
  json: 'json',
  log: 'text',
  md: 'text',
  pdf: 'pdf',
  tsv: 'csv',
  txt: 'text',
  xlsm: 'xlsx',
  xlsx: 'xlsx',
  xml: 'xml',
  zip: 'zip',
}

/** How files begin that nothing is read from. */
const OTHERS: [start: number[], what: string][] = [
  [[0xd0, 0xcf, 0x11, 0xe0], 'an old file of Excel, Word or Outlook: save it in a new format, such as .xlsx'],
  [[0x37, 0x7a, 0xbc, 0xaf], 'an archive of 7-Zip'],
  [[0x52, 0x61, 0x72, 0x21], 'an archive of RAR'],
  [[0x89, 0x50, 0x4e, 0x47], 'a PNG image'],
  [[0xff, 0xd8, 0xff], 'a JPEG image'],
  [[0x47, 0x49, 0x46, 0x38], 'a GIF image'],
]

const SURE = { gzip: 'compressed with gzip', pdf: 'a PDF', zip: 'a ZIP archive or a file of Office' }

const HEAD = 1_024

/**
 * The format of a file. It is decided by the file's first bytes, else by its type, else by the end of its name, else
 * by the beginning of its text. Throws a NodeFailure (InvalidInput) for a file that is in none of our formats.
 */
export function detectFormat({ name, mimeType, bytes }: FileSource): ReadableFormat {
  const sure = findSureFormat(bytes)
  const type = mimeType.split(';')[0]!.trim().toLowerCase()
  const said = TYPES[type] ?? (/\+json$/.test(type) ? 'json' : /\+xml$/.test(type) ? 'xml' : undefined)
  const extension = EXTENSIONS[/\.([a-z0-9]{1,8})$/i.exec(name)?.[1]?.toLowerCase() ?? '']
  // What lies in an archive is told by its directory; the formats of Office are archives too.
  if (sure === 'zip')
    return said === 'xlsx' || (said !== 'zip' && extension === 'xlsx') || holdsSheets(bytes) ? 'xlsx' : 'zip'
  if (sure) return sure
  demandReadable(name, bytes)
  const found = said ?? extension
  if (found) return found
  const text = Buffer.from(bytes.subarray(0, HEAD))
    .toString('utf8')
    .replace(/^\ufeff/, '')
    .trimStart()
  if (/^<\?xml\b/.test(text)) return 'xml'
  if (/^<!doctype html|^<html\b/i.test(text)) return 'html'
  if (/^[[{]/.test(text)) return 'json'
  if (type.startsWith('text/') || isText(bytes)) return 'text'
  throw invalidFile(name, 'is in no format that can be told by its type, its name or its bytes: set format')
}

/** Refuses a file that is certainly not in the format that its node wants. */
export function demandFormatOf({ name, bytes }: FileSource, format: ReadableFormat): void {
  if (format === 'base64') return
  demandReadable(name, bytes)
  const sure = findSureFormat(bytes)
  const wanted = format === 'xlsx' ? 'zip' : format
  if (sure === wanted) return
  const binary = wanted === 'pdf' || wanted === 'zip' || wanted === 'gzip'
  const label = format.toUpperCase()
  if (sure === 'pdf' || sure === 'zip' || sure === 'gzip')
    throw invalidFile(name, `is not ${label}, but ${SURE[sure]}`)
  if (binary)
    throw invalidFile(
      name,
      bytes.length === 0 ? `is empty, and not ${label}` : `is not ${label}: it does not begin like one`,
    )
}

function demandReadable(name: string, bytes: Uint8Array): void {
  const other = OTHERS.find(([start]) => start.every((byte, at) => bytes[at] === byte))
  if (other) throw invalidFile(name, `is ${other[1]}; nothing can be read from it`)
}

function findSureFormat(bytes: Uint8Array): 'pdf' | 'zip' | 'gzip' | 'ics' | undefined {
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) return 'gzip'
  const head = Buffer.from(bytes.subarray(0, HEAD)).toString('latin1')
  if (head.startsWith('PK\x03\x04') || head.startsWith('PK\x05\x06')) return 'zip'
  if (head.includes('%PDF-')) return 'pdf'
  return /^(?:\xef\xbb\xbf)?\s*BEGIN:VCALENDAR/i.test(head) ? 'ics' : undefined
}

/** The directory of an archive is at its end, with the names of its files. */
function holdsSheets(bytes: Uint8Array): boolean {
  return Buffer.from(bytes.subarray(-65_536)).includes('xl/workbook.xml')
}

function isText(bytes: Uint8Array): boolean {
  const head = bytes.subarray(0, HEAD)
  const odd = head.filter((byte) => byte < 9 || (byte > 13 && byte < 32 && byte !== 27)).length
  const wide = (head[0] === 0xff && head[1] === 0xfe) || (head[0] === 0xfe && head[1] === 0xff)
  return wide || odd === 0
}
