import { hashText } from '../linear.ts'
import type { Token } from './tokens.ts'

/** The words that have a meaning: their hashes, with their numbers. */
export type Vocabulary = ReadonlyMap<number, number>

/** What the words of a vocabulary say for a category, in their order, a byte each; `scale` makes a score of a byte. */
export type Meanings = { scale: number; weights: Int8Array }

/** The vocabulary of a file: the hashes in base64, four bytes each, the lowest first. */
export function openVocabulary(stored: string): Vocabulary {
  const bytes = Buffer.from(stored, 'base64')
  return new Map(
    Array.from({ length: bytes.length / 4 }, (_, place) => [bytes.readUInt32LE(4 * place), place]),
  )
}

/** The distinct words of a stretch of tokens that have a meaning, as numbers, and how many words there are at all. */
export type MetWords = { known: number[]; words: number }

/** Reads the words of a text once, for any number of stretches of it. */
export function readMeanings(tokens: readonly Token[], vocabulary: Vocabulary) {
  const words = new Map<string, number>()
  const ids = Uint32Array.from(tokens, ({ word }) => {
    const id = words.get(word) ?? words.size
    words.set(word, id)
    return id
  })
  const meanings = Int32Array.from(words.keys(), (word) => vocabulary.get(hashText(word)) ?? -1)
  const seen = new Uint32Array(words.size)
  let stretch = 0
  return (from: number, to: number): MetWords => {
    stretch++
    const met: MetWords = { known: [], words: 0 }
    for (let index = from; index < to; index++) {
      const id = ids[index]!
      if (seen[id] === stretch) continue
      seen[id] = stretch
      met.words++
      if (meanings[id]! >= 0) met.known.push(meanings[id]!)
    }
    return met
  }
}

/** How little the words of a short stretch count: as if it had so many more. */
const MORE_WORDS = 4

/** What the sum over a stretch's words is divided by, so that long stretches and short ones are on one scale. */
export const sizeOf = (words: number): number => Math.sqrt(words + MORE_WORDS)

/** The score of a stretch's words. */
export function scoreMeanings({ scale, weights }: Meanings, { known, words }: MetWords): number {
  let sum = 0
  for (const word of known) sum += weights[word]!
  return (sum * scale) / sizeOf(words)
}
