import AhoCorasick from 'modern-ahocorasick'
import { readCleanly } from '../../../db/detection/normalise/clean.ts'
import { readLower } from '../../../db/detection/normalise/reading.ts'
import { type Finding, resolveOverlaps, type Span } from '../../../db/detection/spans.ts'
import type { TextView } from '../../../db/detection/views.ts'
import type { RuleConfigs } from '../../../db/guardrails/rules.ts'
import { type Find, keepSome } from './places.ts'

/** How many places are looked at; one of those that overlap is kept. */
const MAX_PLACES = 20_000

/**
 * Finds keywords. Unless case matters, they and the text are folded, and what is hidden or encoded in the text is read,
 * too. Throws an Error that names the keywords of which nothing is left then.
 */
export function compileKeywords({ keywords, wholeWord, caseSensitive }: RuleConfigs['KEYWORD_LIST']): Find {
  const read = caseSensitive ? (keyword: string) => keyword : foldKeyword
  const patterns = [...new Set(keywords.map(read))]
  const empty = keywords.filter((keyword) => read(keyword).trim() === '')
  if (empty.length > 0) throw new Error(`has keywords of which nothing can be seen: ${empty.length}`)
  const automaton = new AhoCorasick(patterns)
  const isMatch = (text: string, span: Span) => !wholeWord || isWhole(text, span)
  const look = ({ text, origin }: Pick<TextView, 'text' | 'origin'>, found: Finding[]) => {
    for (const { start, end } of automaton.iterate(text)) {
      if (!isMatch(text, { start, end })) continue
      if (found.length >= MAX_PLACES) return
      found.push({ ...origin({ start, end }), kind: '', rule: '', confidence: 1 })
    }
  }
  return (text, views) => {
    const found: Finding[] = []
    if (caseSensitive) look({ text, origin: (span) => span }, found)
    else for (const view of views()) if (view.kind !== 'plain') look(view, found)
    const spans = resolveOverlaps(found).map(({ start, end }) => ({ start, end }))
    return keepSome(spans, MAX_PLACES)
  }
}

const foldKeyword = (keyword: string): string => readLower(readCleanly(keyword)).text.trim()

const WORD = /[\p{L}\p{N}\p{M}_]/u
/** Scripts that write words without spaces: where one ends cannot be seen. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u

/** Whether neither end of a span is within a word. */
function isWhole(text: string, { start, end }: Span): boolean {
  return (
    !joins(charBefore(text, start), charAt(text, start)) && !joins(charBefore(text, end), charAt(text, end))
  )
}

const joins = (a: string, b: string): boolean => isOfWord(a) && isOfWord(b)
const isOfWord = (char: string): boolean => WORD.test(char) && !UNSPACED.test(char)
const charAt = (text: string, at: number): string =>
  at < text.length ? String.fromCodePoint(text.codePointAt(at)!) : ''

function charBefore(text: string, at: number): string {
  if (at <= 0) return ''
  const unit = text.charCodeAt(at - 1)
  const isLow = unit >= 0xdc00 && unit <= 0xdfff
  return isLow && at > 1 ? charAt(text, at - 2) : text[at - 1]!
}
