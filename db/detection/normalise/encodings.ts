import { measureUtf8, readUtf8 } from './escapes.ts'
import type { Edit } from './reading.ts'
import { isWord } from './vocabulary.ts'

/** Bytes that were read from a text, with the first unit of it that each came from, and the one after the last. */
type Bytes = { bytes: Uint8Array; from: Int32Array; to: Int32Array }
/** Bytes from `begin` up to `end` that are text. */
type Stretch = { begin: number; end: number }

/** This many ASCII characters are text, whatever is around them; random bytes look so by chance once in 10 million. */
const LEAST_INSIDE = 14
/** This many are text if the whole encoded run is text. */
const LEAST_WHOLE = 4

// Lines of 60 characters and more may go on in the next one, as in mails and keys.
const BASE64 = /(?<![\w+/-])[\w+/-]{8,}(?:(?<=[\w+/-]{60})\r?\n[\w+/-]{1,})*={0,2}/g
const VALUES = new Int8Array(128).fill(-1)
for (const [value, char] of [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'].entries())
  VALUES[char.charCodeAt(0)] = value
VALUES['-'.charCodeAt(0)] = 62
VALUES['_'.charCodeAt(0)] = 63

/**
 * Text that was encoded in base64 or base64url. It may begin anywhere in a run of such characters, because a word or a
 * path may precede it: all four alignments are read.
 */
export function findBase64(text: string): Edit[] {
  const edits: Edit[] = []
  for (const { 0: run, index } of text.matchAll(BASE64)) {
    if (isSimpleWord(run)) continue
    const found: Edit[] = []
    for (let shift = 0; shift < 4 && shift < run.length - 7; shift++) {
      const read = readSextets(run, index, shift)
      const whole = shift === 0
      found.push(...readStretches(read, whole))
      if (whole && found.length === 1 && isAll(found[0]!, read)) break
    }
    edits.push(...takeLongest(found))
  }
  return edits
}

const isSimpleWord = (run: string) => run.length < 16 && /^(?:[A-Z]?[a-z]+|[A-Z]+|[0-9]+)$/.test(run)

const isAll = ({ text }: Edit, { bytes }: Bytes) => text.length === bytes.length

function readSextets(run: string, index: number, shift: number): Bytes {
  const size = Math.floor((run.length * 3) / 4) + 3
  const read = { bytes: new Uint8Array(size), from: new Int32Array(size), to: new Int32Array(size) }
  let bits = 0
  let held = 0
  let length = 0
  let previous = 0
  for (let at = shift; at < run.length; at++) {
    const value = VALUES[run.charCodeAt(at)] ?? -1
    if (value < 0) continue
    bits = ((bits << 6) | value) & 0x3fff
    held += 6
    if (held >= 8) {
      held -= 8
      read.bytes[length] = (bits >> held) & 0xff
      read.from[length] = index + previous
      read.to[length] = index + at + 1
      length++
    }
    previous = at
  }
  // The equals signs at the end belong to it.
  if (length > 0) read.to[length - 1] = index + run.length
  return cutBytes(read, length)
}

const cutBytes = ({ bytes, from, to }: Bytes, length: number): Bytes => ({
  bytes: bytes.subarray(0, length),
  from: from.subarray(0, length),
  to: to.subarray(0, length),
})

// Pairs of hex digits, together or with a gap or `0x`, `\x` between: at least eight of them.
const HEX = /(?<![\da-z])(?:(?:0x|\\x)?[\da-f]{2}(?:, |[ :,;-])?){6,}/gi
const PAIR = /(?:0x|\\x)?[\da-f]{2}/gi
const BINARY = /(?<!\d)(?:[01]{8}[ ,]?){4,}/g
const DECIMAL =
  /(?<![\d.])(?:(?:3[2-9]|[4-9]\d|1[01]\d|12[0-6])(?:, ?|[ ;])){5,}(?:3[2-9]|[4-9]\d|1[01]\d|12[0-6])(?![\d.])/g

/** Text that was written as the numbers of its bytes: in hex, in binary, or in decimal with gaps. */
export function findHex(text: string): Edit[] {
  const edits: Edit[] = []
  for (const { 0: run, index } of text.matchAll(HEX)) {
    const found = readStretches(readNumbers(run, index, PAIR, 16), true)
    // An odd digit before may have moved all pairs.
    if (found.length === 0)
      found.push(...readStretches(readNumbers(run.slice(1), index + 1, PAIR, 16), false))
    edits.push(...found)
  }
  for (const { 0: run, index } of text.matchAll(BINARY))
    edits.push(...readStretches(readNumbers(run, index, /[01]{8}/g, 2), true))
  for (const { 0: run, index } of text.matchAll(DECIMAL))
    edits.push(...readStretches(readNumbers(run, index, /\d+/g, 10), true))
  return takeLongest(edits)
}

function readNumbers(run: string, index: number, number: RegExp, radix: number): Bytes {
  const found = Array.from(run.matchAll(number))
  return {
    bytes: Uint8Array.from(found, ([digits]) =>
      Number.parseInt(radix === 16 ? digits.slice(-2) : digits, radix),
    ),
    from: Int32Array.from(found, (match) => index + match.index),
    to: Int32Array.from(found, (match) => index + match.index + match[0].length),
  }
}

/** The stretches of bytes that are text, as edits. All of the bytes may be few. */
function readStretches(read: Bytes, mayBeShort: boolean): Edit[] {
  const { bytes, from, to } = withoutZeros(read)
  return listStretches(bytes, mayBeShort).map(({ begin, end }) => {
    const { text, ...places } = readUtf8(bytes, begin, end)
    return {
      start: from[begin]!,
      end: to[end - 1]!,
      text,
      from: places.from.map((at) => from[at]!),
      to: places.to.map((at) => to[at - 1]!),
    }
  })
}

/** In UTF-16 every other byte of an ASCII text is zero. */
function withoutZeros(read: Bytes): Bytes {
  const { bytes } = read
  let zeros = 0
  for (const byte of bytes) if (byte === 0) zeros++
  if (zeros * 10 < bytes.length * 4) return read
  const kept = { bytes: new Uint8Array(bytes.length), from: read.from.slice(), to: read.to.slice() }
  let length = 0
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] === 0) continue
    kept.bytes[length] = bytes[at]!
    kept.from[length] = read.from[at]!
    kept.to[length] = read.to[at]!
    length++
  }
  return cutBytes(kept, length)
}

