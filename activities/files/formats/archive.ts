import { crc32, deflateRawSync } from 'node:zlib'
import { type Entry, fromBufferPromise, type ZipFile } from 'yauzl'
import { invalidConfig } from '../../nodes/kit/failure.ts'
import { excessiveFile, invalidFile, writeSize } from './faults.ts'
import { readFileText } from './texts.ts'
import type { FileReading, FileSource, ReadingOptions, Warn } from './work.ts'

const MAX_ENTRIES = 20_000

/** The largest file that is taken out of an archive. */
const MAX_ENTRY_BYTES = 32 * 1024 * 1024

/**
 * The names and sizes of the files in a ZIP archive: {entries}, each {name, bytes, packed, modified, directory,
 * encrypted}. With `entry` that file: its {text}, or with `as` file itself. The sizes that an archive states are not
 * trusted.
 */
export async function readArchive(
  source: FileSource,
  options: ReadingOptions,
  warn: Warn,
): Promise<FileReading> {
  const entries = await listEntries(source)
  if (options.entry === undefined) return { output: { entries: entries.map(describeEntry) } }
  const found = entries.filter(({ fileName }) => fileName === options.entry)
  if (found.length === 0)
    throw invalidConfig('entry', `is no file in ${source.name}; it has ${nameSome(entries)}`)
  if (found.length > 1)
    throw invalidFile(source.name, `has ${found.length} files of the name ${options.entry}`)
  const bytes = await unpackEntry(source, found[0]!, MAX_ENTRY_BYTES)
  const name = found[0]!.fileName.split('/').at(-1)!
  if (options.as === 'file') return { bytes, name }
  return { output: { text: readFileText({ ...source, name, bytes }, { ...options, format: 'text' }, warn) } }
}

/** The files in an archive. Throws a NodeFailure: InvalidInput, or FileTooLarge for too many. */
export async function listEntries({ name, bytes }: FileSource): Promise<Entry[]> {
  try {
    const archive = await openArchive(bytes)
    if (archive.entryCount > MAX_ENTRIES)
      throw excessiveFile(name, `has ${archive.entryCount} files; at most ${MAX_ENTRIES} are read`)
    const entries: Entry[] = []
    for await (const entry of archive.eachEntry()) entries.push(entry)
    return entries
  } catch (error) {
    throw describeFault(name, error)
  }
}

/** The bytes of a file in an archive. Stops as soon as they are more than `most`, whatever the archive says. */
export async function unpackEntry(
  { name, bytes }: FileSource,
  entry: Entry,
  most: number,
): Promise<Uint8Array> {
  const label = `${name}: ${entry.fileName}`
  const tooLarge = (size: number) =>
    excessiveFile(label, `has ${writeSize(size)} unpacked; at most ${writeSize(most)} are taken out`)
  if (entry.isEncrypted()) throw invalidFile(label, 'is encrypted')
  if (entry.uncompressedSize > most) throw tooLarge(entry.uncompressedSize)
  try {
    const stream = await (await openArchive(bytes)).openReadStreamPromise(entry)
    const pieces: Uint8Array[] = []
    let size = 0
    for await (const piece of stream) {
      size += piece.length
      if (size > most) throw tooLarge(size)
      pieces.push(piece)
    }
    const whole = Buffer.concat(pieces)
    if (crc32(whole) !== entry.crc32) throw invalidFile(label, 'is damaged: its checksum is wrong')
    return whole
  } catch (error) {
    throw describeFault(label, error)
  }
}

/** An archive of these files, not compressed, for readers that take nothing else, unless `deflates`. */
export function storeArchive(files: { name: string; bytes: Uint8Array }[], deflates = false): Uint8Array {
  const parts: Uint8Array[] = []
  const directory: Uint8Array[] = []
  let at = 0
  for (const { name, bytes } of files) {
    const path = Buffer.from(name)
    const packed = deflates ? deflateRawSync(bytes) : bytes
    const isPacked = packed.length < bytes.length
    const content = isPacked ? packed : bytes
    const head = Buffer.alloc(26)
    // Version 2.0, names in UTF-8, without a time.
    head.writeUInt16LE(20, 0)
    head.writeUInt16LE(0x800, 2)
    head.writeUInt32LE(crc32(bytes), 10)
    head.writeUInt16LE(isPacked ? 8 : 0, 4)
    head.writeUInt32LE(content.length, 14)
    head.writeUInt32LE(bytes.length, 18)
    head.writeUInt16LE(path.length, 22)
    const place = Buffer.alloc(14)
    place.writeUInt32LE(at, 10)
    directory.push(Buffer.from('PK\x01\x02\x14\x00', 'latin1'), head, place, path)
    const start = [Buffer.from('PK\x03\x04'), head, path, content]
    parts.push(...start)
    at += start.reduce((sum, part) => sum + part.length, 0)
  }
  const end = Buffer.alloc(18)
  end.writeUInt16LE(files.length, 4)
  end.writeUInt16LE(files.length, 6)
  end.writeUInt32LE(
    directory.reduce((sum, part) => sum + part.length, 0),
    8,
  )
  end.writeUInt32LE(at, 12)
  return Buffer.concat([...parts, ...directory, Buffer.from('PK\x05\x06'), end])
}

function openArchive(bytes: Uint8Array): Promise<ZipFile> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  return fromBufferPromise(buffer, { lazyEntries: true, autoClose: false })
}

function describeFault(name: string, error: unknown): Error {
  if (!(error instanceof Error) || error.name === 'NodeFailure') return error as Error
  return invalidFile(name, `is not a ZIP archive that can be read: ${error.message.slice(0, 300)}`)
}

function describeEntry(entry: Entry): Record<string, unknown> {
  const modified = entry.getLastModDate({ timezone: 'UTC' })
  return {
    name: entry.fileName,
    bytes: entry.uncompressedSize,
    packed: entry.compressedSize,
    modified: Number.isNaN(modified.getTime()) ? null : modified.toISOString(),
    directory: entry.fileName.endsWith('/'),
    encrypted: entry.isEncrypted(),
  }
}

function nameSome(entries: Entry[]): string {
  const names = entries.slice(0, 10).map(({ fileName }) => fileName.slice(0, 100))
  return `${names.join(', ')}${entries.length > 10 ? ' ...' : ''}` || 'none'
}
