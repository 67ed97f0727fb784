import { readJson } from './json.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const NEWLINE = 0x0a
const RETURN = 0x0d
const SPACE = 0x20
const TAB = 0x09
const COLON = 0x3a
const COMMA = 0x2c
const BRACKET = 0x5b
const MINUS = 0x2d

/** The fields of an event besides its data. A comment has an empty name. */
const OTHER_FIELDS = ['', 'event', 'id', 'retry']
const MAX_FIELD = 10

/** A longer number is useless as a number: its digits are passed on unchanged. */
const MAX_DIGITS = 10_000

/** The bytes that may precede a number: in JSON a comma, a colon, a bracket or space, but no letter. */
const isBefore = (byte: number) =>
  byte === COLON || byte === COMMA || byte === BRACKET || byte === SPACE || byte === TAB || isLineEnd(byte)

/**
 * Puts the digits of numbers that are too large between quotes, in JSON on its way to a library that would round them:
 * also JSON in the events of a stream, whose other lines, such as `id: 123`, stay as they are. Pieces may end anywhere.
 * `count` is how many numbers there were.
 */
export function createQuoter(): {
  push(chunk: Uint8Array): Uint8Array
  end(): Uint8Array
  count(): number
} {
  let quoted = false
  let escaped = false
  /** The bytes of the number that has begun. */
  let number: number[] = []
  let count = 0
  /** The byte before, and the beginning of the line while it may be the name of a field. */
  let before = NEWLINE
  let field: string | undefined = ''
  /** Whether the line is a field of an event that is not its data. */
  let isOther = false

  function flush(out: number[]): void {
    const text = Buffer.from(number).toString('latin1')
    number = []
    const isLarge = text.length >= 16 && text.length <= MAX_DIGITS && typeof readDigits(text) === 'string'
    if (isLarge) count++
    for (const byte of Buffer.from(isLarge ? `"${text}"` : text)) out.push(byte)
  }

  function watchLine(byte: number): void {
    if (isLineEnd(byte)) {
      field = ''
      isOther = false
    } else if (field !== undefined && byte === COLON) {
      isOther = OTHER_FIELDS.includes(field)
      field = undefined
    } else if (field !== undefined)
      field = field.length < MAX_FIELD && isLetter(byte) ? field + String.fromCharCode(byte) : undefined
  }

  return {
    push(chunk) {
      const out: number[] = []
      for (const byte of chunk) {
        const begins = isDigit(byte) || byte === MINUS
        if (number.length > 0 ? isInNumber(byte) : begins && !quoted && !isOther && isBefore(before)) {
          field = undefined
          number.push(byte)
          before = byte
          continue
        }
        if (number.length > 0) flush(out)
        watchLine(byte)
        before = byte
        // No string of JSON goes over a line: what a stream has besides cannot leave one open.
        if (isLineEnd(byte)) quoted = false
        else if (isOther) quoted = false
        else if (quoted && escaped) escaped = false
        else if (quoted && byte === BACKSLASH) escaped = true
        else if (byte === QUOTE) quoted = !quoted
        if (!quoted) escaped = false
        out.push(byte)
      }
      return Uint8Array.from(out)
    },
    end() {
      const out: number[] = []
      if (number.length > 0) flush(out)
      return Uint8Array.from(out)
    },
    count: () => count,
  }
}

const isLineEnd = (byte: number) => byte === NEWLINE || byte === RETURN
const isLetter = (byte: number) => byte >= 0x61 && byte <= 0x7a
const isDigit = (byte: number) => byte >= 0x30 && byte <= 0x39
/** A digit, a dot, a sign, and the letter of an exponent. */
const isInNumber = (byte: number) =>
  isDigit(byte) || byte === 0x2e || byte === 0x2b || byte === 0x2d || byte === 0x65 || byte === 0x45

function readDigits(text: string): unknown {
  try {
    return readJson(text).value
  } catch {
    return undefined
  }
}