function listStretches(bytes: Uint8Array, mayBeShort: boolean): Stretch[] {
  const stretches: Stretch[] = []
  const whole = measureText(bytes, 0)
  const count = whole.ascii + whole.others
  if (mayBeShort && whole.end === bytes.length && count >= LEAST_WHOLE) {
    if (count < LEAST_INSIDE && !hasWord(bytes)) return []
    return whole.ascii > 0.6 * (whole.ascii + whole.others) || whole.others >= 4
      ? [{ begin: 0, end: whole.end }]
      : []
  }
  for (let begin = 0; begin < bytes.length; ) {
    const { end, ascii } = measureText(bytes, begin)
    if (ascii >= LEAST_INSIDE) stretches.push({ begin, end })
    begin = Math.max(end, begin + 1)
  }
  return stretches
}

/** A few letters are text when they are a known word: names in code are right base64 by chance. */
function hasWord(bytes: Uint8Array): boolean {
  const words =
    Buffer.from(bytes)
      .toString('latin1')
      .toLowerCase()
      .match(/[a-z]{3,}/g) ?? []
  return words.some(isWord)
}

/** How far the bytes from `begin` on are characters that people write, and how many are of ASCII. */
function measureText(bytes: Uint8Array, begin: number): { end: number; ascii: number; others: number } {
  let ascii = 0
  let others = 0
  let at = begin
  while (at < bytes.length) {
    const byte = bytes[at]!
    if ((byte >= 0x20 && byte < 0x7f) || byte === 9 || byte === 10 || byte === 13) ascii++
    else if (byte > 0x7f && measureUtf8(bytes, at, bytes.length) > 0) others++
    else break
    at += Math.max(1, measureUtf8(bytes, at, bytes.length))
  }
  return { end: at, ascii, others }
}

/** The longest of edits that overlap, sorted by start. */
function takeLongest(edits: Edit[]): Edit[] {
  if (edits.length < 2) return edits
  const kept: Edit[] = []
  const sorted = edits.toSorted((a, b) => a.start - b.start || b.end - a.end)
  for (const edit of sorted) {
    const last = kept.at(-1)
    if (!last || edit.start >= last.end) kept.push(edit)
    else if (edit.text.length > last.text.length) kept[kept.length - 1] = edit
  }
  return kept
}
