import type { JsonReading } from '../../activities/reading/json.ts'
import type { LargeNumbers } from '../../workflows/nodes/fields.ts'
import { looksLikeForm, parseForm } from './form.ts'
import { parseJson } from './json.ts'
import { demandCharset, findBodyCharset, readBodyText } from './text.ts'

export type PlainSettings = {
  largeNumbers?: LargeNumbers | undefined
  /** A body whose only key is `data` is replaced by that value. */
  unwraps?: boolean
}

export type BodyReading = { value: unknown } & Pick<JsonReading, 'large'>

export function essenceOf(contentType: string): string {
  return contentType.split(';', 1)[0]!.trim().toLowerCase()
}

/** The value of a body that is no form in parts, at once. Throws INVALID for what is not what it says. */
export function readPlain(
  bytes: Uint8Array,
  contentType: string,
  { largeNumbers = 'text', unwraps = false }: PlainSettings,
): BodyReading {
  const essence = essenceOf(contentType)
  const charset = findBodyCharset(bytes, contentType, essence)
  const { value, ...large }: BodyReading = /^[a-z]+\/([a-z0-9.+-]+\+)?json$/.test(essence)
    ? parseJson(bytes, { charset, largeNumbers })
    : { value: essence === FORM ? readForm(bytes, charset) : readBodyText(bytes, charset) }
  return { value: unwraps ? unwrapData(value) : value, ...large }
}

const FORM = 'application/x-www-form-urlencoded'

/** The body that `curl -d` sends is declared as a form, even if it is any text. */
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

/** Requests that start executions have their data in the key `data`: some send it so to others too. */
function unwrapData(body: unknown): unknown {
  const keys = Object.keys(Object(body))
  return keys.length === 1 && keys[0] === 'data' ? (body as { data: unknown }).data : body
}
