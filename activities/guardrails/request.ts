import type { StoredRule } from '../../db/guardrails/enabled.ts'
import type { ModelCheck } from '../../db/guardrails/settings.ts'
import type { Evaluator } from '../expressions/evaluator.ts'
import type { UsageMeter } from '../models/meter.ts'
import type { Detection } from './detectors.ts'
import type { AskModel } from './model/ask.ts'
import type { DetectorPool } from './pool.ts'
import type { SemanticPool, SemanticRequest } from './semantic/similar.ts'
import type { ViolationAction, ViolationType } from './violations.ts'

/** What checks need. `onError`: whether a text passes when a check that was asked for could not be made. */
export type Guardrails = {
  pool: DetectorPool
  /** Compares meanings. Without it that check fails. */
  semantic?: SemanticPool | undefined
  evaluator?: Evaluator | undefined
  /** Asks the teams' models. Without it, the checks for which a team wants that fail. */
  askModel?: AskModel | undefined
  onError: 'open' | 'closed'
}

/** A text and its checks, for a team. Checks that are left out are not made. */
export type CheckRequest = TeamChecks & {
  team: string
  /** Whose turn it is within the team. */
  workflow: string
  text: string
  detection: Detection
  /** What the text must fit, as JSON. */
  schema?: Record<string, unknown> | undefined
  /** The meter of an attempt: its model calls then count for the execution. */
  meter?: UsageMeter | undefined
  /** Ends the calls to models. */
  signal?: AbortSignal | undefined
  onViolation: Exclude<ViolationAction, 'REDACTED'>
}

/** What a check needs of its team. */
export type TeamChecks = {
  /** The team's rules that are applied (team.ts). */
  rules?: StoredRule[] | undefined
  /** What the text's meaning is compared with. */
  semantic?: SemanticRequest | undefined
  /** For which of the checks the team's model is asked, beside the detectors. */
  model?: readonly ModelCheck[] | undefined
}

/** The checks that a request asks for. */
export function listAsked({ detection, schema, rules, semantic }: CheckRequest): ViolationType[] {
  return [
    ...(Object.keys(detection) as ViolationType[]),
    ...(schema ? (['SCHEMA_VALIDATION'] as const) : []),
    ...(rules ? (['CUSTOM_RULE'] as const) : []),
    ...(semantic ? (['SEMANTIC_SIMILARITY'] as const) : []),
  ]
}

/** The checks that a model is asked about too. */
const ASKED: Record<ModelCheck, ViolationType> = { injection: 'PROMPT_INJECTION', content: 'CONTENT_FILTER' }

/** The request with no other checks than those of `types`. */
export function keepOnly(request: CheckRequest, types: ReadonlySet<ViolationType>): CheckRequest {
  const { detection, schema, rules, semantic, model = [] } = request
  const kept = Object.entries(detection).filter(([type]) => types.has(type as ViolationType))
  return {
    ...request,
    detection: Object.fromEntries(kept),
    schema: types.has('SCHEMA_VALIDATION') ? schema : undefined,
    rules: types.has('CUSTOM_RULE') ? rules : undefined,
    semantic: types.has('SEMANTIC_SIMILARITY') ? semantic : undefined,
    model: model.filter((check) => types.has(ASKED[check])),
  }
}
