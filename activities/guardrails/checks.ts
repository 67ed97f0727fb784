import { type Finding, replaceSpans, resolveOverlaps } from '../../db/detection/spans.ts'
import type { StoredRule } from '../../db/guardrails/enabled.ts'
import type { ModelCheck } from '../../db/guardrails/settings.ts'
import { NAMED_PII_TYPES } from '../../workflows/guardrails/names.ts'
import type { Evaluator } from '../expressions/evaluator.ts'
import type { UsageMeter } from '../models/meter.ts'
import type { Detection, DetectorName } from './detectors.ts'
import type { AskModel } from './model/ask.ts'
import { askTeamModel, mergeChecked } from './model/checks.ts'
import type { DetectorPool } from './pool.ts'
import { applyRules } from './rules/apply.ts'
import { checkTextAgainst } from './schema.ts'
import { compareMeaning, type SemanticPool, type SemanticRequest } from './semantic/similar.ts'
import {
  type CheckEntry,
  type Checked,
  describeFinding,
  type GuardrailResult,
  sortViolations,
  type ViolationAction,
  writeMarker,
} from './violations.ts'

/** What checks need. `onError`: whether a text passes when a check that was asked for could not be made. */
export type Guardrails = {
  pool: DetectorPool
  /** Compares meanings. Without it that check fails. */
  semantic?: SemanticPool | undefined
  evaluator?: Evaluator | undefined
  /** Asks the teams' models. Without it, the checks for which a team wants that fail. */
  askModel?: AskModel | undefined
  onError: 'open' | 'closed'
  /**
   * How long a check may wait for a thread or a process, if whoever asks will ask again: then that none was free is no
   * error of a check, but rejects.
   */
  patienceMs?: number | undefined
}

/** What is to be checked, for whom. What is left out is not checked. */
export type CheckRequest = {
  team: string
  /** Whose turn it is within the team. */
  workflow: string
  text: string
  detection: Detection
  /** What the text must fit, as JSON. */
  schema?: Record<string, unknown> | undefined
  /** The team's rules that are applied (team.ts). */
  rules?: StoredRule[] | undefined
  /** What the text's meaning is compared with. */
  semantic?: SemanticRequest | undefined
  /** For which of the checks the team's model is asked, beside the detectors. */
  model?: readonly ModelCheck[] | undefined
  /** Of an attempt: its model calls then stand in the usage of the execution. */
  meter?: UsageMeter | undefined
  /** Ends the calls to models. */
  signal?: AbortSignal | undefined
  onViolation: Exclude<ViolationAction, 'REDACTED'>
}

/**
 * Checks a text. Nothing is stored, and nothing of the text is told to anybody but in `redactedContent`. The same text
 * gives the same violations. Throws a Fault: INVALID for a schema that cannot be used, and rejects with DetectorsBusy
 * (pool.ts) when no thread was free in time.
 */
export async function runChecks(deps: Guardrails, request: CheckRequest): Promise<GuardrailResult> {
  const { text, detection, schema, semantic, onViolation } = request
  const asker = { team: request.team, workflow: request.workflow }
  const wantsDetectors = Object.keys(detection).length > 0
  const find = () =>
    Promise.all([
      schema ? checkTextAgainst(deps, asker, { schema, text, action: onViolation }) : undefined,
      wantsDetectors ? deps.pool.run(asker, { text, detection }, deps.patienceMs) : [],
      request.rules ? applyRules(deps, { ...request, rules: request.rules }) : undefined,
      semantic ? compareMeaning(deps, { ...request, semantic }) : undefined,
      askTeamModel(deps, request),
    ])
  const [fit, results, ruled, similar, asked] = await deps.pool.hold(request.team, text.length, find)
  const checked: Checked[] = results.map(({ type, ms, findings = [], error }) => {
    const kept = keepFindings(type, findings)
    return { type, ms, error, violations: kept.map((found) => describeFinding(type, found, onViolation)) }
  })
  if (fit) checked.push({ type: 'SCHEMA_VALIDATION', ...fit })
  if (ruled) checked.push(ruled)
  if (similar) checked.push(similar)
  const merged = mergeChecked(checked, asked)
  const checks = merged.map((check) => describeCheck(check, deps.onError))
  const pii = results.find(({ type }) => type === 'PII_REDACTION')
  return {
    passed: checks.every(({ passed }) => passed),
    violations: sortViolations(merged.flatMap(({ violations }) => violations)),
    ...(pii?.findings ? { redactedContent: redact(text, keepFindings('PII_REDACTION', pii.findings)) } : {}),
    checks,
  }
}

/** Of personal data only one finding a place; other detectors decide for themselves. */
function keepFindings(type: DetectorName, findings: Finding[]): Finding[] {
  return type === 'PII_REDACTION' ? resolveOverlaps(findings, NAMED_PII_TYPES) : findings
}

const redact = (text: string, findings: Finding[]) =>
  replaceSpans(text, findings, ({ kind }) => writeMarker(kind))

function describeCheck({ type, ms, violations, error }: Checked, onError: 'open' | 'closed'): CheckEntry {
  const isBlocked = violations.some(({ action }) => action === 'BLOCKED')
  return {
    type,
    passed: !isBlocked && (error === undefined || onError === 'open'),
    violationsFound: violations.length,
    durationMs: Math.round(ms),
    ...(error === undefined ? {} : { error }),
  }
}
