import type { Span } from '../../../db/detection/spans.ts'

/** A stretch of a text that is compared as one: a sentence, or some short ones. */
export type MeaningWindow = Span & { text: string }

/** A sentence that has no end is cut: what is longer means too many things at once. */
const LONGEST = 240
/** Shorter sentences go with the next one. */
const SHORTEST = 24

/** The end of a sentence, or of a line; quotes and brackets after it belong to it. */
const ENDS = /[.!?;:]+["'”’)\]]*(?=\s)|\n+|[。！？]+/g
const HAS_WORDS = /\p{L}{2}/u

/** The sentences of a text, in their order, none over another; those without words are left out. Linear time. */
export function cutSentences(text: string): MeaningWindow[] {
  const pieces: Span[] = []
  let start = 0
  const add = (end: number) => {
    for (const piece of cutLong(text, { start, end })) {
      const last = pieces.at(-1)
      const isShort = last && last.end - last.start < SHORTEST && piece.end - last.start <= LONGEST
      if (isShort) last.end = piece.end
      else pieces.push(piece)
    }
    start = end
  }
  for (const found of text.matchAll(ENDS)) add(found.index + found[0].length)
  add(text.length)
  return pieces.flatMap((piece) => readWindow(text, piece))
}

/** Cut at spaces if there are some, so that no piece is longer than it may be. */
function cutLong(text: string, { start, end }: Span): Span[] {
  const pieces: Span[] = []
  let from = start
  while (end - from > LONGEST) {
    const space = text.lastIndexOf(' ', from + LONGEST)
    const to = space > from + LONGEST / 2 ? space : from + LONGEST
    pieces.push({ start: from, end: to })
    from = to
  }
  if (end > from) pieces.push({ start: from, end })
  return pieces
}

/** Without the spaces around it, which also counts as one in its midst; nothing if it has no words. */
function readWindow(text: string, { start, end }: Span): MeaningWindow[] {
  const piece = text.slice(start, end)
  if (!HAS_WORDS.test(piece)) return []
  const from = start + (piece.length - piece.trimStart().length)
  const to = end - (piece.length - piece.trimEnd().length)
  return [{ start: from, end: to, text: text.slice(from, to).replace(/\s+/g, ' ') }]
}
