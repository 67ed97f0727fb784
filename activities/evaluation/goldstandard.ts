import { isDeepStrictEqual } from 'node:util'
import { readJson as parseJson } from '../reading/json.ts'

/**
 * The result of comparing a case's output with the expected one. Null: nothing is expected, or no comparison could
 * decide.
 */
export type GoldStandard = {
  match: boolean | null
  rung: 'EXACT' | 'NUMERIC' | 'JSON' | 'SIMILARITY' | 'JUDGE' | null
  reasoning: string | null
}

/** Numbers are equal if they differ by no more than this share of the larger one. */
const TOLERANCE = 1e-6

/** From this share of the same words on, texts are taken for the same. */
const LEAST_SHARE = 0.95

/** Longer texts are not compared word by word, and JSON of more bytes is not parsed. */
const MOST_COMPARED = 50_000

/**
 * Climbs the rungs of a ladder that need no model: the same text, the same number, equal JSON, the same words. Null if
 * none of them can tell: then a judge must.
 */
export function compareWithExpected(actual: string, expected: string): GoldStandard | null {
  const [given, wanted] = [actual.trim(), expected.trim()]
  if (given === wanted) return { match: true, rung: 'EXACT', reasoning: 'The output is exactly as expected' }
  const [id, wantedId] = [given, wanted].map(readLargeInteger)
  if (id !== undefined && wantedId !== undefined) {
    const reasoning = `The output is the number ${id}, and ${wantedId} is expected`
    if (id !== wantedId) return { match: false, rung: 'NUMERIC', reasoning }
  }
  const [number, wantedNumber] = [readNumber(given), readNumber(wanted)]
  if (number !== undefined && wantedNumber !== undefined) return compareNumbers(number, wantedNumber)
  if (given.length > MOST_COMPARED || wanted.length > MOST_COMPARED) return null
  const [json, wantedJson] = [readJson(given), readJson(wanted)]
  if (json !== undefined && wantedJson !== undefined && isDeepStrictEqual(json, wantedJson))
    return { match: true, rung: 'JSON', reasoning: 'The output is the same JSON as expected' }
  // In structures, a single different word may be all that counts.
  if (json !== undefined || wantedJson !== undefined) return null
  return compareWords(given, wanted)
}

function compareNumbers(number: number, wanted: number): GoldStandard {
  const match = Math.abs(number - wanted) <= TOLERANCE * Math.max(Math.abs(number), Math.abs(wanted))
  const reasoning = match
    ? `The output is the number that is expected: ${wanted}`
    : `The output is the number ${number}, and ${wanted} is expected`
  return { match, rung: 'NUMERIC', reasoning }
}

/** A whole number beyond 2^53 is an id: no digit of it may differ. */
function readLargeInteger(text: string): string | undefined {
  const digits = /^[+-]?\d{16,300}$/.test(text) ? BigInt(text) : 0n
  return digits > MOST_EXACT || digits < -MOST_EXACT ? String(digits) : undefined
}

const MOST_EXACT = BigInt(Number.MAX_SAFE_INTEGER)

const NUMBER = /^[+-]?(?:\d{1,3}(?:,\d{3})+|\d{1,300})(?:\.\d{1,300})?(?:[eE][+-]?\d{1,3})?$/

function readNumber(text: string): number | undefined {
  if (text.length > 1_000 || !NUMBER.test(text)) return undefined
  const number = Number(text.replaceAll(',', ''))
  return Number.isFinite(number) ? number : undefined
}

function readJson(text: string): object | undefined {
  if (!/^[[{]/.test(text)) return undefined
  try {
    const { value } = parseJson(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/** Words that turn a text into its opposite, or take most of it back, whatever else it shares with another. */
const TURNS =
  /^(?:no|not|never|none|nobody|nothing|neither|nor|without|cannot|false|true|yes|n't|unless|except|hardly|barely|almost|nearly|partly|only|kein\w*|nicht|nie|ohne|fast|kaum|nur|pas|jamais|ni|nunca|sin|casi|non)$/u

/**
 * The same words in the same order are the same. So are texts that differ only by a few additional words that do not
 * matter. If a word is replaced or moved, the text may say the opposite.
 */
function compareWords(given: string, wanted: string): GoldStandard | null {
  const [words, wantedWords] = [listWords(given), listWords(wanted)]
  if (words.length === 0 || wantedWords.length === 0) return null
  if (isDeepStrictEqual(words, wantedWords)) {
    const reasoning = 'The output is as expected, but for its case, punctuation or spaces'
    return { match: true, rung: 'SIMILARITY', reasoning }
  }
  const [fewer, more] = words.length < wantedWords.length ? [words, wantedWords] : [wantedWords, words]
  const added = findAdded(fewer, more)
  if (!added || added.some((word) => /\d/.test(word) || TURNS.test(word))) return null
  const share = (2 * fewer.length) / (fewer.length + more.length)
  if (share < LEAST_SHARE) return null
  const reasoning = `The output has ${Math.floor(share * 100)} % of its words in common with what is expected, in their order`
  return { match: true, rung: 'SIMILARITY', reasoning }
}

/** The words that a text has between those of another one; undefined if it has not all of these, in their order. */
function findAdded(fewer: string[], more: string[]): string[] | undefined {
  let at = 0
  const added = more.filter((word) => {
    if (word !== fewer[at]) return true
    at++
    return false
  })
  return at === fewer.length ? added : undefined
}

function listWords(text: string): string[] {
  const folded = text
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/[\u2018\u2019]/g, "'")
  return folded.replaceAll("n't", " n't").match(/n't|[\p{L}\p{M}\p{N}]+/gu) ?? []
}
