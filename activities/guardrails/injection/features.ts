import { bucketOf, hashText, joinHashes } from '../linear.ts'
import { listClasses } from './lexicon.ts'

/** The words and signs of a text, with the buckets of their features: those of token `i` end at `ends[i]` of `buckets`. */
export type TextFeatures = {
  count: number
  /** Where each token begins and ends in the text, in UTF-16 units. */
  starts: Int32Array
  stops: Int32Array
  ends: Int32Array
  buckets: Int32Array
}

/** A word of any script, or one sign. Scripts without spaces have each letter as a word; long words are cut. */
const TOKEN =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|[\p{L}\p{M}\p{N}_]{1,24}|[^\s\p{L}\p{M}\p{N}_]/gu

/** Seeds that keep the kinds of features apart. */
const SEEDS = {
  word: 11,
  pair: 23,
  triple: 37,
  gap: 41,
  letters: 53,
  stem: 61,
  class: 71,
  classPair: 83,
  classTriple: 97,
}
const LETTERS = 4
const STEM = 5
/** Classes of words within so many tokens make a feature together. */
const REACH = 8
/** A feature of classes has two buckets, as what it says counts more than a word. */
const CLASS_COPIES = [0, 1_000]

/**
 * Reads a text, in lower case, into tokens with their features: the word; the word with those before it (two, three, and two
 * with a gap between); its beginning and its runs of four letters; and what it does (`lexicon.ts`), alone and after what
 * the words before it do. Linear time.
 */
export function readFeatures(text: string, bits: number): TextFeatures {
  const starts: number[] = []
  const stops: number[] = []
  const ends: number[] = []
  const buckets: number[] = []
  const add = (hash: number) => buckets.push(bucketOf(hash, bits))
  const addClass = createClassReader(add)
  let [last, beforeLast] = [0, 0]
  for (const match of text.matchAll(TOKEN)) {
    const token = match[0].toLowerCase()
    const hash = hashText(token, SEEDS.word)
    add(hash)
    if (starts.length > 0) add(joinHashes(joinHashes(SEEDS.pair, last), hash))
    if (starts.length > 1) {
      add(joinHashes(joinHashes(joinHashes(SEEDS.triple, beforeLast), last), hash))
      add(joinHashes(joinHashes(SEEDS.gap, beforeLast), hash))
    }
    if (token.length > 2) addLetters(token, add)
    addClass(token, starts.length)
    beforeLast = last
    last = hash
    starts.push(match.index)
    stops.push(match.index + match[0].length)
    ends.push(buckets.length)
  }
  return {
    count: starts.length,
    starts: Int32Array.from(starts),
    stops: Int32Array.from(stops),
    ends: Int32Array.from(ends),
    buckets: Int32Array.from(buckets),
  }
}

function addLetters(token: string, add: (hash: number) => void): void {
  const word = ` ${token} `
  for (let start = 0; start + LETTERS <= word.length; start++) {
    add(hashText(word, SEEDS.letters, start, start + LETTERS))
  }
  add(hashText(token, SEEDS.stem, 0, Math.min(STEM, token.length)))
}

/** Remembers what the last words do, and adds what a token does, alone, after one of them, and after two of them. */
function createClassReader(add: (hash: number) => void) {
  const near: { at: number; is: number }[] = []
  let last = ''
  return (token: string, at: number) => {
    // Scripts without spaces come letter by letter: two letters may be a word.
    const classes =
      token.length < 2 ? [...listClasses(token), ...listClasses(last + token)] : listClasses(token)
    last = token
    if (classes.length === 0) return
    while (near.length > 0 && near[0]!.at < at - REACH) near.shift()
    for (const is of classes) {
      for (const copy of CLASS_COPIES) add(joinHashes(SEEDS.class + copy, is))
      let before = -1
      for (const other of near) {
        for (const copy of CLASS_COPIES) {
          const pair = joinHashes(joinHashes(SEEDS.classPair + copy, other.is), is)
          add(pair)
          if (before >= 0) add(joinHashes(joinHashes(SEEDS.classTriple + copy, before), pair))
        }
        before = other.is
      }
    }
    for (const is of classes) near.push({ at, is })
  }
}

/** From which token up to, not including, which. */
export type TokenWindow = { from: number; to: number }

/** Windows of `width` tokens that overlap by half and together hold all tokens; one window if they are few. */
export function cutWindows(count: number, width: number): TokenWindow[] {
  if (count === 0) return []
  const windows: TokenWindow[] = []
  const step = width / 2
  for (let from = 0; ; from += step) {
    windows.push({ from, to: Math.min(count, from + width) })
    if (from + width >= count) return windows
  }
}

/** Gives the distinct buckets of windows, in the order of the text. Made once for many texts, as it is large. */
export function createBucketLister(bits: number) {
  const seen = new Int32Array(2 ** bits)
  let turn = 0
  return ({ ends, buckets }: TextFeatures, { from, to }: TokenWindow): Int32Array => {
    turn++
    const first = from === 0 ? 0 : ends[from - 1]!
    const last = ends[to - 1]!
    const distinct = new Int32Array(last - first)
    let count = 0
    for (let at = first; at < last; at++) {
      const bucket = buckets[at]!
      if (seen[bucket] === turn) continue
      seen[bucket] = turn
      distinct[count++] = bucket
    }
    return distinct.subarray(0, count)
  }
}

export type BucketLister = ReturnType<typeof createBucketLister>
