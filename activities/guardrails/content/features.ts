import { bucketOf, hashText, joinHashes } from '../linear.ts'
import { CONCEPTS } from './lexicon.ts'
import type { Token } from './tokens.ts'

/** The bits of a feature's number, in the models of content. */
export const CONTENT_BITS = 16

const REACH = 5
/** How many letters of a word tell what it is about, whatever its ending. */
const STEM = 5
const WORD = 1
const CONCEPT = 2
const PAIR = 3
const NEXT = 4
const TRIPLE = 5
const STEMS = 6
const MANY = 7

const conceptHashes = CONCEPTS.map((name) => hashText(`concept ${name}`))
const MANY_BUCKETS = [2, 4].map((times) => ({
  times,
  buckets: conceptHashes.map((hash) => bucketOf(joinHashes(MANY + times, hash), CONTENT_BITS)),
}))

/** What a word counts as in features of several: its concepts, or itself. */
type Symbols = { hashes: readonly number[]; known: boolean }

/** The distinct features of the stretch of tokens from `from` up to, not including, `to`, as buckets. */
export type ListFeatures = (from: number, to: number) => number[]

/**
 * Reads the features of a text once, for any number of stretches of it: the words, the concepts (and whether they come
 * twice and more), pairs of neighbours, and pairs and triples of concepts that stand near each other in their order.
 */
export function listFeatures(tokens: readonly Token[]): ListFeatures {
  /** The features that end with each token: their buckets, and the first token that they need. */
  const buckets: number[] = []
  const firsts: number[] = []
  const starts = new Uint32Array(tokens.length + 1)
  const symbols = memoizeSymbols()
  const recent: Symbols[] = []
  for (const [index, token] of tokens.entries()) {
    const add = (hash: number, first: number) => {
      buckets.push(bucketOf(hash, CONTENT_BITS))
      firsts.push(first)
    }
    const own = symbols(token)
    const hash = own.word
    add(joinHashes(WORD, hash), index)
    if (token.word.length > STEM) add(joinHashes(STEMS, hashText(token.word, undefined, 0, STEM)), index)
    if (index > 0) addNeighbours(add, recent.at(-1)!, own, index - 1)
    if (own.known) {
      for (const concept of own.hashes) add(joinHashes(CONCEPT, concept), index)
      addPairs(add, recent, own, index)
    }
    recent.push(own)
    if (recent.length > REACH) recent.shift()
    starts[index + 1] = buckets.length
  }
  const seen = new Uint32Array(2 ** CONTENT_BITS)
  const counts = new Uint32Array(CONCEPTS.length)
  let stretch = 0
  return (from, to) => {
    stretch++
    const met: number[] = []
    const found: number[] = []
    const keep = (bucket: number) => {
      if (seen[bucket] === stretch) return
      seen[bucket] = stretch
      found.push(bucket)
    }
    for (let entry = starts[from]!; entry < starts[to]!; entry++) {
      if (firsts[entry]! >= from) keep(buckets[entry]!)
    }
    for (let index = from; index < to; index++) {
      for (const concept of tokens[index]!.concepts) if (counts[concept]!++ === 0) met.push(concept)
    }
    for (const { times, buckets: many } of MANY_BUCKETS) {
      for (const concept of met) if (counts[concept]! >= times) keep(many[concept]!)
    }
    for (const concept of met) counts[concept] = 0
    return found
  }
}

/** The symbols of a token, with the hash of its word, made once a word. */
function memoizeSymbols() {
  const made = new Map<string, Symbols & { word: number }>()
  return ({ word, concepts }: Token) => {
    const before = made.get(word)
    if (before) return before
    const hash = hashText(word)
    const known = concepts.length > 0
    const own = {
      hashes: known ? concepts.map((concept) => conceptHashes[concept]!) : [hash],
      known,
      word: hash,
    }
    made.set(word, own)
    return own
  }
}

type Add = (hash: number, first: number) => void

function addNeighbours(add: Add, before: Symbols, symbols: Symbols, first: number) {
  if (!before.known && !symbols.known) return
  for (const one of before.hashes) {
    for (const other of symbols.hashes) add(joinHashes(NEXT, joinHashes(one, other)), first)
  }
}

/** Pairs with the concepts up to `REACH` tokens before, and triples with the two that came last. */
function addPairs(add: Add, recent: Symbols[], { hashes }: Symbols, index: number) {
  let last: Symbols | undefined
  for (let back = recent.length - 1; back >= 0; back--) {
    const before = recent[back]!
    if (!before.known) continue
    const first = index - (recent.length - back)
    for (const one of before.hashes) {
      for (const other of hashes) {
        const pair = joinHashes(one, other)
        add(joinHashes(PAIR, pair), first)
        if (last) for (const middle of last.hashes) add(joinHashes(TRIPLE, joinHashes(middle, pair)), first)
      }
    }
    if (last) break
    last = before
  }
}
