import { readJson } from './json.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const NEWLINE = 0x0a

/**
 * Puts the digits of numbers that are too large between quotes, in JSON on its way to a library that would round them:
 * also JSON in the events of a stream. Pieces may end anywhere. `count` is how many numbers there were.
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

  function flush(out: number[]): void {
    const text = String.fromCharCode(...number)
    number = []
    const isLarge = text.length >= 16 && typeof readDigits(text) === 'string'
    if (isLarge) count++
    for (const byte of Buffer.from(isLarge ? `"${text}"` : text)) out.push(byte)
  }

  return {
    push(chunk) {
      const out: number[] = []
      for (const byte of chunk) {
        if (!quoted && (isDigit(byte) || (number.length === 0 ? byte === 0x2d : isInNumber(byte)))) {
          number.push(byte)
          continue
        }
        if (number.length > 0) flush(out)
        // No string of JSON goes over a line: what a stream has besides cannot leave one open.
        if (byte === NEWLINE) quoted = false
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

const isDigit = (byte: number) => byte >= 0x30 && byte <= 0x39
/** A dot, a sign, and the letter of an exponent. */
const isInNumber = (byte: number) =>
  byte === 0x2e || byte === 0x2b || byte === 0x2d || byte === 0x65 || byte === 0x45

function readDigits(text: string): unknown {
  try {
    return readJson(text).value
  } catch {
    return undefined
  }
}
