import type { Edit } from './reading.ts'
import { isWord, splitWords } from './vocabulary.ts'

const ALPHANUMERIC = /[\p{L}\p{N}]/u
const RUN = /(?<![\p{L}\p{N}])[\p{L}\p{N}](?:[^\p{L}\p{N}]{1,4}[\p{L}\p{N}](?![\p{L}\p{N}\p{M}])){3,}/gu

/**
 * Words whose letters stand apart (`i g n o r e`, `i-g-n-o-r-e`), words with other marks than spaces between
 * (`ignore_all_rules`) and words without anything between, each as words with spaces.
 */
export function findSpacing(text: string): Edit[] {
  const edits: Edit[] = []
  for (const { 0: run, index } of text.matchAll(RUN)) edits.push(...joinLetters(run, index))
  return [...edits, ...splitGlued(text)].sort((a, b) => a.start - b.start || b.end - a.end)
}

type Letter = { char: string; at: number; gap: string }

function joinLetters(run: string, index: number): Edit[] {
  const letters: Letter[] = []
  let gap = ''
  let at = 0
  for (const char of run) {
    if (ALPHANUMERIC.test(char)) {
      letters.push({ char, at, gap })
      gap = ''
    } else gap += char
    at += char.length
  }
  // Numbers that stand apart are a list, not a word.
  if (letters.filter(({ char }) => /\p{L}/u.test(char)).length < 3) return []
  const sizes = letters.slice(1).map((letter) => letter.gap.length)
  const least = sizes.reduce((a, b) => Math.min(a, b), 4)
  const gapped = sizes.some((size) => size > least)
  return [gapped ? joinByGaps(letters, least, index) : joinByWords(letters, index)]
}

function joinByGaps(letters: Letter[], least: number, index: number): Edit {
  return putTogether(
    letters,
    letters.map(({ gap }) => gap.length > least),
    index,
  )
}

function joinByWords(letters: Letter[], index: number): Edit {
  // Letters of two units are in no word: each counts as one here.
  const plain = letters
    .map(({ char }) => (char.length === 1 ? char : '?'))
    .join('')
    .toLowerCase()
  const begins = new Set(splitWords(plain).begins)
  return putTogether(
    letters,
    letters.map((_, at) => begins.has(at)),
    index,
  )
}

function putTogether(letters: Letter[], begins: boolean[], index: number): Edit {
  const from: number[] = []
  const to: number[] = []
  let text = ''
  for (const [i, { char, at }] of letters.entries()) {
    const place = index + at
    if (i > 0 && begins[i]) {
      text += ' '
      from.push(place)
      to.push(place + char.length)
    }
    text += char
    for (let unit = 0; unit < char.length; unit++) {
      from.push(place)
      to.push(place + char.length)
    }
  }
  const last = letters.at(-1)!
  return { start: index + letters[0]!.at, end: index + last.at + last.char.length, text, from, to }
}

const TOKEN = /[A-Za-z]+(?:[^\sA-Za-z0-9]{1,3}[A-Za-z]+)*/g
const LEAST_GLUED = 12
const MOST_GLUED = 4_000

function splitGlued(text: string): Edit[] {
  const edits: Edit[] = []
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    if (token.length < LEAST_GLUED || token.length > MOST_GLUED || isWord(token.toLowerCase())) continue
    const letters = Array.from(token.matchAll(/[A-Za-z]/g), (match) => ({
      char: match[0],
      at: match.index,
      gap: '',
    }))
    const { begins, unknown } = splitWords(
      letters
        .map(({ char }) => char)
        .join('')
        .toLowerCase(),
    )
    const marked = letters.length < token.length
    // Prose with dashes is read as it is; what is glued must be words, nearly all of it.
    if (begins.length < 3 || unknown * 6 > letters.length || letters.length < 3 * begins.length) continue
    if (!marked && begins.length * 7 < letters.length) continue
    const set = new Set(begins)
    edits.push(
      putTogether(
        letters,
        letters.map((_, at) => set.has(at)),
        index,
      ),
    )
  }
  return edits
}
