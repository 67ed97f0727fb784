import { findLookalike, findPlainMark } from './confusables.ts'
import { createReading, type MappedText, readPlainly } from './reading.ts'
import { isWord } from './vocabulary.ts'

/**
 * Reads a text as a person sees it, with its capitals: compatibility forms are replaced (NFKC), invisible characters
 * are left out, letters lose their accents, letters that look like Latin ones become those, and text in tags and
 * variation selectors, which are invisible, is read. Takes time in proportion to the length, and makes at most twice as
 * much.
 */
export function readCleanly(text: string): MappedText {
  if (isAscii(text)) return readPlainly(text)
  return foldLookalikes(readVisibly(text))
}

const NOT_PLAIN = /[^\t\n\r -~]/
const isAscii = (text: string) => !NOT_PLAIN.test(text)

/** Characters without a shape of their own: zero-width characters, marks of direction, fillers, control characters. */
const INVISIBLE = /^(?:\p{Default_Ignorable_Code_Point}|\p{Cf}|(?![\t\n\r\u0085])\p{Cc})$/u
const MARK = /^(?:\p{M}|[\uff9e\uff9f])$/u
/** Blocks of marks that stand on letters of Latin, Greek and Cyrillic, and on symbols. */
const ACCENTS: [number, number][] = [
  [0x300, 0x36f],
  [0x483, 0x489],
  [0x1ab0, 0x1aff],
  [0x1dc0, 0x1dff],
  [0x20d0, 0x20ff],
  [0xfe20, 0xfe2f],
]
const isAccent = (char: string) => {
  const code = char.charCodeAt(0)
  return ACCENTS.some(([from, to]) => code >= from && code <= to)
}
const LETTER = /^[a-zA-Z]$/
/**
 * The number of marks that are composed with one letter (Unicode's stream-safe form); more are characters of their own.
 */
const MAX_MARKS = 30

function readVisibly(text: string): MappedText {
  const building = createReading(text.length)
  let last = ''
  const add = (piece: string, start: number, end: number) => {
    building.add(piece, start, end)
    last = piece
  }
  for (let at = 0; at < text.length; ) {
    const code = text.codePointAt(at)!
    const char = String.fromCodePoint(code)
    const next = at + char.length
    if (code < 0x7f && (code >= 0x20 || code === 10 || code === 13 || code === 9)) {
      add(char, at, next)
      at = next
    } else if (isSmuggling(code)) {
      const end = readHidden(text, at, last, add)
      if (end > at) last = ' '
      at = Math.max(end, next)
    } else if (isRegional(code)) {
      // Two of these letters are a flag; more of them, or one, spell a word.
      const end = findRegionalsEnd(text, at)
      for (let i = at; i < end; i += 2) {
        const letter = String.fromCharCode(97 + text.codePointAt(i)! - FIRST_REGIONAL)
        add(end - at === 4 ? text.slice(i, i + 2) : letter, i, i + 2)
      }
      at = end
    } else if (
      INVISIBLE.test(char) &&
      code !== 0x3164 &&
      code !== 0x115f &&
      code !== 0x1160 &&
      code !== 0xffa0
    ) {
      at = next
    } else if (MARK.test(char)) {
      if (!isAccent(char) && !LETTER.test(last)) add(char, at, next)
      at = next
    } else {
      const end = findMarksEnd(text, next)
      const piece = readCharacter(char, text.slice(at, end))
      // A text of characters that stand for many others must not become much longer.
      add(building.length + piece.length > 2 * end + 16 ? char : piece, at, end)
      at = end
    }
  }
  return building.finish()
}

const FIRST_REGIONAL = 0x1f1e6
const isRegional = (code: number) => code >= FIRST_REGIONAL && code <= 0x1f1ff

function findRegionalsEnd(text: string, from: number): number {
  let end = from
  while (end < text.length && isRegional(text.codePointAt(end)!)) end += 2
  return end
}

function findMarksEnd(text: string, from: number): number {
  let end = from
  for (let marks = 0; marks < MAX_MARKS && end < text.length; marks++) {
    const char = String.fromCodePoint(text.codePointAt(end)!)
    if (!MARK.test(char) || isSmuggling(char.codePointAt(0)!)) break
    end += char.length
  }
  return end
}

function readCharacter(char: string, withMarks: string): string {
  const mark = findPlainMark(char)
  if (mark !== undefined) return mark
  const parts = char.normalize('NFKD')
  if (parts.charCodeAt(0) < 0x80)
    return Array.from(parts, (part) => (isAccent(part) ? '' : (findPlainMark(part) ?? part))).join('')
  const whole = withMarks.normalize('NFKC')
  const spacing = findPlainMark(whole)
  return spacing ?? whole
}

const TAGS = 0xe0000
const isSmuggling = (code: number) => (code >= TAGS && code <= 0xe01ef) || (code >= 0xfe00 && code <= 0xfe0f)

