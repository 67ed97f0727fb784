import { CONTENT_CATEGORIES, type ContentCategory } from './categories.ts'
import { CONCEPTS, type Concept } from './lexicon.ts'
import rulesFile from './rules.json' with { type: 'json' }
import type { Token } from './tokens.ts'

/**
 * A rule of rules.json, a pattern of concepts in one sentence: the steps follow each other, each at most `reach` tokens
 * after the one before; a step is one concept or, with `|`, one of several. `points` is what the pattern says for its
 * category before anything is fitted: about 2 is as good as even, 4 is nearly sure.
 */
type Rule = {
  name: string
  category: ContentCategory
  points: number
  steps: readonly string[]
  reach: number
}

const RULES: Record<ContentCategory, { concepts: ConceptPoints; rules: Omit<Rule, 'category'>[] }> = rulesFile

type ConceptPoints = Partial<Record<Concept, number>>

/** What a single concept says for a category, before anything is fitted. */
export const pointsOf = (category: ContentCategory): ConceptPoints => RULES[category].concepts

export const CONTENT_RULES: readonly Rule[] = CONTENT_CATEGORIES.flatMap((category) =>
  RULES[category].rules.map((rule) => ({ ...rule, category })),
)

/** A set of concepts, 32 to a figure. */
type Concepts = readonly [number, number, number]

const HALF = 32
if (CONCEPTS.length > 3 * HALF) throw new Error('There are more concepts than a set can hold')

function setOf(concepts: readonly number[]): Concepts {
  const set: [number, number, number] = [0, 0, 0]
  for (const concept of concepts) set[Math.floor(concept / HALF)]! |= 1 << (concept % HALF)
  return set
}

/** The numbers of concepts. Throws if one is not in the lexicon. */
function findConcepts(names: readonly string[]): number[] {
  const unknown = names.filter((name) => !CONCEPTS.includes(name as Concept))
  if (unknown.length > 0) throw new Error(`There is no concept ${unknown.join(', ')}`)
  return names.map((name) => CONCEPTS.indexOf(name as Concept))
}

for (const { concepts } of Object.values(RULES)) findConcepts(Object.keys(concepts))

const STEPS: readonly (readonly Concepts[])[] = CONTENT_RULES.map(({ steps }) =>
  steps.map((step) => setOf(findConcepts(step.split('|')))),
)

const NEGATION = setOf([CONCEPTS.indexOf('negate')])
const NEGATION_REACH = 3

const meet = (one: Concepts, other: Concepts) =>
  ((one[0] & other[0]) | (one[1] & other[1]) | (one[2] & other[2])) !== 0

/** What a list of concepts is as a set, and the rules that can begin with it. */
type KnownConcepts = { set: Concepts; starts: readonly number[] }

const NOTHING: KnownConcepts = { set: [0, 0, 0], starts: [] }

/** A rule that matches, by its number in `CONTENT_RULES`. */
export type RuleMatch = { rule: number; negated: boolean }

/**
 * Answers which rules begin to match at a token, within its sentence; one that has a negation before it or holds one is
 * negated. Linear time.
 */
export function matchRules(tokens: readonly Token[]): (index: number) => RuleMatch[] {
  const known = new Map<readonly number[], KnownConcepts>()
  const read = tokens.map(({ concepts }) => {
    if (concepts.length === 0) return NOTHING
    const before = known.get(concepts)
    if (before) return before
    const set = setOf(concepts)
    const starts = STEPS.flatMap((steps, rule) => (meet(steps[0]!, set) ? [rule] : []))
    known.set(concepts, { set, starts })
    return { set, starts }
  })

  /** The place of the last step, or -1. */
  function followSteps(start: number, rule: number): number {
    const steps = STEPS[rule]!
    const { reach } = CONTENT_RULES[rule]!
    const { sentence } = tokens[start]!
    let place = start
    for (let step = 1; step < steps.length; step++) {
      const end = Math.min(tokens.length - 1, place + reach)
      let next = place + 1
      while (next <= end && !meet(read[next]!.set, steps[step]!)) next++
      if (next > end || tokens[next]!.sentence !== sentence) return -1
      place = next
    }
    return place
  }

  function isNegated(start: number, last: number): boolean {
    const { sentence } = tokens[start]!
    for (let index = Math.max(0, start - NEGATION_REACH); index < last; index++) {
      if (meet(read[index]!.set, NEGATION) && tokens[index]!.sentence === sentence) return true
    }
    return false
  }

  return (start) =>
    read[start]!.starts.flatMap((rule) => {
      const last = followSteps(start, rule)
      return last < 0 ? [] : [{ rule, negated: isNegated(start, last) }]
    })
}
