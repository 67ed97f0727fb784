import { findLeet, findReversed, findRot13 } from './normalise/ciphers.ts'
import { readCleanly } from './normalise/clean.ts'
import { findBase64, findHex } from './normalise/encodings.ts'
import { findEscapes, findHtml, findUrl } from './normalise/escapes.ts'
import { applyEdits, type Edit, type MappedText, readLower } from './normalise/reading.ts'
import { findSpacing } from './normalise/spacing.ts'
import type { Span } from './spans.ts'

export type ViewKind =
  | 'plain'
  | 'folded'
  | 'despaced'
  | 'leet'
  | 'base64'
  | 'hex'
  | 'url'
  | 'html'
  | 'escape'
  | 'rot13'
  | 'reversed'

/**
 * A reading of a text: the text itself, folded, or what was encoded in it. All but the plain one are in lower case and
 * folded: without accents and invisible characters, with Latin letters for those that look like them. Those that are
 * neither plain nor folded hold only what reads otherwise than in the folded one, with some text around; there may be
 * several of a kind.
 */
export type TextView = {
  kind: ViewKind
  /** 0 for the text itself, else how often something was decoded. */
  depth: 0 | 1 | 2
  text: string
  /** The place in the original text, in UTF-16 units, from which a place in `text` was read. */
  origin(span: Span): Span
}

const DECODERS: [ViewKind, (text: string) => Edit[]][] = [
  ['base64', findBase64],
  ['hex', findHex],
  ['url', findUrl],
  ['html', findHtml],
  ['escape', findEscapes],
  ['rot13', findRot13],
  ['reversed', findReversed],
  ['leet', findLeet],
  ['despaced', findSpacing],
]

/** The room for further readings, besides the text and its folded form: as much again, and a fixed amount. */
const LEAST_ROOM = 20_000

/**
 * All readings of a text, the plain and the folded one first. Takes time in proportion to the length of the text, and
 * makes at most four times as much, and 20,000 units more.
 */
export function listViews(text: string): TextView[] {
  const clean = readCleanly(text)
  const views = [createPlainView(text), createView('folded', 0, readLower(clean))]
  const room = { left: text.length + LEAST_ROOM }
  const first = decode(clean, room)
  for (const { kind, reading } of first) views.push(createView(kind, 1, readLower(reading)))
  const seen = new Set(first.map(({ reading }) => reading.text))
  for (const { reading } of first) {
    if (room.left <= 0) break
    for (const { kind, reading: inner } of decode(reading, room)) {
      if (seen.has(inner.text)) continue
      seen.add(inner.text)
      views.push(createView(kind, 2, readLower(inner)))
    }
  }
  return views
}

type Decoded = { kind: ViewKind; reading: MappedText }

/** All that decoders find. Where there is not room for all, no kind takes what the others need: the longest is cut. */
function decode(reading: MappedText, room: { left: number }): Decoded[] {
  const found = DECODERS.flatMap(([kind, find]) => {
    const edits = find(reading.text)
    const made = edits.length > 0 ? applyEdits(reading, edits, room.left) : []
    return made.length > 0
      ? [{ kind, made, length: made.reduce((sum, { text }) => sum + text.length, 0) }]
      : []
  })
  found.sort((a, b) => a.length - b.length)
  return found.flatMap(({ kind, made }, index) => {
    let share = Math.floor(room.left / (found.length - index))
    return made.flatMap((one) => {
      if (share <= 0) return []
      share -= one.text.length
      room.left -= one.text.length
      return [{ kind, reading: cleanAgain(one) }]
    })
  })
}

/** Decoded text may itself hold invisible characters and lookalikes. */
function cleanAgain(reading: MappedText): MappedText {
  const { text, starts, ends } = readCleanly(reading.text)
  if (text === reading.text) return reading
  const { length } = text
  const moved: MappedText = { text, starts: new Int32Array(length), ends: new Int32Array(length) }
  for (let i = 0; i < length; i++) {
    const [first, last] = [starts[i]!, ends[i]! - 1]
    moved.starts[i] = Math.min(reading.starts[first]!, reading.starts[last]!)
    moved.ends[i] = Math.max(reading.ends[first]!, reading.ends[last]!)
  }
  return moved
}

function createPlainView(text: string): TextView {
  return { kind: 'plain', depth: 0, text, origin: ({ start, end }) => ({ start, end }) }
}

function createView(kind: ViewKind, depth: 0 | 1 | 2, { text, starts, ends }: MappedText): TextView {
  return {
    kind,
    depth,
    text,
    origin({ start, end }) {
      if (end <= start || start >= text.length) {
        const at = start < text.length ? starts[start]! : (ends.at(-1) ?? 0)
        return { start: at, end: at }
      }
      const last = Math.min(end, text.length) - 1
      return { start: Math.min(starts[start]!, starts[last]!), end: Math.max(ends[start]!, ends[last]!) }
    },
  }
}