/**
 * Reads a run of tag characters, which each stand for one of ASCII, or of variation selectors, which each stand for a byte.
 * Returns where the run ends. A single selector chooses a shape, and a few tags after a black flag name a region.
 */
function readHidden(
  text: string,
  at: number,
  last: string,
  add: (piece: string, start: number, end: number) => void,
): number {
  const pieces: { piece: string; start: number; end: number }[] = []
  let bytes: { byte: number; start: number; end: number }[] = []
  let end = at
  const flush = () => {
    // There may be as many as the text has characters, which are too many for one call.
    if (bytes.length >= 4) for (const piece of readBytes(bytes)) pieces.push(piece)
    bytes = []
  }
  while (end < text.length) {
    const code = text.codePointAt(end)!
    if (!isSmuggling(code)) break
    const next = end + (code > 0xffff ? 2 : 1)
    if (code < 0x10000) bytes.push({ byte: code - 0xfe00, start: end, end: next })
    else if (code >= 0xe0100) bytes.push({ byte: code - 0xe0100 + 16, start: end, end: next })
    else {
      flush()
      if (code >= 0xe0020 && code <= 0xe007e)
        pieces.push({ piece: String.fromCharCode(code - TAGS), start: end, end: next })
    }
    end = next
  }
  flush()
  const first = pieces[0]
  if (!first || (last === '\u{1f3f4}' && pieces.length <= 6)) return end
  if (last !== '' && !/\s$/.test(last)) add(' ', first.start, first.end)
  for (const { piece, start, end: stop } of pieces) add(piece, start, stop)
  const final = pieces.at(-1)!
  if (end < text.length) add(' ', final.start, final.end)
  return end
}

function readBytes(bytes: { byte: number; start: number; end: number }[]) {
  return bytes
    .filter(({ byte }) => (byte >= 0x20 && byte < 0x7f) || byte === 10)
    .map(({ byte, start, end }) => ({ piece: String.fromCharCode(byte), start, end }))
}

const FOREIGN_WORD = /[\p{L}\p{N}\p{M}\u{1f150}-\u{1f189}]+/gu
const LATIN = /\p{Script=Latin}|[\u{1f150}-\u{1f189}]/u
const NOT_ASCII = /[^\0-\u007f]/

/**
 * Reads letters of other scripts as the Latin ones they look like, in words that are mixed with Latin letters, in words
 * that are known when read so, and in words all of whose letters look Latin and that are not among words of their
 * script.
 */
function foldLookalikes(reading: MappedText): MappedText {
  const { text } = reading
  const words = Array.from(text.matchAll(FOREIGN_WORD), ({ 0: word, index }) => describeWord(word, index))
  const building = createReading(text.length)
  let done = 0
  let foreigner = Number.NEGATIVE_INFINITY
  const next = findNextForeigners(words)
  for (const [index, word] of words.entries()) {
    if (word.foreign) foreigner = index
    if (!word.folded) continue
    const among = index - foreigner <= 5 || next[index]! - index <= 5
    if (!word.mixed && (word.foreign || (among && !isWord(word.folded.toLowerCase())))) continue
    building.copy(reading, done, word.start)
    let at = word.start
    for (const char of text.slice(word.start, word.end)) {
      const letter = findLookalike(char.codePointAt(0)!)
      if (letter) building.add(letter, reading.starts[at]!, reading.ends[at + char.length - 1]!)
      else building.copy(reading, at, at + char.length)
      at += char.length
    }
    done = word.end
  }
  if (done === 0) return reading
  building.copy(reading, done, text.length)
  return building.finish()
}

type ForeignWord = {
  start: number
  end: number
  /** With lookalikes replaced, if there are any. */
  folded: string | undefined
  /** Has letters of Latin, or such as are only ever used in place of them. */
  mixed: boolean
  /** Has letters of another script that look like none of Latin, and none of Latin. */
  foreign: boolean
}

function describeWord(word: string, start: number): ForeignWord {
  const described = { start, end: start + word.length, folded: undefined, mixed: false, foreign: false }
  if (!NOT_ASCII.test(word)) return described
  let folded = ''
  let found = false
  let latin = false
  let other = false
  for (const char of word) {
    const letter = findLookalike(char.codePointAt(0)!)
    if (letter) found = true
    if (LATIN.test(char)) latin = true
    else if (!letter && char.charCodeAt(0) > 0x7f) other = true
    folded += letter ?? char
  }
  return { ...described, folded: found ? folded : undefined, mixed: latin, foreign: other && !latin }
}

function findNextForeigners(words: ForeignWord[]): number[] {
  let next = Number.POSITIVE_INFINITY
  const found = new Array<number>(words.length)
  for (let index = words.length - 1; index >= 0; index--) {
    found[index] = next
    if (words[index]!.foreign) next = index
  }
  return found
}
