import type { ContentCategory } from './categories.ts'
import { CONCEPTS } from './lexicon.ts'
import { CONTENT_RULES, matchRules, pointsOf } from './rules.ts'
import type { Token } from './tokens.ts'

/** How many figures a stretch of tokens has: one for each concept, two for each rule (plain, and negated). */
export const FIGURES = CONCEPTS.length + 2 * CONTENT_RULES.length

/** More different words of a concept than these say no more. */
const MOST = 7

/** Concepts that are in every text: they count in rules only. */
const COMMON = new Set(
  (['you', 'self', 'first', 'third', 'victim'] as const).map((name) => CONCEPTS.indexOf(name)),
)

/** The rules about children, as figures. */
export const MINOR_FIGURES: ReadonlySet<number> = new Set(
  CONTENT_RULES.flatMap(({ name }, rule) => (name.endsWith('-minor') ? [CONCEPTS.length + rule] : [])),
)

/** The figures of the whole sentences from token `from` up to, not including, `to`, with their values. */
export type ListFigures = (from: number, to: number) => [figure: number, value: number][]

/**
 * Reads the figures of a text once, for any number of stretches of whole sentences: how many different words of each
 * concept one has, and with how many different words each rule begins, on a scale that grows slowly. A word that is
 * repeated says no more than once.
 */
export function readFigures(tokens: readonly Token[]): ListFigures {
  /** What each token begins: a figure, and the number of the pair of figure and word. */
  const figures: number[] = []
  const pairs: number[] = []
  const starts = new Uint32Array(tokens.length + 1)
  const words = new Map<string, number>()
  const numbers = new Map<number, number>()
  const matches = matchRules(tokens)
  for (const [index, { concepts, word }] of tokens.entries()) {
    const known = words.get(word) ?? words.size
    words.set(word, known)
    const add = (figure: number) => {
      const key = known * FIGURES + figure
      const pair = numbers.get(key) ?? numbers.size
      numbers.set(key, pair)
      figures.push(figure)
      pairs.push(pair)
    }
    for (const concept of concepts) if (!COMMON.has(concept)) add(concept)
    for (const { rule, negated } of matches(index)) {
      add(CONCEPTS.length + rule + (negated ? CONTENT_RULES.length : 0))
    }
    starts[index + 1] = figures.length
  }
  const seen = new Uint32Array(numbers.size)
  const counts = new Uint32Array(FIGURES)
  let stretch = 0
  return (from, to) => {
    stretch++
    const found: number[] = []
    for (let entry = starts[from]!; entry < starts[to]!; entry++) {
      const pair = pairs[entry]!
      if (seen[pair] === stretch) continue
      seen[pair] = stretch
      const figure = figures[entry]!
      if (counts[figure]!++ === 0) found.push(figure)
    }
    return found.map((figure) => {
      const value = Math.log2(1 + Math.min(counts[figure]!, MOST))
      counts[figure] = 0
      return [figure, value]
    })
  }
}

/** The weights of the figures for a category before anything is fitted: a negated rule says a fifth of a plain one. */
export function priorWeights(category: ContentCategory): number[] {
  const points = CONTENT_RULES.map((rule) => (rule.category === category ? rule.points : 0))
  const concepts = CONCEPTS.map((concept) => pointsOf(category)[concept] ?? 0)
  return [...concepts, ...points, ...points.map((value) => value / 5)]
}
