import { NAMED_PII_TYPES } from '../../../workflows/guardrails/names.ts'

/** The kinds of personal data that are masked in exports, and switched one by one in the masking settings. */
export const PII_KINDS = ['email', 'phone', 'ssn', 'credit_card', 'iban', 'ip_address'] as const
export type PersonalKind = (typeof PII_KINDS)[number]

/** The kinds that a guardrail check looks for: `piiTypes` of a request, in the words of the API. */
export const CHECKED_KINDS = NAMED_PII_TYPES

/** Everything that `findPii` can look for. */
export type PiiKind = PersonalKind | (typeof CHECKED_KINDS)[number]

/** If two kinds fit the same place, the first of them is told: kinds with a check digit or a fixed form come first. */
export const KIND_ORDER: readonly PiiKind[] = [
  'jwt',
  'api_key',
  'iban',
  'credit_card',
  'email',
  'ssn',
  'ip_address',
  'phone',
]

/** Findings below this are doubtful: the check does not tell them. The redactor masks doubtful secrets all the same. */
export const LEAST_CONFIDENCE = 0.5

/** The marker in place of a finding: `[EMAIL]`. */
export function labelOf(kind: PiiKind): string {
  return `[${kind.toUpperCase()}]`
}

/** Keeps enough for a person who knows the value to recognise it: `b***@a.example`, `DE***3000`. */
export function maskPartly(kind: PiiKind, found: string): string {
  if (kind === 'api_key' || kind === 'jwt') return labelOf(kind)
  if (kind === 'email')
    return `${[...found][0]}***${found.includes('@') ? found.slice(found.lastIndexOf('@')) : ''}`
  if (kind === 'ip_address') {
    return found.includes(':') ? `${found.split(':')[0]}:***` : `${found.split('.', 2).join('.')}.***`
  }
  const last = found.replace(/[^A-Za-z0-9]/g, '').slice(-4)
  if (kind === 'ssn') return `***-**-${last}`
  if (kind === 'iban') return `${found.slice(0, 2)}***${last}`
  return `***${kind === 'phone' ? last.slice(-2) : last}`
}
