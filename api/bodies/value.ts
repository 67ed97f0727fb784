import { createPacer } from '../../activities/expressions/pace.ts'
import type { Asker } from '../../activities/fairness/teamqueue.ts'
import type { JsonReading, LargeNumbers } from '../../activities/reading/json.ts'
import type { JsonReader } from './away.ts'
import { looksLikeForm, parseForm } from './form.ts'
import { type JsonBounds, parseJson } from './json.ts'
import { type FilePart, readMultipart } from './multipart.ts'
import { unescapeName } from './parthead.ts'
import { demandCharset, findBodyCharset, readBodyText } from './text.ts'
import { unwrapData } from './unwrap.ts'

/** JSON of more bytes is read on another thread. */
const READ_HERE = 64 * 1024

/** A form is parsed in pieces of so many bytes, so that others have their turn in between. */
const PIECE = 32 * 1024

export type BodyReading = { value: unknown } & Pick<JsonReading, 'large'>

export type BodySettings = {
  readAway: JsonReader
  /** Whose body it is, for the turns of the other thread. */
  asker: Asker
  largeNumbers?: LargeNumbers | undefined
  /** A body whose only key is `data` stands for its value. */
  unwraps?: boolean
  json?: Partial<JsonBounds>
}

export function essenceOf(contentType: string): string {
  return contentType.split(';', 1)[0]!.trim().toLowerCase()
}

/**
 * Parses a body by its content type: JSON becomes its value (a JsonText, if it is large), a form an object of its fields
 * (a file is {filename, contentType, base64}), other text a string, other bytes {base64}, and an empty body null. Throws
 * INVALID for what is not what it says.
 */
export async function readBodyValue(
  bytes: Uint8Array<ArrayBuffer>,
  contentType: string,
  settings: BodySettings,
): Promise<BodyReading> {
  if (bytes.length === 0) return { value: null }
  const essence = essenceOf(contentType)
  if (essence === 'multipart/form-data')
    return { value: await readMultipart(cut(bytes), contentType, { takeFile: keepFile }) }
  const charset = findBodyCharset(bytes, contentType, essence)
  const { unwraps = false } = settings
  if (/^[a-z]+\/([a-z0-9.+-]+\+)?json$/.test(essence)) {
    const { largeNumbers = 'text', readAway, asker, json } = settings
    const how = { charset, largeNumbers, ...json }
    if (bytes.length > READ_HERE) return readAway(asker, { bytes, settings: how, unwraps })
    const { value, ...large } = parseJson(bytes, how)
    return { value: unwraps ? unwrapData(value) : value, ...large }
  }
  const value =
    essence === 'application/x-www-form-urlencoded' ? readForm(bytes, charset) : readBodyText(bytes, charset)
  return { value: unwraps ? unwrapData(value) : value }
}

/** What `curl -d` sends is said to be a form, even if it is any text. */
function readForm(bytes: Uint8Array, charset: string | undefined): unknown {
  const isWide = charset !== undefined && /^(utf-16|iso-2022)/i.test(demandCharset(charset).encoding)
  // Their letters are not the bytes that divide a form. The escapes are then of UTF-8, as in browsers.
  const ascii = isWide ? new TextEncoder().encode(demandCharset(charset).decode(bytes)) : withoutMark(bytes)
  const own = isWide ? undefined : charset
  if (!looksLikeForm(ascii)) return readBodyText(bytes, charset)
  const text = readBodyText(ascii, own)
  return typeof text === 'string' ? parseForm(ascii, own) : text
}

function withoutMark(bytes: Uint8Array): Uint8Array {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes
}

async function keepFile({ filename, type }: FilePart, bytes: AsyncIterable<Uint8Array>): Promise<unknown> {
  const pieces: Uint8Array[] = []
  for await (const piece of bytes) pieces.push(piece)
  return {
    filename: unescapeName(filename),
    contentType: type.toLowerCase() || 'text/plain',
    base64: Buffer.concat(pieces).toString('base64'),
  }
}

async function* cut(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  const pace = createPacer()
  for (let at = 0; at < bytes.length; at += PIECE) {
    await pace()
    yield Buffer.from(bytes.buffer, bytes.byteOffset + at, Math.min(PIECE, bytes.length - at))
  }
}
