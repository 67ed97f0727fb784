import { type LinearModel, scoreBuckets } from '../linear.ts'
import { type BucketLister, cutWindows, readFeatures, type TokenWindow } from './features.ts'
import { findRuleHits, type RuleHit } from './rules.ts'

/** How many tokens are judged together: about a paragraph, and about a sentence or two, which a paragraph could hide. */
const WIDTHS = [96, 32]

/**
 * The windows in which a text of `count` tokens is judged: one if they are few, else those of each width, in the
 * order of the text.
 */
export function listTokenWindows(count: number): TokenWindow[] {
  return WIDTHS.flatMap((width, at) => (at === 0 || count > width ? cutWindows(count, width) : []))
}

/** What speaks for an attack in one window of a text. `hits` lie within it. */
export type WindowEvidence = { start: number; end: number; score: number; hits: RuleHit[] }

/** What the model and the rules say of each window of a text in lower case. Linear time. */
export function weighWindows(text: string, model: LinearModel, listBuckets: BucketLister): WindowEvidence[] {
  const tokens = readFeatures(text, model.bits)
  const hits = findRuleHits(text)
  let firstHit = 0
  return listTokenWindows(tokens.count).map((window) => {
    const start = tokens.starts[window.from]!
    const end = tokens.stops[window.to - 1]!
    // The windows of the next width begin again at the start of the text.
    if (window.from === 0) firstHit = 0
    while (firstHit < hits.length && hits[firstHit]!.start < start) firstHit++
    let afterHits = firstHit
    while (afterHits < hits.length && hits[afterHits]!.start < end) afterHits++
    return {
      start,
      end,
      score: scoreBuckets(model, listBuckets(tokens, window)),
      hits: hits.slice(firstHit, afterHits),
    }
  })
}
