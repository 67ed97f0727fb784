/** A place in a text, in UTF-16 units: from `start` up to, not including, `end`. */
export type Span = { start: number; end: number }

/** What a detector has found. `confidence` is 0 to 1. `rule` names what found it. */
export type Finding<Kind extends string = string> = Span & { kind: Kind; confidence: number; rule: string }

/**
 * Keeps of findings that overlap the longest, then the one whose kind comes first in `order`, then the first; sorted by
 * start. Empty ones are dropped.
 */
export function resolveOverlaps<F extends Finding>(findings: F[], order: readonly string[] = []): F[] {
  const ranks = new Map(order.map((kind, index) => [kind, index]))
  const rank = ({ kind }: F) => ranks.get(kind) ?? order.length
  const wanted = findings.toSorted(
    (a, b) => b.end - b.start - (a.end - a.start) || rank(a) - rank(b) || a.start - b.start || a.end - b.end,
  )
  const kept = createTaken()
  return wanted.filter((found) => kept.take(found)).sort((a, b) => a.start - b.start || a.end - b.end)
}

/**
 * Remembers which units are taken. The spans come from long to short, so one that overlaps an earlier one has its first
 * or its last unit in it: two look-ups decide.
 */
function createTaken() {
  let units = new Uint8Array(1_024)
  return {
    take({ start, end }: Span): boolean {
      if (start >= end || units[start] === 1 || units[end - 1] === 1) return false
      if (end > units.length) {
        const more = new Uint8Array(Math.max(end, units.length * 2))
        more.set(units)
        units = more
      }
      units.fill(1, start, end)
      return true
    },
  }
}

/** Replaces the spans, which do not overlap and are sorted by start, by what `mask` makes of each. */
export function replaceSpans<F extends Span>(text: string, spans: F[], mask: (found: F) => string): string {
  let done = 0
  let replaced = ''
  for (const found of spans) {
    replaced += text.slice(done, found.start) + mask(found)
    done = found.end
  }
  return replaced + text.slice(done)
}
