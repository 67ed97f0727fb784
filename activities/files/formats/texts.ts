import { findByteOrderMark } from '../../reading/charset.ts'
import { findOwnCharset } from '../../reading/markup.ts'
import { excessiveFile, invalidFile, writeSize } from './faults.ts'
import type { FileSource, Warn } from './work.ts'

/** The largest file that is read as a text. Its output has at most 8 MB. */
const MAX_TEXT_BYTES = 16 * 1024 * 1024

/** How much of a file is looked at to find out its encoding. */
const HEAD = 4_096

/**
 * The text of a file. Without an encoding, it is that of its byte order mark, or what it says of itself (XML, HTML), else
 * UTF-8, else windows-1252, which is told as a warning. Throws a NodeFailure: InvalidInput for bytes that are not in
 * the encoding, or FileTooLarge. `keepsMark`: a byte order mark stays in the text.
 */
export function readFileText(
  { name, bytes, keepsMark = false }: FileSource & { keepsMark?: boolean },
  { encoding, format }: { encoding?: string | undefined; format: string },
  warn: Warn,
): string {
  if (bytes.length > MAX_TEXT_BYTES)
    throw excessiveFile(
      name,
      `has ${writeSize(bytes.length)}: at most ${writeSize(MAX_TEXT_BYTES)} are read as a text`,
    )
  const known = encoding ?? findMark(name, bytes) ?? findOwnCharset(bytes, format) ?? findWide(bytes)
  if (known !== undefined) return decodeAs(name, bytes, known, keepsMark)
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: keepsMark }).decode(bytes)
  } catch {
    warn('Its bytes are not UTF-8: they are read as windows-1252. Say which encoding it has.')
    return new TextDecoder('windows-1252').decode(bytes)
  }
}

function decodeAs(name: string, bytes: Uint8Array, encoding: string, ignoreBOM: boolean): string {
  try {
    return new TextDecoder(encoding, { fatal: true, ignoreBOM }).decode(bytes)
  } catch {
    throw invalidFile(
      name,
      `is not valid ${encoding}: it has other bytes, or ends in the middle of a character`,
    )
  }
}

function findMark(name: string, bytes: Uint8Array): string | undefined {
  const mark = findByteOrderMark(bytes)
  if (mark?.startsWith('utf-32')) throw invalidFile(name, 'is encoded in UTF-32, which cannot be read')
  return mark
}

/** UTF-16 without a mark: in most texts every second byte is a zero. */
function findWide(bytes: Uint8Array): string | undefined {
  const head = bytes.subarray(0, HEAD)
  const zeros = [0, 0]
  for (const [at, byte] of head.entries()) if (byte === 0) zeros[at % 2]!++
  const half = head.length / 2
  if (zeros[1]! > half * 0.4 && zeros[0]! < half * 0.05) return 'utf-16le'
  if (zeros[0]! > half * 0.4 && zeros[1]! < half * 0.05) return 'utf-16be'
  return undefined
}
