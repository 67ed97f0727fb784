import { hashText } from '../../../../../activities/guardrails/linear.ts'

/** What the words say along the direction of a category, and how much that counts. */
type Said = { factor: number; said: Float64Array }

/** Words that say less than this in every category, in steps of a byte, are left out. */
const LEAST = 18

/** The vocabulary as hashes and what its words say for each category as bytes, both in base64, the lowest hash first. */
export function packVocabulary(words: readonly string[], judges: readonly Said[]) {
  const scales = judges.map(({ said }) => {
    const sizes = said.map(Math.abs).sort()
    return sizes[Math.floor(sizes.length * 0.999)]! / 127
  })
  const toByte = (judge: number, word: number) =>
    Math.max(-127, Math.min(127, Math.round(judges[judge]!.said[word]! / scales[judge]!)))
  const kept = new Map(
    words.flatMap((text, word) =>
      judges.some((_, judge) => Math.abs(toByte(judge, word)) >= LEAST)
        ? [[hashText(text), word] as const]
        : [],
    ),
  )
  const hashes = [...kept.keys()].sort((a, b) => a - b)
  const vocabulary = Buffer.from(Uint32Array.from(hashes).buffer).toString('base64')
  const meanings = judges.map(({ factor }, judge) => ({
    scale: Number((scales[judge]! * factor).toPrecision(6)),
    weights: Buffer.from(Int8Array.from(hashes, (hash) => toByte(judge, kept.get(hash)!)).buffer).toString(
      'base64',
    ),
  }))
  return { vocabulary, meanings }
}
