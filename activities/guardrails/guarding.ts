import type { GuardrailChecks } from '../../workflows/nodes/guardrails.ts'
import type { Violation, ViolationType } from './violations.ts'

/** What the checks of a node's config have come to, for a text of any length. */
export type GuardResult = {
  passed: boolean
  violations: Violation[]
  /** The checks that could not be made, however often they were tried. */
  failed: { type: ViolationType; error?: string }[]
}

/**
 * Makes the checks of a config within an attempt whose work must not be done again, such as a question to a model. A check
 * that cannot be made is tried again some times; after that `GUARDRAIL_ON_ERROR` decides, as for any check. `json` is
 * what must fit a schema, if that is not the text. Throws the signal's reason once that is aborted, and a NodeFailure
 * (InvalidConfig) for a schema that cannot be used.
 */
export type Guard = (checks: GuardrailChecks, given: { text: string; json?: string }) => Promise<GuardResult>
