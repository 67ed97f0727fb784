import { bucketOf, hashText, joinHashes, type LinearModel, scoreBuckets } from '../linear.ts'

const WORD = /\p{L}[\p{L}\p{M}'’]*/gu
/** Words that are shorter say little about what a text is about. */
const LONG = 4

/** The buckets of a text's words and of each two that follow each other: what the cheap choice of windows looks at. */
export function listWordBuckets(text: string, bits: number): Set<number> {
  const buckets = new Set<number>()
  let before = 0
  for (const [word] of text.toLowerCase().matchAll(WORD)) {
    const hash = hashText(word)
    buckets.add(bucketOf(hash, bits))
    buckets.add(bucketOf(joinHashes(before, hash), bits))
    before = hash
  }
  return buckets
}

/** How much the words of a text are those of attacks: above 0 more than not. */
export function scoreWords(text: string, model: LinearModel): number {
  return scoreBuckets(model, listWordBuckets(text, model.bits))
}

/** The longer words of texts. */
export function collectWords(texts: readonly string[]): Set<string> {
  return new Set(texts.flatMap((text) => [...listLongWords(text)]))
}

/** Which share of a text's longer words is among those given, 0 to 1. */
export function shareWords(text: string, known: ReadonlySet<string>): number {
  const words = listLongWords(text)
  if (words.size === 0) return 0
  let shared = 0
  for (const word of words) if (known.has(word)) shared++
  return shared / words.size
}

function listLongWords(text: string): Set<string> {
  const words = [...text.toLowerCase().matchAll(WORD)].map(([word]) => word)
  return new Set(words.filter((word) => word.length >= LONG))
}
