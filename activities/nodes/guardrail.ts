import type { GuardrailChecks } from '../../workflows/nodes/guardrails.ts'
import type { GuardrailResult } from '../guardrails/violations.ts'
import { renderText } from './kit/config.ts'
import { invalidConfig, NodeFailure } from './kit/failure.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'

/** The number of violations that are told; `violationsFound` of a check counts all of its own. */
const MAX_TOLD = 1_000

const BLOCKED_HANDLE = 'blocked'

/**
 * GUARDRAIL: checks a text, and outputs {passed, text, violations, checks} by the handle `passed` or `blocked`. A text that
 * is blocked where no edge leads on fails the node (GuardrailBlocked): nothing goes on as if it had passed. `text` has
 * markers for personal data if that is redacted; it is null if it should be, and could not.
 */
export const runGuardrail: NodeRunner = async (context) => {
  const text = await renderText(context, 'text')
  const checks = await readChecks(context)
  const result = await context.check(text, checks)
  const { passed, violations, redactedContent = null } = result
  const output = {
    passed,
    text: checks.redactPii ? redactedContent : text,
    violations: violations.slice(0, MAX_TOLD),
    checks: result.checks,
  }
  if (passed) return { output, handle: 'passed' }
  if (context.leads(BLOCKED_HANDLE)) return { output, handle: BLOCKED_HANDLE }
  throw new NodeFailure(describeBlock(result), { type: 'GuardrailBlocked' })
}

/** The checks as they were saved; texts of the schema may have expressions. */
async function readChecks({ config, evaluator, bindings }: NodeContext): Promise<GuardrailChecks> {
  const { jsonSchema } = config
  if (jsonSchema === undefined) return config as GuardrailChecks
  const rendered = await evaluator.render(jsonSchema, bindings)
  if (typeof rendered !== 'object' || rendered === null)
    throw invalidConfig('jsonSchema', 'must be an object')
  return { ...config, jsonSchema: rendered } as GuardrailChecks
}

/** What blocked the text, without any of it. */
function describeBlock({ violations, checks }: GuardrailResult): string {
  const blocking = violations.filter(({ action }) => action === 'BLOCKED')
  const counts = new Map<string, number>()
  for (const { type, severity, details } of blocking) {
    const { category } = details
    const what = `${type}${typeof category === 'string' ? ` ${category}` : ''} (${severity})`
    counts.set(what, (counts.get(what) ?? 0) + 1)
  }
  const found = [...counts].map(([what, count]) => (count === 1 ? what : `${count} times ${what}`))
  const failed = checks
    .filter(({ passed, error }) => !passed && error !== undefined)
    .map(({ type, error }) => `${type} could not be checked: ${error}`)
  return `The text was blocked: ${[...found, ...failed].join('; ')}`
}
