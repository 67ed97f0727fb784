import { Dicer } from '@fastify/busboy'
import { unlessAborted } from '../../activities/abort.ts'
import { findCharset, openDecoder } from '../../activities/reading/charset.ts'
import { Fault, invalid } from '../../db/fault.ts'
import { MAX_FIELDS, tooManyFields } from './form.ts'
import { collectByName } from './names.ts'
import { readParameters } from './parameters.ts'
import { HEAD_LIMITS, type PartHeaders, readPartHead } from './parthead.ts'
import { demandCharset } from './text.ts'

/** The most bytes that the fields of a form may have together, besides its files. */
const MAX_FIELD_BYTES = 1_500_000

/** The most bytes of a boundary. */
const MAX_BOUNDARY = 200

/** The facts about the file of a part. `type` is as it was sent, and '' if it was not. */
export type FilePart = { name: string; filename: string; type: string }

export type FormTaker = {
  /** Makes the value of a file of its bytes. Its rejection ends the form. */
  takeFile(part: FilePart, bytes: AsyncIterable<Uint8Array>): Promise<unknown>
  /** The most files; without it as many as parts. */
  maxCount?: number | undefined
}

type Entry = { name: string; value: Promise<unknown> | { bytes: Buffer; charset: string | undefined } }
type Part = Dicer.PartStream

/**
 * Reads a form of the type `multipart/form-data` as its bytes come: an object with one key for each name, and an array
 * where a name comes more than once. Texts are in the charset of their part, else in that of the form's field `_charset_`
 * or Content-Type, else in UTF-8. Throws TOO_LARGE over a limit, and INVALID if it is no whole form, a part has no
 * name, or there are too many. Whatever was taken by then has been settled.
 */
export async function readMultipart(
  body: AsyncIterable<Uint8Array>,
  contentType: string,
  { takeFile, maxCount = MAX_FIELDS }: FormTaker,
): Promise<Record<string, unknown>> {
  const boundary = readBoundary(contentType)
  const parser = new Dicer({ boundary, ...HEAD_LIMITS })
  const delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1')
  const entries: Entry[] = []
  const parts = new Set<Part>()
  const failed = new AbortController()
  const fail = (error: unknown) => failed.abort(error)
  let delimiters = 0
  let opened = 0
  let headed = 0
  let files = 0
  let fieldBytes = 0

  function takePart(part: Part, header: PartHeaders): void {
    headed++
    const head = readPartHead(header)
    if (head.name === undefined) {
      part.resume()
      fail(invalid([{ path: 'body', message: `must name each part of its form: ${head.fault}` }]))
      return
    }
    const { name, filename, type } = head
    if (filename !== undefined || /^application\/octet-stream\s*(;|$)/i.test(type)) {
      if (++files > maxCount) {
        part.resume()
        fail(new Fault('TOO_LARGE', `The form must have at most ${maxCount} files`))
        return
      }
      const taking = takeFile({ name, filename: filename ?? '', type }, whole(part))
      taking.catch(fail)
      entries.push({ name, value: taking })
      return
    }
    const entry = { name, value: { bytes: Buffer.alloc(0), charset: findCharset(type) } }
    entries.push(entry)
    const pieces: Buffer[] = []
    part.on('data', (piece: Buffer) => {
      fieldBytes += piece.length
      if (fieldBytes <= MAX_FIELD_BYTES) pieces.push(piece)
      else fail(new Fault('TOO_LARGE', `The fields of the form must have at most ${MAX_FIELD_BYTES} bytes`))
    })
    part.on('end', () => {
      entry.value.bytes = Buffer.concat(pieces)
    })
  }

  parser.on('part', (part) => {
    // Without a listener, an error of a part that is not read would end the process.
    part.on('error', () => {})
    if (++opened > MAX_FIELDS) {
      part.resume()
      fail(tooManyFields())
      return
    }
    parts.add(part)
    part.on('header', (header) => takePart(part, header as PartHeaders))
  })
  parser.on('error', () => fail(notWhole()))
  const finished = new Promise<void>((resolve) => void parser.once('finish', resolve))
  try {
    for await (const chunk of whole(body)) {
      failed.signal.throwIfAborted()
      delimiters += countIn(chunk, delimiter)
      if (delimiters > MAX_FIELDS + 1) throw tooManyFields()
      // Bytes behind the form are not a part of it.
      if (parser.writable)
        await unlessAborted(new Promise((resolve) => void parser.write(chunk, resolve)), failed.signal)
    }
    if (parser.writable) parser.end()
    await unlessAborted(finished, failed.signal)
    // A part whose headers do not end says nothing.
    if (headed < opened) throw notWhole()
    const values = await Promise.all(
      entries.map(async ({ value }) => (value instanceof Promise ? await value : value)),
    )
    failed.signal.throwIfAborted()
    return collectByName(decodeFields(entries, values, contentType))
  } catch (error) {
    fail(error)
    for (const part of parts) part.destroy(notWhole())
    await Promise.allSettled(entries.map(({ value }) => value))
    throw error
  }
}

/** Decodes the texts among the values. */
function decodeFields(
  entries: Entry[],
  values: unknown[],
  contentType: string,
): (readonly [string, unknown])[] {
  const own = entries.find(({ name, value }) => name === '_charset_' && !(value instanceof Promise))
  const named = own && (own.value as { bytes: Buffer }).bytes.toString('latin1').trim()
  const fallback = named && openDecoder(named) ? named : findCharset(contentType)
  return entries.map(({ name, value }, at) => {
    if (value instanceof Promise) return [name, values[at]] as const
    return [name, demandCharset(value.charset ?? fallback).decode(value.bytes)] as const
  })
}

function readBoundary(contentType: string): string {
  const boundary = readParameters(contentType).get('boundary') ?? ''
  if (boundary !== '' && boundary.length <= MAX_BOUNDARY) return boundary
  const message = 'must be a form whose Content-Type names its boundary, of at most 200 characters'
  throw invalid([{ path: 'body', message }])
}

/** How often the delimiter of parts is in a chunk: parts are counted before they are parsed, which takes far longer. */
function countIn(chunk: Uint8Array, delimiter: Buffer): number {
  const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  let count = 0
  for (let at = bytes.indexOf(delimiter); at >= 0 && count <= MAX_FIELDS + 1; count++)
    at = bytes.indexOf(delimiter, at + delimiter.length)
  return count
}

/** A broken stream is the sender's fault: the error says so instead of the connection's words. */
export async function* whole(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* stream
  } catch (error) {
    throw error instanceof Fault ? error : notWhole()
  }
}

function notWhole(): Fault {
  return invalid([
    { path: 'body', message: 'must be whole: it ended early, or is not what its Content-Type says' },
  ])
}
