import type { Finding } from '../../db/detection/spans.ts'
import type { ACTIONS } from '../../workflows/guardrails/names.ts'
import type { GuardrailChecks } from '../../workflows/nodes/guardrails.ts'
import { SEXUAL_MINORS } from './content/categories.ts'
import type { DetectorName } from './detectors.ts'

export const VIOLATION_TYPES = [
  'PROMPT_INJECTION',
  'PII_REDACTION',
  'CONTENT_FILTER',
  'SCHEMA_VALIDATION',
  'CUSTOM_RULE',
  'SEMANTIC_SIMILARITY',
] as const
export type ViolationType = (typeof VIOLATION_TYPES)[number]
export const SEVERITIES = ['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'] as const
export type Severity = (typeof SEVERITIES)[number]
/** The consequence of a violation. Personal data is REDACTED; only BLOCKED keeps a text from passing. */
export type ViolationAction = (typeof ACTIONS)[number] | 'REDACTED'

/** A violation as the API tells it. `details.start` and `.end` are UTF-16 units of the text that was checked. */
export type Violation = {
  type: ViolationType
  severity: Severity
  action: ViolationAction
  message: string
  confidence: number
  details: Record<string, unknown> & { start?: number; end?: number }
}

/** What a check has come to, in milliseconds. `error` says why it could not be made, or not wholly. */
export type Checked = { type: ViolationType; ms: number; violations: Violation[]; error?: string | undefined }

/** One check that was made. `error` says why it could not be. */
export type CheckEntry = {
  type: ViolationType
  passed: boolean
  violationsFound: number
  durationMs: number
  error?: string
}

export type GuardrailResult = {
  passed: boolean
  violations: Violation[]
  /** The text with markers for personal data, if that was looked for and could be. */
  redactedContent?: string
  checks: CheckEntry[]
}

/**
 * Checks a text for a node of a run, in the name of its team (check.ts); `json` must fit the schema if the text need
 * not.
 */
export type CheckText = (text: string, checks: GuardrailChecks, json?: string) => Promise<GuardrailResult>

export const isMade = ({ error }: CheckEntry): boolean => error === undefined

/** The marker that replaces a finding in a redacted text: `[EMAIL]`. */
export const writeMarker = (kind: string): string => `[${kind.toUpperCase()}]`

const PII_SEVERITIES: Record<string, Severity> = {
  email: 'MEDIUM',
  phone: 'MEDIUM',
  ip_address: 'LOW',
  ssn: 'HIGH',
  credit_card: 'HIGH',
  api_key: 'CRITICAL',
  jwt: 'CRITICAL',
}
const PII_WORDS: Record<string, string> = {
  email: 'an e-mail address',
  phone: 'a phone number',
  ip_address: 'an IP address',
  ssn: 'a social security number',
  credit_card: 'a card number',
  api_key: 'an API key or another secret',
  jwt: 'a JSON Web Token',
}
const CONTENT_WORDS: Record<string, string> = {
  hate: 'hate against a group of people',
  harassment: 'harassment',
  violence: 'a threat of violence, or praise of it',
  self_harm: 'self-harm',
  sexual: 'sexual content',
}

/** The violation that a finding is. No part of the text is in it: what was found may be a secret. */
export function describeFinding(
  type: DetectorName,
  { kind, rule, confidence, start, end }: Finding,
  action: ViolationAction,
): Violation {
  const place = { start, end }
  const rounded = Math.round(confidence * 1_000) / 1_000
  if (type === 'PII_REDACTION')
    return {
      type,
      severity: PII_SEVERITIES[kind] ?? 'MEDIUM',
      action: 'REDACTED',
      message: `The text has ${PII_WORDS[kind] ?? kind}`,
      confidence: rounded,
      details: { ...place, piiType: kind, marker: writeMarker(kind), rule },
    }
  if (type === 'CONTENT_FILTER')
    return {
      type,
      severity: rule === SEXUAL_MINORS ? 'CRITICAL' : rateConfidence(confidence),
      action,
      message: `The text may have ${CONTENT_WORDS[kind] ?? kind}`,
      confidence: rounded,
      details: { ...place, category: kind, rule },
    }
  return {
    type,
    severity: rateConfidence(confidence),
    action,
    message: 'The text may try to change what a model was told to do',
    confidence: rounded,
    details: { ...place, rule },
  }
}

/** The words for a category of content. */
export const describeContent = (category: string): string => CONTENT_WORDS[category] ?? category

/** The violation that a model's word is: it tells no place. */
export function describeVerdict(type: ViolationType, confidence: number, action: ViolationAction): Violation {
  return {
    type,
    severity: rateConfidence(confidence),
    action,
    message: "The team's model flags the text",
    confidence: Math.round(confidence * 1_000) / 1_000,
    details: { rule: 'model' },
  }
}

function rateConfidence(confidence: number): Severity {
  if (confidence >= 0.95) return 'CRITICAL'
  if (confidence >= 0.8) return 'HIGH'
  return confidence >= 0.5 ? 'MEDIUM' : 'LOW'
}

/** Sorts by place in the text; those without a place come last. */
export function sortViolations(violations: Violation[]): Violation[] {
  const start = ({ details }: Violation) => details.start ?? Number.POSITIVE_INFINITY
  const end = ({ details }: Violation) => details.end ?? Number.POSITIVE_INFINITY
  return violations.toSorted((a, b) => compare(start(a), start(b)) || compare(end(a), end(b)))
}

const compare = (a: number, b: number) => (a === b ? 0 : a < b ? -1 : 1)
