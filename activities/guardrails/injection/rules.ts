import type { Span } from '../../../db/detection/spans.ts'
import rulesFile from './rules.json' with { type: 'json' }

/** Words between two parts of a rule, at most `count` of them, within a sentence. */
const gap = (count: number) => `(?:[\\s,:*_"'-]{1,4}[^\\s.!?;]{1,24}){0,${count}}?[\\s,:*_"'-]{1,4}`

/** Like a gap, but not over words that make of a question for a thing a question about it. */
const directly = (count: number) =>
  `(?:[\\s,:*_"'-]{1,4}(?!how|where|when|why|if|whether|reset|chang|recover|forg|lost|stor|creat|choos|set|enter|type|protect|generat|rotat|manag)[^\\s.!?;]{1,24}){0,${count}}?[\\s,:*_"'-]{1,4}`

/**
 * A pattern of rules.json as the source of a RegExp; a list is its alternatives. `{{name}}` is replaced by one of `parts`,
 * `{{gap n}}` and `{{directly n}}` by at most n words between two parts.
 */
type Pattern = string | string[]

const PARTS: Record<string, Pattern> = rulesFile.parts
const GAPS: Record<string, (count: number) => string> = { gap, directly }

const joinAlternatives = (pattern: Pattern) =>
  typeof pattern === 'string' ? pattern : `(?:${pattern.join('|')})`

function writeSource(pattern: Pattern): string {
  return joinAlternatives(pattern).replace(/\{\{(\w+)(?: (\d))?\}\}/g, (_, name: string, count?: string) => {
    const part = count ? GAPS[name]?.(Number(count)) : PARTS[name]
    if (part === undefined) throw new Error(`The rules have no part ${name}`)
    return joinAlternatives(part)
  })
}

/** A pattern is tried on lower case, and must take linear time. Those that are `unicode` count letters, not UTF-16 units. */
type RulePatterns = { patterns: Pattern[]; unicode?: Pattern[] }

const RULES = Object.entries<RulePatterns>(rulesFile.rules).map(([name, { patterns, unicode = [] }]) => ({
  name,
  patterns: [
    ...patterns.map((pattern) => new RegExp(writeSource(pattern), 'g')),
    ...unicode.map((pattern) => new RegExp(writeSource(pattern), 'gu')),
  ],
}))

/** What each rule is called, in the order in which the weights of the model name them. */
export const RULE_NAMES: readonly string[] = RULES.map(({ name }) => name)

/** A place where a rule found what it looks for; `rule` is its number in RULE_NAMES. */
export type RuleHit = Span & { rule: number }

/** At most so many hits of one pattern are noted, so that a text of nothing else stays cheap. */
const MOST_HITS = 2_000

/** All hits of all rules in a text in lower case, sorted by start. Linear time. */
export function findRuleHits(text: string): RuleHit[] {
  const hits: RuleHit[] = []
  for (const [rule, { patterns }] of RULES.entries()) {
    for (const pattern of patterns) {
      let count = 0
      for (const match of text.matchAll(pattern)) {
        hits.push({ rule, start: match.index, end: match.index + match[0].length })
        if (++count === MOST_HITS) break
      }
    }
  }
  return hits.sort((a, b) => a.start - b.start || a.end - b.end || a.rule - b.rule)
}
