import { LRUCache } from 'lru-cache'
import type { TextView } from '../../../db/detection/views.ts'
import type { StoredRule } from '../../../db/guardrails/enabled.ts'
import type { RuleConfigs } from '../../../db/guardrails/rules.ts'
import { compileKeywords } from './keywords.ts'
import type { Find, FoundPlaces } from './places.ts'
import { compileRegex } from './regex.ts'

/** A rule that a thread applies. One that is not stored has the version 0. */
export type ThreadRule = Pick<StoredRule, 'id' | 'version' | 'config'> & { kind: ThreadKind }
export type ThreadKind = 'REGEX' | 'KEYWORD_LIST'

/** What a rule has found, or the sentence that says why it could not be applied; in milliseconds. */
export type RuleResult = { rule: string; ms: number } & (
  | (FoundPlaces & { error?: undefined })
  | { error: string; spans?: undefined }
)

/** A thread keeps what it has compiled, for so many characters of configs: a short pattern may be a large program. */
const KEPT = {
  maxSize: 4_000_000,
  sizeCalculation: ({ size = 0 }: Find, key: string) => Number(key.split(' ')[0]) + size,
}
const compiled = new LRUCache<string, Find>(KEPT)

/** Applies a rule to a text. Only for a thread. */
export function applyInThread(rule: ThreadRule, text: string, views: () => TextView[]): RuleResult {
  const began = performance.now()
  const took = () => performance.now() - began
  let find: Find
  try {
    find = compileOnce(rule)
  } catch (error) {
    const what = rule.kind === 'REGEX' ? 'the pattern' : 'the list'
    return { rule: rule.id, ms: took(), error: `${what} ${(error as Error).message}` }
  }
  try {
    const matches = find(text, views)
    return { rule: rule.id, ms: took(), ...matches }
  } catch (error) {
    // Its message might quote the text.
    const name = error instanceof Error ? error.name : 'unknown'
    return { rule: rule.id, ms: took(), error: `it failed (${name})` }
  }
}

function compileOnce(rule: ThreadRule): Find {
  const { id, version, kind, config } = rule
  const key = `${config.length + 500} ${id} ${version}`
  const known = compiled.get(key)
  if (known) return known
  const given = JSON.parse(config)
  const find =
    kind === 'REGEX'
      ? compileRegex(given as RuleConfigs['REGEX'])
      : compileKeywords(given as RuleConfigs['KEYWORD_LIST'])
  if (version > 0) compiled.set(key, find)
  return find
}
