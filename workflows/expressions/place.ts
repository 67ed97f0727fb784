import type { Problem } from '../problem.ts'

/** A place in a text: line and column from 1, and the line with a caret under the place. */
export type TextPlace = Required<Pick<Problem, 'line' | 'column' | 'excerpt'>>

/** An excerpt shows so many characters of its line before the place, and so many from there on. */
const SHOWN_BEFORE = 40
const SHOWN_AFTER = 60

/** The place of the `length` characters at `at` of a text. */
export function locate(text: string, at: number, length: number): TextPlace {
  const begin = text.lastIndexOf('\n', at - 1) + 1
  const end = text.indexOf('\n', at) < 0 ? text.length : text.indexOf('\n', at)
  const from = at - begin > SHOWN_BEFORE ? at - SHOWN_BEFORE : begin
  const to = Math.min(end, at + SHOWN_AFTER)
  const lead = from > begin ? '... ' : ''
  const shown = lead + text.slice(from, to).replace(/\p{Cc}/gu, ' ') + (to < end ? ' ...' : '')
  const carets = Math.max(1, Math.min(length, to - at))
  const line = text.slice(0, begin).split('\n').length
  return {
    line,
    column: at - begin + 1,
    excerpt: [shown, ' '.repeat(lead.length + at - from) + '^'.repeat(carets)],
  }
}
