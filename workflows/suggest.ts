/** Names are compared up to this length: the time for a pair grows with the product of their lengths. */
const MAX_COMPARED = 60

/** How many names are compared with a misspelt one. */
const MAX_CANDIDATES = 600

/**
 * The name that was probably meant by one that does not exist: the same but for case and `_`, `-` or spaces, else the
 * one with the fewest wrong, missing, added or swapped letters (at most a third of it), else the only one that begins
 * with it. Undefined if none is near.
 */
export function findSimilar(given: string, candidates: Iterable<string>): string | undefined {
  if (given.length < 2 || given.length > MAX_COMPARED) return undefined
  const wanted = simplify(given)
  let best: string | undefined
  let least = Math.max(1, Math.floor(Math.max(wanted.length, 2) / 3)) + 1
  const beginning: string[] = []
  let compared = 0
  for (const candidate of candidates) {
    if (candidate === given || candidate.length > MAX_COMPARED) continue
    if (++compared > MAX_CANDIDATES) break
    const simple = simplify(candidate)
    if (simple === wanted) return candidate
    if (wanted.length > 2 && simple.startsWith(wanted)) beginning.push(candidate)
    if (Math.abs(simple.length - wanted.length) >= least) continue
    const distance = countEdits(wanted, simple)
    // With so many changes a short name becomes any other one.
    if (distance < least && distance < simple.length - 1) {
      best = candidate
      least = distance
    }
  }
  return best ?? (beginning.length === 1 ? beginning[0] : undefined)
}

/** The end of a message that asks whether a similar name was meant: `; did you mean "url"?`, or ''. */
export function askForSimilar(given: string, candidates: Iterable<string>): string {
  const similar = findSimilar(given, candidates)
  return similar === undefined ? '' : `; did you mean ${JSON.stringify(similar)}?`
}

function simplify(name: string): string {
  return name.toLowerCase().replace(/[\s_-]+/g, '')
}

/** The number of letters that are wrong, missing, added, or swapped with their neighbour. */
function countEdits(from: string, to: string): number {
  let before: number[] = []
  let last = Array.from({ length: to.length + 1 }, (_, at) => at)
  for (let i = 1; i <= from.length; i++) {
    const row = [i]
    for (let j = 1; j <= to.length; j++) {
      const changed = last[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1)
      row[j] = Math.min(changed, last[j]! + 1, row[j - 1]! + 1)
      const isSwapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]
      if (isSwapped) row[j] = Math.min(row[j]!, before[j - 2]! + 1)
    }
    before = last
    last = row
  }
  return last[to.length]!
}
