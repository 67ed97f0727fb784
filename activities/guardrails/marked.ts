import { replaceSpans, type Span } from '../../db/detection/spans.ts'
import type { Violation } from './violations.ts'

/** A place in a text, and what replaces it. */
export type MarkedSpan = Span & { marker: string }

/** The places of the violations that are redacted, sorted: those that overlap are one, with the marker of the longest. */
export function findMarked(violations: Violation[]): MarkedSpan[] {
  const spans = violations.flatMap(({ action, type, details }): (MarkedSpan & { size: number })[] => {
    const { start, end, marker } = details
    if (action !== 'REDACTED' || start === undefined || end === undefined || end <= start) return []
    return [{ start, end, marker: typeof marker === 'string' ? marker : `[${type}]`, size: end - start }]
  })
  spans.sort((a, b) => a.start - b.start || b.end - a.end)
  const merged: typeof spans = []
  for (const span of spans) {
    const last = merged.at(-1)
    if (!last || span.start >= last.end) merged.push({ ...span })
    else {
      last.end = Math.max(last.end, span.end)
      if (span.size > last.size) Object.assign(last, { marker: span.marker, size: span.size })
    }
  }
  return merged.map(({ start, end, marker }) => ({ start, end, marker }))
}

/** The text with the markers in it. */
export const markText = (text: string, spans: MarkedSpan[]): string =>
  spans.length === 0 ? text : replaceSpans(text, spans, ({ marker }) => marker)
