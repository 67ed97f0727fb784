import { type Finding, replaceSpans, type Span } from '../spans.ts'
import { listViews, type TextView } from '../views.ts'
import { labelOf, type PiiKind } from './kinds.ts'
import { findPii } from './pii.ts'

/** A mask can create a boundary at which another detector finds more; so often the masked text is searched again. */
const MAX_ROUNDS = 8

/** The findings of a text, and the text with a marker such as `[EMAIL]` in each place. */
export type MaskedPii = { text: string; findings: Finding<PiiKind>[] }

/**
 * Replaces personal data and secrets of the given kinds by their markers, also where they are encoded. The findings are
 * those of the text that was given, sorted, without overlaps; masking what was masked finds nothing more. `views` are the
 * readings of the text, where they are known.
 */
export function markPii(
  text: string,
  kinds: ReadonlySet<PiiKind>,
  views: () => readonly TextView[] = () => listViews(text),
): MaskedPii {
  let findings: Finding<PiiKind>[] = []
  let masked = text
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const more = findPii(masked, kinds, round === 0 ? views() : listViews(masked))
    if (more.length === 0) break
    findings = join(findings, more, text)
    masked = replaceSpans(text, findings, ({ kind }) => labelOf(kind))
  }
  return { text: masked, findings }
}

/** Adds what was found in the masked text, whose places are moved to those in the text. */
function join(known: Finding<PiiKind>[], more: Finding<PiiKind>[], text: string): Finding<PiiKind>[] {
  if (known.length === 0) return more
  const toText = createMover(known, text.length)
  const all = [...known, ...more.map((one) => ({ ...one, ...toText(one) }))]
  const joined: Finding<PiiKind>[] = []
  for (const one of all.toSorted((a, b) => a.start - b.start || b.end - a.end)) {
    const last = joined.at(-1)
    if (!last || one.start >= last.end) joined.push(one)
    else
      joined[joined.length - 1] = {
        ...longer(last, one),
        start: last.start,
        end: Math.max(last.end, one.end),
      }
  }
  return joined
}

const longer = <S extends Span>(a: S, b: S): S => (b.end - b.start > a.end - a.start ? b : a)

/** From places in the masked text to places in the text: what touches a marker takes all of what the marker masks. */
function createMover(known: Finding<PiiKind>[], length: number): (span: Span) => Span {
  const markers: (Span & { from: Span })[] = []
  let shift = 0
  for (const found of known) {
    const start = found.start + shift
    const end = start + labelOf(found.kind).length
    markers.push({ start, end, from: found })
    shift += end - start - (found.end - found.start)
  }
  const move = (at: number, isEnd: boolean): number => {
    let moved = 0
    for (const { start, end, from } of markers) {
      if (isEnd ? at <= start : at < start) break
      if (isEnd ? at < end : at < end) return isEnd ? from.end : from.start
      moved = from.end - end
    }
    return Math.min(length, at + moved)
  }
  return ({ start, end }) => ({ start: move(start, false), end: move(end, true) })
}
