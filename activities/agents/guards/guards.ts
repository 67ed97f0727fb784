import { DEFAULT_SENSITIVITY } from '../../../workflows/guardrails/names.ts'
import type { AgentGuards } from '../../../workflows/nodes/agentguards.ts'
import type { GuardrailChecks } from '../../../workflows/nodes/guardrails.ts'
import { findMarked } from '../../guardrails/marked.ts'
import { writeValue } from '../../guardrails/values.ts'
import {
  type GuardrailResult,
  isMade,
  SEVERITIES,
  type Severity,
  type ViolationAction,
  type ViolationType,
} from '../../guardrails/violations.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import type { NodeContext } from '../../nodes/kit/node.ts'

/** The places that are checked, by their names in a config. */
export type GuardedPlace = 'input' | 'toolResults' | 'output'

/** What records keep of a check: never any part of the text. */
export type GuardNote = {
  checked: GuardedPlace
  passed: boolean
  violations: { type: ViolationType; action: ViolationAction; severity: Severity; count: number }[]
  /** The checks that could not be made. */
  failed?: ViolationType[]
}

/** A value that was checked, with markers for its redacted parts; nothing of it if it was blocked. */
export type Guarded = { note: GuardNote } & ({ passed: true; value: unknown } | { passed: false })

/** Makes the checks of one place of a config; `json` must fit the schema, if that is not the text. */
export async function checkGuarded(
  context: NodeContext,
  checks: GuardrailChecks,
  { text, json }: { text: string; json?: string },
): Promise<GuardrailResult> {
  if (!context.guard)
    throw new NodeFailure('guardrails can only be used by an attempt of its own', { type: 'InvalidConfig' })
  return context.guard(text, checks, json)
}

/** Checks a value. The findings are noted with the node, in its warnings. */
export async function guardValue(
  context: NodeContext,
  place: GuardedPlace,
  checks: GuardrailChecks,
  value: unknown,
): Promise<Guarded> {
  const { text, mark } = await writeValue(value)
  const json = typeof value === 'string' ? value : JSON.stringify(value ?? null)
  const result = await checkGuarded(context, checks, { text, json })
  const note = noteGuard(context, place, result)
  if (!result.passed) return { note, passed: false }
  return { note, passed: true, value: await mark(findMarked(result.violations)) }
}

/** Earlier texts with markers for personal data: the other checks were made of each when it was new. */
export async function redactEach(
  context: NodeContext,
  { piiTypes }: GuardrailChecks,
  texts: string[],
): Promise<string[]> {
  const checks = { ...NO_CHECKS, redactPii: true, ...(piiTypes === undefined ? {} : { piiTypes }) }
  const { text, mark } = await writeValue(texts)
  const result = await checkGuarded(context, checks, { text })
  if (!result.passed) throw blockedBy(noteGuard(context, 'input', result))
  return (await mark(findMarked(result.violations))) as string[]
}

/** A summary of a chat that the model has made, as it may be kept. Throws a NodeFailure (GuardrailBlocked) if it may not. */
export async function guardSummary(
  context: NodeContext,
  checks: GuardrailChecks,
  summary: string,
): Promise<string> {
  const guarded = await guardValue(context, 'output', { ...checks, validateSchema: false }, summary)
  if (!guarded.passed) throw blockedBy(guarded.note)
  return String(guarded.value)
}

/** Checks of which none is made. */
export const NO_CHECKS: GuardrailChecks = {
  detectPromptInjection: false,
  injectionSensitivity: DEFAULT_SENSITIVITY,
  redactPii: false,
  filterContent: false,
  validateSchema: false,
  applyCustomRules: false,
  detectSemanticManipulation: false,
  onViolation: 'BLOCKED',
  askModel: false,
}

/** Sums up what checks have come to, and notes it with the node if there is something to say. */
export function noteGuard(context: NodeContext, checked: GuardedPlace, result: GuardrailResult): GuardNote {
  const counted = new Map<string, GuardNote['violations'][number]>()
  for (const { type, action, severity } of result.violations) {
    const key = `${type} ${action}`
    const before = counted.get(key)
    const worst = before && SEVERITIES.indexOf(before.severity) > SEVERITIES.indexOf(severity)
    counted.set(key, {
      type,
      action,
      severity: worst ? before.severity : severity,
      count: (before?.count ?? 0) + 1,
    })
  }
  const failed = [...new Set(result.checks.filter((check) => !isMade(check)).map(({ type }) => type))]
  const violations = [...counted.values()]
  const note: GuardNote = {
    checked,
    passed: result.passed,
    violations,
    ...(failed.length > 0 ? { failed } : {}),
  }
  const what = describeGuard(note)
  if (what !== '')
    context.notes.add({
      warnings: [{ path: `config.guardrails.${checked}`, message: `Guardrails: ${what}` }],
    })
  return note
}

/** Tells the findings and the checks that could not be made; '' if there is nothing to say. */
export function describeGuard({ violations, failed = [] }: GuardNote): string {
  const found = violations.map(
    ({ type, action, count }) => `${type} ${action}${count > 1 ? ` (${count})` : ''}`,
  )
  return [...found, ...failed.map((type) => `${type} could not be checked`)].join(', ')
}

/** The types of what was found, or could not be checked. */
export function listGuardTypes({ violations, failed = [] }: GuardNote): ViolationType[] {
  return [...new Set([...violations.map(({ type }) => type), ...failed])]
}

const WHAT: Record<GuardedPlace, string> = {
  input: 'What the model was to be asked',
  toolResults: 'The result of a tool',
  output: 'The reply of the model',
}

function blockedBy(note: GuardNote): NodeFailure {
  const message = `${WHAT[note.checked]} was blocked by the node's guardrails: ${describeGuard(note)}`
  return new NodeFailure(message, { type: 'GuardrailBlocked' })
}

/** What a node outputs instead of a reply that it must not give, or have. */
export type GuardRefusal = { text: string; blocked: true; violations: ViolationType[] }

/** The refusal of a node. Throws a NodeFailure (GuardrailBlocked) if its config has none. */
export async function refuseByGuard(
  { evaluator, bindings }: NodeContext,
  { refusal }: Pick<AgentGuards, 'refusal'>,
  note: GuardNote,
): Promise<GuardRefusal> {
  if (refusal === undefined) throw blockedBy(note)
  const text = await evaluator.render(refusal, bindings)
  return {
    text: typeof text === 'string' ? text : JSON.stringify(text),
    blocked: true,
    violations: listGuardTypes(note),
  }
}
