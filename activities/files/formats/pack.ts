import { gunzipSync, gzipSync } from 'node:zlib'
import { listEntries, storeArchive, unpackEntry } from './archive.ts'
import { excessiveFile, invalidFile, writeSize } from './faults.ts'
import { readFileText } from './texts.ts'
import type { FileReading, FileSource, ReadingOptions, Warn } from './work.ts'

/** The most bytes that one archive is unpacked to, in all and for one file, and the most files. */
const MAX_BYTES = 48 * 1024 * 1024
const MAX_ENTRY_BYTES = 32 * 1024 * 1024
const MAX_FILES = 100

/** From this size on a file that unpacks to a thousand times its bytes is taken for a bomb. */
const MAX_RATIO = 1_000
const RATIO_FROM = 1024 * 1024

/** A ZIP archive of files, whose names are made unique, or the first of them compressed with gzip. */
export function packFiles({
  format,
  files,
}: {
  format: 'zip' | 'gzip'
  files: { name: string; bytes: Uint8Array }[]
}): Uint8Array {
  return format === 'gzip' ? gzipSync(files[0]!.bytes) : storeArchive(files, true)
}

/** A file that is compressed with gzip: its {text}, or the file itself with `as` file or for an item. */
export function unpackGzip(source: FileSource, options: ReadingOptions, warn: Warn): FileReading {
  const name = source.name.replace(/\.gz(?:ip)?$/i, '')
  const bytes = gunzip(source)
  if (options.as === 'file') return { bytes, name }
  return { output: { text: readFileText({ ...source, name, bytes }, { ...options, format: 'text' }, warn) } }
}

export function gunzip({ name, bytes }: FileSource): Uint8Array {
  try {
    const unpacked = gunzipSync(bytes, { maxOutputLength: MAX_BYTES })
    demandRatio(name, bytes.length, unpacked.length)
    return unpacked
  } catch (error) {
    const { code, message, name: kind } = error as Error & { code?: string }
    if (kind === 'NodeFailure') throw error
    if (code === 'ERR_BUFFER_TOO_LARGE')
      throw excessiveFile(name, `has more than ${writeSize(MAX_BYTES)} unpacked`)
    throw invalidFile(name, `is not compressed with gzip, or is damaged: ${message.slice(0, 300)}`)
  }
}

/** All files in a ZIP archive, without folders and what macOS adds. The sizes that it states are not trusted. */
export async function unpackAll(source: FileSource): Promise<{ name: string; bytes: Uint8Array }[]> {
  const entries = (await listEntries(source)).filter(
    ({ fileName }) => !fileName.endsWith('/') && !fileName.includes('__MACOSX'),
  )
  if (entries.length > MAX_FILES)
    throw excessiveFile(source.name, `has ${entries.length} files; at most ${MAX_FILES} are unpacked at once`)
  const files: { name: string; bytes: Uint8Array }[] = []
  let left = MAX_BYTES
  for (const entry of entries) {
    const bytes = await unpackEntry(source, entry, Math.min(left, MAX_ENTRY_BYTES))
    demandRatio(`${source.name}: ${entry.fileName}`, entry.compressedSize, bytes.length)
    left -= bytes.length
    files.push({ name: entry.fileName, bytes })
  }
  return files
}

function demandRatio(name: string, packed: number, unpacked: number): void {
  if (unpacked < RATIO_FROM || unpacked <= packed * MAX_RATIO) return
  throw excessiveFile(name, `unpacks to more than ${MAX_RATIO} times its bytes`)
}
