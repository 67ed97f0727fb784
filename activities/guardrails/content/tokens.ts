import { CONCEPTS, MAX_WORDS, readLexicon } from './lexicon.ts'
import { spellOut } from './spelling.ts'

/** A word or a term of the lexicon, with its place in the text (UTF-16 units), its concepts and its sentence's number. */
export type Token = {
  start: number
  end: number
  word: string
  concepts: readonly number[]
  sentence: number
}

/** A sentence, as places in the list of tokens. */
export type Sentence = { from: number; to: number }

const WORD = /[\p{L}\p{M}\p{N}]+(?:['’&*]+[\p{L}\p{M}]+)*|["“”«»]|[.!?…]+|\n{2,}/gu
const LONGEST_SENTENCE = 40
const NONE: readonly number[] = []
const MINOR = [CONCEPTS.indexOf('minor')]
const QUOTE = /^["“”«»]$/
const BREAK = /^[.!?…\n]/

/**
 * The words of a text in lower case, with the terms of the lexicon as one token each (the longest that begins at a
 * word), and its sentences; a sentence that has no end is cut. Linear time.
 */
export function readTokens(text: string): { tokens: Token[]; sentences: Sentence[] } {
  const { words, breaks } = listWords(text)
  const tokens: Token[] = []
  const sentences: Sentence[] = []
  let from = 0
  const endSentence = () => {
    if (tokens.length > from) sentences.push({ from, to: tokens.length })
    from = tokens.length
  }
  for (let index = 0; index < words.length; ) {
    const found = findTerm(words, index, breaks)
    tokens.push({ ...found.token, sentence: sentences.length })
    index += found.words
    if (breaks.has(index) || tokens.length - from >= LONGEST_SENTENCE) endSentence()
  }
  endSentence()
  return { tokens, sentences }
}

/** Letters of words that were spaced out: another reading of the text has the words. */
const isLoneLetter = (word: string) => word.length === 1 && /[b-hj-tv-z]/.test(word)

type Word = { start: number; end: number; word: string }

/** The words, and the places among them before which a sentence begins. */
function listWords(text: string): { words: Word[]; breaks: Set<number> } {
  const words: Word[] = []
  const breaks = new Set<number>()
  for (const match of text.matchAll(WORD)) {
    const [found] = match
    const start = match.index
    if (BREAK.test(found)) breaks.add(words.length)
    else {
      const word = QUOTE.test(found) ? '"' : spellOut(found.toLowerCase().replaceAll('’', "'"))
      if (!isLoneLetter(word)) words.push({ start, end: start + found.length, word })
    }
  }
  return { words, breaks }
}

function findTerm(
  words: Word[],
  index: number,
  breaks: Set<number>,
): { token: Omit<Token, 'sentence'>; words: number } {
  const { concepts, firstWords } = readLexicon()
  const first = words[index]!
  const longest = Math.min(firstWords.get(first.word) ?? 0, MAX_WORDS, words.length - index)
  let term = first.word
  let best: { concepts: readonly number[]; words: number; word: string } | undefined
  for (let length = 1; length <= longest; length++) {
    if (length > 1) {
      if (breaks.has(index + length - 1)) break
      term += ` ${words[index + length - 1]!.word}`
    }
    const known = concepts.get(term)
    if (known) best = { concepts: known, words: length, word: term }
  }
  best ??= findAge(words, index)
  if (!best) return { token: { ...first, concepts: NONE }, words: 1 }
  const end = words[index + best.words - 1]!.end
  return { token: { start: first.start, end, word: best.word, concepts: best.concepts }, words: best.words }
}

/** `14 year old`, `age 9`: an age of a child counts as a word for one. */
function findAge(words: Word[], index: number) {
  const word = words[index]!.word
  const [next, after] = [words[index + 1]?.word, words[index + 2]?.word]
  if (
    isChildsAge(word) &&
    (next === 'yo' || next === 'y' || (/^years?$/.test(next ?? '') && after === 'old'))
  ) {
    return { concepts: MINOR, words: next === 'yo' ? 2 : 3 > words.length - index ? 2 : 3, word: 'child age' }
  }
  if ((word === 'age' || word === 'aged') && isChildsAge(next ?? '')) {
    return { concepts: MINOR, words: 2, word: 'child age' }
  }
}

const isChildsAge = (word: string) => /^(?:[1-9]|1[0-7])$/.test(word)
