import { eachMatch } from '../matches.ts'
import { readCleanly } from '../normalise/clean.ts'
import type { Finding } from '../spans.ts'

/**
 * Characters that may hide a value from a pattern: invisible characters and accents in a word of ASCII, full-width,
 * mathematical and circled letters and digits, and letters of other scripts among Latin ones.
 */
const HIDING = new RegExp(
  [
    '[A-Za-z0-9@._+:-][\\u00ad\\u0300-\\u036f\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u20dd-\\u20e4\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0]',
    '[\\uff10-\\uff19\\uff20\\uff21-\\uff3a\\uff41-\\uff5a\\u2460-\\u24ff\\u2070\\u00b2\\u00b3\\u00b9\\u2074-\\u2079\\u2080-\\u2089]',
    '\\ud835[\\udc00-\\udfff]|\\ud83c[\\udd00-\\udd8f]|\\ud83e[\\udff0-\\udff9]|\\udb40[\\udc00-\\udfff]',
    '[A-Za-z0-9@][\\u0370-\\u052f\\u13a0-\\u13ff]|[\\u0370-\\u052f\\u13a0-\\u13ff][A-Za-z0-9@]',
  ].join('|'),
  'g',
)
const ASCII_ONLY = /^[\0-\x7f]*$/

/** How much around such a character is read, in UTF-16 units; a little more, to the next space. */
const AROUND = 160
const MORE = 64

/**
 * Runs `find` on a text as a person sees it, and returns the places in the text itself. Only the surroundings of a
 * character that hides something are read so: it costs much more than a search.
 */
export function findHidden<F extends Finding>(text: string, find: (read: string) => F[]): F[] {
  if (ASCII_ONLY.test(text)) return []
  const found: F[] = []
  const add = (start: number, end: number) => {
    for (const one of findIn(text, start, end, find)) found.push(one)
  }
  let from = -1
  let to = -1
  for (const { index } of eachMatch(HIDING, text)) {
    if (from >= 0 && index - AROUND > to) {
      add(from, to)
      from = -1
    }
    if (from < 0) from = Math.max(0, index - AROUND)
    to = Math.min(text.length, index + AROUND)
  }
  if (from >= 0) add(from, to)
  return found
}

function findIn<F extends Finding>(text: string, from: number, to: number, find: (read: string) => F[]): F[] {
  const start = toSpace(text, from, -1)
  const end = toSpace(text, to, 1)
  const { text: read, starts, ends } = readCleanly(text.slice(start, end))
  const found: F[] = []
  for (const one of find(read)) {
    // At an edge that is not the text's, a value may be cut.
    if ((one.start === 0 && start > 0) || (one.end === read.length && end < text.length)) continue
    const first = starts[one.start] ?? 0
    const last = ends[one.end - 1] ?? first
    found.push({ ...one, start: start + first, end: start + last })
  }
  return found
}

function toSpace(text: string, at: number, step: 1 | -1): number {
  for (let moved = 0; moved < MORE && at > 0 && at < text.length; moved++) {
    if (/\s/.test(text[at] ?? '')) return at
    at += step
  }
  return at
}
