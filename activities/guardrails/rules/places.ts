import type { Span } from '../../../db/detection/spans.ts'
import type { TextView } from '../../../db/detection/views.ts'

/** The places that a rule has found, the first ones, and how many there are besides; `most` of these are counted. */
export type FoundPlaces = { spans: Span[]; more: number; most: number }

/**
 * Finds what a rule looks for. It is pure; `views` are the readings of the text. `size`: what it takes in memory besides
 * what its config tells, as if it were so many characters of one.
 */
export type Find = ((text: string, views: () => TextView[]) => FoundPlaces) & { size?: number }

/** How many places of a rule are told one by one. */
export const MAX_TOLD = 50

/** The first places of those that are found, and how many there are, counted up to `counted`. */
export function keepSome(found: Iterable<Span>, counted: number): FoundPlaces {
  const spans: Span[] = []
  let all = 0
  for (const span of found) {
    if (spans.length < MAX_TOLD) spans.push(span)
    if (++all >= counted) break
  }
  return { spans, more: all - spans.length, most: counted - MAX_TOLD }
}
