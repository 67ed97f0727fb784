import { type Finding, replaceSpans, resolveOverlaps } from '../../db/detection/spans.ts'
import { NAMED_PII_TYPES } from '../../workflows/guardrails/names.ts'
import type { DetectorName } from './detectors.ts'
import { askTeamModel, mergeChecked } from './model/checks.ts'
import type { CheckRequest, Guardrails } from './request.ts'
import { applyRules } from './rules/apply.ts'
import { checkTextAgainst } from './schema.ts'
import { compareMeaning } from './semantic/similar.ts'
import {
  type CheckEntry,
  type Checked,
  describeFinding,
  type GuardrailResult,
  sortViolations,
  writeMarker,
} from './violations.ts'

/**
 * `patienceMs`: how long a check may wait for a thread or a process, if its caller will ask again. Then it rejects if none
 * was free; otherwise that is an error of the check.
 */
export type PieceDeps = Guardrails & { patienceMs?: number | undefined }

/** Makes all checks of one piece of text, side by side. Throws as `checkText` does (check.ts). */
export async function checkPiece(deps: PieceDeps, request: CheckRequest): Promise<GuardrailResult> {
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

/** One finding of personal data a place; other detectors decide for themselves. */
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
