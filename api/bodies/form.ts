import { openDecoder } from '../../activities/reading/charset.ts'
import { invalid } from '../../db/fault.ts'
import { collectByName } from './names.ts'

/** The most fields that a form may have, counted before it is parsed. */
export const MAX_FIELDS = 1_000

export function tooManyFields() {
  return invalid([{ path: 'body', message: `must be a form of at most ${MAX_FIELDS} fields` }])
}

const AMPERSAND = 0x26
const EQUALS = 0x3d
const PLUS = 0x2b
const PERCENT = 0x25
const SPACE = 0x20

/** Whether a body that is said to be a form is one: `curl -d` says so of any text. */
export function looksLikeForm(bytes: Uint8Array): boolean {
  return bytes.includes(EQUALS) || bytes.includes(AMPERSAND)
}

/**
 * The fields of a form of the type `application/x-www-form-urlencoded`, as an object with one key for each name. Escapes
 * are of bytes in the form's charset. Throws INVALID for more than MAX_FIELDS.
 */
export function parseForm(bytes: Uint8Array, charset?: string): Record<string, unknown> {
  const parts: [from: number, to: number][] = []
  for (let from = 0; from <= bytes.length; ) {
    const found = bytes.indexOf(AMPERSAND, from)
    const to = found < 0 ? bytes.length : found
    if (to > from && parts.push([from, to]) > MAX_FIELDS) throw tooManyFields()
    from = to + 1
  }
  const decoder = openDecoder(charset, { ignoreBOM: true })!
  const out = new Uint8Array(bytes.length)
  const read = (from: number, to: number) =>
    decoder.decode(out.subarray(0, unescapeInto(out, bytes, from, to)))
  const fields = parts.map(([from, to]): [string, string] => {
    const found = bytes.subarray(from, to).indexOf(EQUALS)
    const split = found < 0 ? to : from + found
    return [read(from, split), read(Math.min(split + 1, to), to)]
  })
  return collectByName(fields)
}

/** Writes the bytes that a part of a form encodes, and returns their number. */
function unescapeInto(out: Uint8Array, bytes: Uint8Array, from: number, to: number): number {
  let size = 0
  for (let at = from; at < to; at++) {
    const byte = bytes[at]!
    if (byte === PERCENT && at + 2 < to) {
      const high = hexOf(bytes[at + 1]!)
      const low = hexOf(bytes[at + 2]!)
      if (high >= 0 && low >= 0) {
        out[size++] = high * 16 + low
        at += 2
        continue
      }
    }
    out[size++] = byte === PLUS ? SPACE : byte
  }
  return size
}

function hexOf(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}
