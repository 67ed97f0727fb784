import { createPacer } from '../../expressions/pace.ts'
import { NodeFailure } from '../kit/failure.ts'
import { getField, type Naming } from '../kit/paths.ts'
import type { Comparison } from './fuzzy.ts'

/** An item with its place among the items of all inputs; several places for one that was merged of several. */
export type Placed = { item: unknown; from: number[] }

export type KeyPair = { left: string; right: string }

/** Places in two lists: the pairs that match, the right ones with a match, and those without one. */
export type Matches = {
  pairs: { left: number; rights: number[] }[]
  matchedRight: number[]
  onlyLeft: number[]
  onlyRight: number[]
}

/** The most comparisons: a list of 10,000 items with one of 1,000. */
const MAX_COMPARISONS = 10_000_000

/** Finds for each item on the left those on the right, or only the first one, whose keys are the same. */
export async function findMatches(
  lists: { left: unknown[]; right: unknown[] },
  on: KeyPair[],
  { compare, first, naming }: { compare: Comparison; first: boolean; naming: Naming },
): Promise<Matches> {
  demandPairs(on)
  const { left, right } = lists
  if (left.length * right.length > MAX_COMPARISONS) {
    const message = `at most ${MAX_COMPARISONS} pairs of items can be compared, and there are ${left.length} x ${right.length}`
    throw new NodeFailure(message, { type: 'InvalidInput' })
  }
  const rightKeys = right.map((item) => on.map((pair) => getField(item, pair.right, naming)))
  const matches: Matches = { pairs: [], matchedRight: [], onlyLeft: [], onlyRight: [] }
  const taken = new Set<number>()
  const pace = createPacer()
  for (const [at, item] of left.entries()) {
    const keys = on.map((pair) => getField(item, pair.left, naming))
    const rights: number[] = []
    if (keys.every((key) => key !== undefined)) {
      for (const [i, others] of rightKeys.entries()) {
        if (i % 100 === 0) await pace()
        if (!keys.every((key, k) => compare(key, others[k]))) continue
        rights.push(i)
        if (first) break
      }
    }
    for (const i of rights) taken.add(i)
    if (rights.length > 0) matches.pairs.push({ left: at, rights })
    else matches.onlyLeft.push(at)
  }
  for (const i of right.keys()) (taken.has(i) ? matches.matchedRight : matches.onlyRight).push(i)
  return matches
}

function demandPairs(on: KeyPair[]): void {
  if (on.length > 0 && on.every(({ left, right }) => left !== '' && right !== '')) return
  const message = 'You need to define at least one pair of fields in "Fields to Match" to match on'
  throw new NodeFailure(message, { type: 'InvalidInput' })
}
