import { replaceSpans, resolveOverlaps } from '../../db/detection/spans.ts'
import { NAMED_PII_TYPES } from '../../workflows/guardrails/names.ts'
import { checkPiece, type PieceDeps } from './piece.ts'
import type { CheckRequest, Guardrails } from './request.ts'
import {
  type CheckEntry,
  type GuardrailResult,
  sortViolations,
  type Violation,
  type ViolationType,
} from './violations.ts'

/** A longer text is checked in pieces of this length, which overlap by so much: what lies across an end is whole in one. */
const PIECE = 100_000
const OVERLAP = 10_000

/** The longest text that a node may have checked, in UTF-16 units. */
export const MAX_CHECKED = 1_000_000

type Piece = { at: number; result: GuardrailResult }

/**
 * Checks a text of any length, a long one piece by piece, but for its schema, which the whole must fit. Places are those of
 * the whole text. Once `isOver`, the pieces that are left count as a check that could not be made.
 */
export async function checkPieces(
  deps: PieceDeps,
  request: CheckRequest,
  isOver: () => boolean,
): Promise<GuardrailResult> {
  const { text, schema } = request
  if (text.length <= PIECE) return checkPiece(deps, request)
  const { team, workflow, onViolation } = request
  const parts: Piece[] = []
  if (schema) {
    const whole = { team, workflow, text, schema, detection: {}, onViolation }
    parts.push({ at: 0, result: await checkPiece(deps, whole) })
  }
  const rest = { ...request, schema: undefined }
  if (asksMore(rest))
    for (const [at, end] of listPieces(text)) {
      if (isOver()) {
        parts.push({ at, result: giveUp(parts, deps.onError) })
        break
      }
      const result = await checkPiece(deps, { ...rest, text: text.slice(at, end) })
      parts.push({ at, result })
    }
  return mergePieces(text, parts)
}

function asksMore({ detection, ...request }: CheckRequest): boolean {
  const { team: _, workflow: __, text: ___, onViolation: ____, ...checks } = request
  return Object.keys(detection).length > 0 || Object.values(checks).some(Boolean)
}

/** Where pieces begin and end. None is cut within a surrogate pair. */
function listPieces(text: string): [number, number][] {
  const whole = (at: number) => (/[\uDC00-\uDFFF]/.test(text[at] ?? '') ? at - 1 : at)
  const pieces: [number, number][] = []
  for (let at = 0; ; at = whole(at + PIECE - OVERLAP)) {
    const end = at + PIECE >= text.length ? text.length : whole(at + PIECE)
    pieces.push([at, end])
    if (end === text.length) return pieces
  }
}

/** The result of the pieces that there was no time for: every check that the others had is in error. */
function giveUp(done: Piece[], onError: Guardrails['onError']): GuardrailResult {
  const passed = onError === 'open'
  const types = new Set(done.flatMap(({ result }) => result.checks.map(({ type }) => type)))
  types.delete('SCHEMA_VALIDATION')
  const error = 'The text is too long for the time that there is'
  const checks = [...types].map((type) => ({ type, passed, violationsFound: 0, durationMs: 0, error }))
  return { passed, violations: [], checks }
}

function mergePieces(text: string, parts: Piece[]): GuardrailResult {
  const all = parts.flatMap(({ at, result }) => result.violations.map((violation) => move(violation, at)))
  const found = [...dropRepeated(all.filter(({ type }) => type !== 'PII_REDACTION')), ...keepPersonal(all)]
  const violations = sortViolations(found)
  const checks = mergeChecks(
    parts.flatMap(({ result }) => result.checks),
    violations,
  )
  const redacts = parts.some(({ result }) => result.redactedContent !== undefined)
  const pii = checks.find(({ type }) => type === 'PII_REDACTION')
  return {
    passed: checks.every(({ passed }) => passed),
    violations,
    ...(redacts && pii?.error === undefined ? { redactedContent: redact(text, violations) } : {}),
    checks,
  }
}

function move(violation: Violation, at: number): Violation {
  const { start, end } = violation.details
  if (start === undefined || end === undefined) return violation
  return { ...violation, details: { ...violation.details, start: start + at, end: end + at } }
}

/** Keeps the surer one of violations that two pieces tell alike. */
function dropRepeated(violations: Violation[]): Violation[] {
  const kept = new Map<string, Violation>()
  for (const violation of violations) {
    const { type, message, action, details, confidence } = violation
    const { corroborated: _, similarity: __, ...place } = details
    const key = JSON.stringify([type, action, message, place])
    const before = kept.get(key)
    if (!before || before.confidence < confidence) kept.set(key, violation)
  }
  return [...kept.values()]
}

/** Keeps the longest of personal data that overlaps: the end of a piece may cut what is whole in another one. */
function keepPersonal(violations: Violation[]): Violation[] {
  const findings = violations
    .filter(({ type }) => type === 'PII_REDACTION')
    .map((violation) => {
      const { start = 0, end = 0, piiType, rule } = violation.details
      const { confidence } = violation
      return { start, end, kind: String(piiType), rule: String(rule), confidence, violation }
    })
  return resolveOverlaps(findings, NAMED_PII_TYPES).map(({ violation }) => violation)
}

function redact(text: string, violations: Violation[]): string {
  const spans = violations
    .filter(({ type }) => type === 'PII_REDACTION')
    .map(({ details: { start = 0, end = 0, marker } }) => ({ start, end, marker: String(marker) }))
  return replaceSpans(text, spans, ({ marker }) => marker)
}

function mergeChecks(entries: CheckEntry[], violations: Violation[]): CheckEntry[] {
  const byType = new Map<ViolationType, CheckEntry>()
  for (const entry of entries) {
    const before = byType.get(entry.type)
    const error = before?.error ?? entry.error
    byType.set(entry.type, {
      type: entry.type,
      passed: entry.passed && (before?.passed ?? true),
      violationsFound: violations.filter(({ type }) => type === entry.type).length,
      durationMs: entry.durationMs + (before?.durationMs ?? 0),
      ...(error === undefined ? {} : { error }),
    })
  }
  return [...byType.values()]
}
