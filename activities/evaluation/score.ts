import { jsonrepair } from 'jsonrepair'
import { isObject } from '../../workflows/json.ts'
import { dropThoughts } from '../models/jsontext.ts'

/** Why an answer of a judge gives no score. */
export type Unreadable = 'EMPTY' | 'TRUNCATED' | 'UNREADABLE' | 'OUT_OF_RANGE' | 'CONTRADICTORY'

export type Score = 1 | 2 | 3 | 4 | 5

/** What a judge has said; or why it is not an answer: a code, and a sentence that can be told to the judge. */
export type ReadScore = { score: Score; explanation: string } | { fault: Unreadable; message: string }

/** More than an explanation and a score can be. */
const MAX_ANSWER = 65_536
const MAX_EXPLANATION = 4_000

/** A field of the answer, and not of a text in it: there the quotes are escaped. */
const SCORES = /(?<!\\)"score"\s*:\s*("(?:[^"\\]|\\.){0,40}"|[^\s,}\]"]{1,40})/g
/** The same with other quotes: JSON has no such fields, but what is mended may. */
const LOOSE_SCORES = /'score'\s*:\s*('(?:[^'\\]|\\.){0,40}'|[^\s,}\]']{1,40})/g
const FENCE = /```[a-z]*\s*([\s\S]*?)```/i

/**
 * Reads `{explanation, score}` from a judge's answer after its thoughts: as JSON, out of a code fence, the first
 * object in it, or mended. A score is a whole number from 1 to 5; no other is rounded or guessed, and of two that
 * differ none counts: a judge may quote an object that the output has.
 */
export function readScore(said: string, isCut = false): ReadScore {
  const text = dropThoughts(said)
  if (text.trim() === '') {
    if (isCut && said.trim() !== '') return { fault: 'TRUNCATED', message: 'it is cut off' }
    return { fault: 'EMPTY', message: 'it is empty' }
  }
  if (text.length > MAX_ANSWER) return { fault: 'UNREADABLE', message: 'it is too long' }
  const object = findObject(text, isCut)
  if (listScores(text, object).size > 1)
    return { fault: 'CONTRADICTORY', message: 'it has two different scores' }
  if (!object && isCut) return { fault: 'TRUNCATED', message: 'it is cut off' }
  if (!object) return { fault: 'UNREADABLE', message: 'it is no JSON object' }
  const score = toScore(object.score)
  if (object.score === undefined) return { fault: 'UNREADABLE', message: 'it has no field "score"' }
  if (score === undefined)
    return { fault: 'OUT_OF_RANGE', message: 'its score is not a whole number from 1 to 5' }
  const { explanation } = object
  return { score, explanation: typeof explanation === 'string' ? explanation.slice(0, MAX_EXPLANATION) : '' }
}

/** All scores that an answer can be read to have. Only what is no JSON as a whole can have them in other spellings. */
function listScores(text: string, object: Record<string, unknown> | undefined): Set<string> {
  const strict = [...text.matchAll(SCORES)]
  if (parse(text)) return new Set(strict.map((match) => toComparable(match[1]!)))
  const spelled = [...strict, ...text.matchAll(LOOSE_SCORES)].map((match) => toComparable(match[1]!))
  const read = object?.score
  return new Set([...spelled, ...(read === undefined ? [] : [toComparable(String(read))])])
}

function toComparable(spelled: string): string {
  const bare = spelled.replaceAll(/["']/g, '').trim()
  const number = Number(bare)
  return bare !== '' && Number.isFinite(number) ? String(number) : bare
}

function toScore(value: unknown): Score | undefined {
  const isText = typeof value === 'string' && /^\s*[1-5](?:\.0+)?\s*$/.test(value)
  const number = isText ? Number(value) : value
  const isScore = typeof number === 'number' && Number.isInteger(number) && number >= 1 && number <= 5
  return isScore ? (number as Score) : undefined
}

/** An answer that was cut off is not mended: its last figure may be incomplete. */
function findObject(text: string, isCut: boolean): Record<string, unknown> | undefined {
  const fenced = FENCE.exec(text)?.[1]
  const from = text.indexOf('{')
  const braces = findBraces(text, from)
  for (const candidate of [text, fenced, braces]) {
    const object = candidate === undefined ? undefined : parse(candidate)
    if (object) return object
  }
  if (isCut) return undefined
  for (const candidate of [fenced, braces, from < 0 ? undefined : text.slice(from)]) {
    const object = candidate === undefined ? undefined : mend(candidate)
    if (object) return object
  }
  return undefined
}

/** The first object, up to the brace that closes it. */
function findBraces(text: string, from: number): string | undefined {
  if (from < 0) return undefined
  let depth = 0
  let isText = false
  for (let at = from; at < text.length; at++) {
    const sign = text[at]
    if (isText && sign === '\\') at++
    else if (sign === '"') isText = !isText
    else if (!isText && sign === '{') depth++
    else if (!isText && sign === '}' && --depth === 0) return text.slice(from, at + 1)
  }
  return undefined
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function mend(text: string): Record<string, unknown> | undefined {
  try {
    return parse(jsonrepair(text))
  } catch {
    return undefined
  }
}
