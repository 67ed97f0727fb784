import { randomBytes } from 'node:crypto'
import type { Files, FileValue, OpenFile } from '../../files/files.ts'
import { readFileValue } from '../../files/files.ts'
import type { StreamedBody } from '../../http/streams.ts'
import { NodeFailure } from './failure.ts'

/** A body that is sent as it is read: `text` says what it is, for the key of a repeated request. */
export type FileBody = { stream: StreamedBody; type: string; text: string }

/** A body that is one file. Throws a NodeFailure (FileMissing) if the value is not a file of this execution. */
export async function buildFileBody(files: Files | undefined, value: unknown): Promise<FileBody> {
  const file = await demandFiles(files).open(readFileValue(value) ?? value)
  const stream = { bytes: file.bytes, open: () => file.stream() }
  return { stream, type: file.mimeType, text: `file ${file.id}` }
}

type Part = { head: string; text: string } | { head: string; file: OpenFile }

/**
 * A body of the type multipart/form-data: `pairs` are its fields, of which those with a file become files. Throws a
 * NodeFailure (FileMissing) for a file that is not of this execution.
 */
export async function buildMultipart(
  files: Files | undefined,
  pairs: [string, string | FileValue][],
): Promise<FileBody> {
  const parts: Part[] = []
  for (const [name, value] of pairs) {
    const head = `Content-Disposition: form-data; name="${quote(name)}"`
    if (typeof value === 'string') parts.push({ head: `${head}\r\n\r\n`, text: value })
    else {
      const file = await demandFiles(files).open(value)
      const type = `Content-Type: ${file.mimeType}`
      parts.push({ head: `${head}; filename="${quote(file.name)}"\r\n${type}\r\n\r\n`, file })
    }
  }
  const boundary = `perdure-${randomBytes(18).toString('hex')}`
  const before = (part: Part) => Buffer.from(`--${boundary}\r\n${part.head}`)
  const end = Buffer.from(`--${boundary}--\r\n`)
  const sizeOf = (part: Part) => ('file' in part ? part.file.bytes : Buffer.byteLength(part.text))
  const bytes = parts.reduce((sum, part) => sum + before(part).length + sizeOf(part) + 2, end.length)

  async function* open() {
    for (const part of parts) {
      yield before(part)
      if ('file' in part) yield* part.file.stream()
      else yield Buffer.from(part.text)
      yield Buffer.from('\r\n')
    }
    yield end
  }

  const text = parts.map((part) => part.head + ('file' in part ? part.file.id : part.text)).join('\n')
  return { stream: { bytes, open }, type: `multipart/form-data; boundary=${boundary}`, text }
}

/** The fields of a form with files: an array repeats its name, null leaves it out, other objects become JSON. */
export function readFormPairs(body: Record<string, unknown>): [string, string | FileValue][] {
  const pairs: [string, string | FileValue][] = []
  for (const [name, entry] of Object.entries(body)) {
    for (const item of Array.isArray(entry) ? entry : [entry]) {
      if (item === null || item === undefined) continue
      const file = readFileValue(item)
      if (file) pairs.push([name, file])
      else pairs.push([name, typeof item === 'object' ? JSON.stringify(item) : String(item)])
    }
  }
  return pairs
}

/** As browsers do: what would end a header is percent-encoded. */
function quote(text: string): string {
  return text.toWellFormed().replace(/["\r\n]/g, (sign) => encodeURIComponent(sign))
}

function demandFiles(files: Files | undefined): Files {
  if (files) return files
  throw new NodeFailure('This node has no files', { type: 'FileMissing' })
}
