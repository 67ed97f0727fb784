import { posix } from 'node:path'
import type { Entry } from 'yauzl'
import { findXmlEncoding } from '../../../reading/xml/encoding.ts'
import { scanXml, type XmlHandlers } from '../../../reading/xml/scan.ts'
import { listEntries, unpackEntry } from '../archive.ts'
import { excessiveFile, invalidFile, writeSize } from '../faults.ts'
import type { FileSource } from '../work.ts'

/** The most bytes that the parts of a workbook may have unpacked, all together. */
const MAX_UNPACKED = 32 * 1024 * 1024

const WORKBOOK = 'xl/workbook.xml'

export type SheetPlace = { name: string; path: string }

/** The parts of a workbook, each unpacked when it is read. */
export type Workbook = {
  sheets: SheetPlace[]
  /** Whether its days are counted from 1904. */
  from1904: boolean
  styles: string | undefined
  strings: string | undefined
  /** Tells the handlers what a part has, with the names without their prefixes. */
  scan(path: string, handlers: Partial<XmlHandlers>): Promise<void>
}

/** Opens a workbook. Throws a NodeFailure for a file that is not a workbook, and for one that is too large. */
export async function openWorkbook(source: FileSource): Promise<Workbook> {
  const entries = new Map((await listEntries(source)).map((entry) => [entry.fileName.toLowerCase(), entry]))
  if (!entries.has(WORKBOOK)) throw invalidFile(source.name, 'is not XLSX, but another kind of archive')
  const read = createReader(source, entries)
  const scan = async (path: string, handlers: Partial<XmlHandlers>) => {
    const text = await read(path)
    try {
      scanXml(text, { open() {}, close() {}, text() {}, ...withoutPrefixes(handlers) })
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      throw invalidFile(source.name, `is not XLSX that can be read: ${path}: ${error.message}`)
    }
  }
  const targets = await readRelations(scan, entries.has('xl/_rels/workbook.xml.rels'))
  const found: SheetPlace[] = []
  let from1904 = false
  await scan(WORKBOOK, {
    open(name, attributes) {
      if (name === 'workbookPr') from1904 = /^(?:1|true|on)$/i.test(attributes.get('date1904')?.trim() ?? '')
      if (name !== 'sheet') return
      const id = [...attributes].find(([key]) => key.endsWith(':id'))?.[1] ?? ''
      const target = targets.get(id)
      if (target?.type === 'worksheet') found.push({ name: attributes.get('name') ?? '', path: target.path })
    },
  })
  const findPart = (type: string, usual: string) => {
    const path = [...targets.values()].find((target) => target.type === type)?.path ?? usual
    return entries.has(path.toLowerCase()) ? path : undefined
  }
  return {
    sheets: found,
    from1904,
    styles: findPart('styles', 'xl/styles.xml'),
    strings: findPart('sharedStrings', 'xl/sharedStrings.xml'),
    scan,
  }
}

async function readRelations(
  scan: Workbook['scan'],
  exists: boolean,
): Promise<Map<string, { type: string; path: string }>> {
  const targets = new Map<string, { type: string; path: string }>()
  if (!exists) return targets
  await scan('xl/_rels/workbook.xml.rels', {
    open(name, attributes) {
      if (name !== 'Relationship' || attributes.get('TargetMode') === 'External') return
      const target = attributes.get('Target') ?? ''
      const path = target.startsWith('/') ? target.slice(1) : posix.join('xl', target)
      targets.set(attributes.get('Id') ?? '', { type: attributes.get('Type')?.split('/').at(-1) ?? '', path })
    },
  })
  return targets
}

/** Reads parts, until together they are too much. */
function createReader(source: FileSource, entries: Map<string, Entry>): (path: string) => Promise<string> {
  const { name } = source
  let left = MAX_UNPACKED
  const tooMuch = () =>
    excessiveFile(name, `has more than ${writeSize(MAX_UNPACKED)} unpacked, which is too much for a workbook`)
  return async (path) => {
    const entry = entries.get(path.toLowerCase())
    if (!entry) throw invalidFile(name, `is not XLSX that can be read: it has no ${path}`)
    if (entry.uncompressedSize > left) throw tooMuch()
    const bytes = await unpackEntry(source, entry, left)
    left -= bytes.length
    const text = decodePart(bytes)
    if (text === undefined) throw invalidFile(name, `is not XLSX that can be read: ${path} is not valid text`)
    if (/<!DOCTYPE/i.test(text.slice(0, 1_000)))
      throw invalidFile(name, 'has a document type, which no workbook needs')
    return text
  }
}

function decodePart(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder(findXmlEncoding(bytes) ?? 'utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

function withoutPrefixes({ open, close, ...others }: Partial<XmlHandlers>): Partial<XmlHandlers> {
  const strip = (name: string) => name.slice(name.indexOf(':') + 1)
  return {
    ...others,
    ...(open ? { open: (name, attributes) => open(strip(name), attributes) } : {}),
    ...(close ? { close: (name) => close(strip(name)) } : {}),
  }
}
