import type { StoredRule } from '../../../db/guardrails/enabled.ts'
import { redactText } from '../../../db/redaction/redact.ts'
import type { Checked, Violation } from '../violations.ts'
import type { Judged } from './javascript.ts'
import { judgeByRules, type RuleDeps, type RuleRequest } from './judge.ts'

/** How many rules that could not be applied are named. */
const MAX_NAMED = 10

/**
 * Applies a team's rules to a text. Those that came to an end report their violations, whatever became of the others, which
 * the error names. Rejects with DetectorsBusy (threads.ts).
 */
export async function applyRules(deps: RuleDeps, request: RuleRequest): Promise<Checked> {
  const began = performance.now()
  const judged = await judgeByRules(deps, request)
  const violations = judged.flatMap((one, index) => describeHits(request.rules[index]!, one))
  const error = describeUnapplied(request.rules, judged)
  return { type: 'CUSTOM_RULE', ms: performance.now() - began, violations, error }
}

function describeHits(rule: StoredRule, { hits, ...rest }: Judged): Violation[] {
  if (!hits || !('more' in rest)) return []
  const { id, name, kind, severity, action } = rule
  const violation = (message: string, confidence: number, place: object): Violation => ({
    type: 'CUSTOM_RULE',
    severity,
    action,
    message,
    confidence: Math.round(confidence * 1_000) / 1_000,
    details: { ruleId: id, ruleName: name, kind, ...place },
  })
  const told = hits.map(({ message, confidence, ...place }) =>
    violation(
      // What code says may quote the text, and with it a secret.
      message ? `Rule "${name}": ${redactText(message)}` : `The text breaks the rule "${name}"`,
      confidence,
      place,
    ),
  )
  const more = describeMore(rest)
  return more === undefined
    ? told
    : [...told, violation(`The text breaks the rule "${name}" in ${more}`, told[0]!.confidence, {})]
}

/** A sentence about the places that are not told one by one; undefined if there are none. */
function describeMore({ more, most }: { more: number; most: number }): string | undefined {
  if (more === 0) return undefined
  return `${more >= most ? 'at least ' : ''}${more} more ${more === 1 ? 'place' : 'places'}`
}

function describeUnapplied(rules: StoredRule[], judged: Judged[]): string | undefined {
  const failed = judged.flatMap(({ error }, index) =>
    error === undefined ? [] : [`"${rules[index]!.name}" (${error[0]!.toLowerCase()}${error.slice(1)})`],
  )
  if (failed.length === 0) return undefined
  const rest = failed.length > MAX_NAMED ? [`and ${failed.length - MAX_NAMED} more`] : []
  return `These rules could not be applied: ${[...failed.slice(0, MAX_NAMED), ...rest].join(', ')}`
}
