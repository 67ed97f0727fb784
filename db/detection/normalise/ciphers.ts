import type { Edit } from './reading.ts'
import { isWord, isWordBackwards } from './vocabulary.ts'

/** Letters and digits that stand for others: `1gn0r3`. What 1 and ! stand for is what makes a known word, else i. */
const LEET: Record<string, string> = {
  '0': 'o',
  '1': 'i',
  '2': 'z',
  '3': 'e',
  '4': 'a',
  '5': 's',
  '6': 'g',
  '7': 't',
  '8': 'b',
  '9': 'g',
  '@': 'a',
  $: 's',
  '!': 'i',
  '€': 'e',
  '£': 'l',
  '¡': 'i',
}
const LEET_TOKEN = /[A-Za-z0-9@$!€£¡]{2,24}/g
const NOT_LETTER = /[^A-Za-z]/
const ONE = /[1!]/

/** Words some of whose letters are digits or signs, with the letters. */
export function findLeet(text: string): Edit[] {
  const edits: Edit[] = []
  for (const { 0: found, index } of text.matchAll(LEET_TOKEN)) {
    const token = found.replace(/!+$/, '')
    const start = index + found.indexOf(token)
    if (token.length < 2 || !NOT_LETTER.test(token) || !isLeet(token)) continue
    const read = readLeet(token.toLowerCase())
    const units = Array.from(token, (_, at) => start + at)
    edits.push({ start, end: start + token.length, text: read, from: units, to: units.map((at) => at + 1) })
  }
  return edits
}

/** Signs that names, mails and code have too: only what makes a known word is read. */
const ONLY_SIGNS = /^[A-Za-z@!¡]+$/

// As many letters as digits, or what makes a known word: not a number with a unit, a version or a hash.
function isLeet(token: string): boolean {
  const letters = token.replace(/[^A-Za-z]/g, '').length
  if (isWord(readLeet(token.toLowerCase()))) return letters > 0 || token.length > 2
  if (ONLY_SIGNS.test(token) || letters < 2 || letters * 2 < token.length) return false
  return /[A-Za-z][^A-Za-z]+[A-Za-z]|^[^A-Za-z][A-Za-z]{2}/.test(token)
}

function readLeet(token: string): string {
  const read = (one: string) =>
    token.replace(/[^a-z]/g, (char) => (ONE.test(char) ? one : (LEET[char] ?? char)[0]!))
  const first = read('i')
  if (!ONE.test(token) || isWord(first)) return first
  const second = read('l')
  return isWord(second) ? second : first
}

const WORD = /[A-Za-z]{2,40}/g
/**
 * The least number of different words, known only in this reading, and of letters in them, that show a text was written
 * so.
 */
const LEAST_WORDS = 2
const LEAST_LETTERS = 9

/** Text in rot13. */
export function findRot13(text: string): Edit[] {
  return findWritten(
    text,
    (word) => word.length > 2 && isWord(rotate(word)) && !isWord(word),
    (run, start) => {
      const units = Array.from({ length: run.length }, (_, at) => start + at)
      return { start, end: start + run.length, text: rotate(run), from: units, to: units.map((at) => at + 1) }
    },
  )
}

const rotate = (text: string) =>
  text.replace(/[a-z]/gi, (char) => {
    const base = char <= 'Z' ? 65 : 97
    return String.fromCharCode(((char.charCodeAt(0) - base + 13) % 26) + base)
  })

/** Text that is written backwards. */
export function findReversed(text: string): Edit[] {
  return findWritten(
    text,
    (word) => word.length > 2 && isWordBackwards(word) && !isWord(word),
    (run, start) => {
      const units = Array.from({ length: run.length }, (_, at) => start + run.length - 1 - at)
      const read = [...run].reverse().join('')
      // Characters of two units would be torn apart: they are left as they stand.
      const safe =
        read.length === run.length && !/[\ud800-\udfff]/.test(run)
          ? read
          : run
              .split('')
              .reverse()
              .join('')
              .replace(/[\ud800-\udfff]/g, ' ')
      return { start, end: start + run.length, text: safe, from: units, to: units.map((at) => at + 1) }
    },
  )
}

/** Runs of words of which enough are known when they are read in another way, and few as they stand. */
function findWritten(
  text: string,
  isKnownSo: (word: string) => boolean,
  read: (run: string, start: number) => Edit,
): Edit[] {
  const edits: Edit[] = []
  const start = () => ({ begin: -1, end: -1, known: new Set<string>(), hits: 0, words: 0, misses: 0 })
  let run = start()
  const flush = () => {
    const letters = [...run.known].reduce((sum, { length }) => sum + length, 0)
    if (run.known.size >= LEAST_WORDS && letters >= LEAST_LETTERS && run.hits * 2 >= run.words)
      edits.push(read(text.slice(run.begin, run.end), run.begin))
    run = start()
  }
  for (const { 0: found, index } of text.matchAll(WORD)) {
    const word = found.toLowerCase()
    const known = isKnownSo(word)
    if (!known && isWord(word)) {
      // Some short words can be read both ways.
      if (word.length > 3) flush()
      continue
    }
    // Names, and words that are not known at all, belong to it if not too many of them stand together.
    if (!known && ++run.misses > 4) {
      flush()
      continue
    }
    if (run.begin < 0) run.begin = index
    run.end = index + found.length
    run.words++
    if (known) {
      run.known.add(word)
      run.hits++
      run.misses = 0
    }
  }
  flush()
  return edits
}
