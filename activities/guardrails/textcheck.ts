import { Fault } from '../../db/fault.ts'
import { MODEL_CHECKS } from '../../db/guardrails/settings.ts'
import type { Store } from '../../db/scope.ts'
import { CONTENT_TYPES, NAMED_PII_TYPES, PII_TYPES, readNames } from '../../workflows/guardrails/names.ts'
import type { GuardrailChecks } from '../../workflows/nodes/guardrails.ts'
import type { ExecutionContext } from '../../workflows/run/plan.ts'
import type { Evaluator } from '../expressions/evaluator.ts'
import { EXPRESSIONS_BUSY } from '../expressions/failures.ts'
import { createLimit } from '../fairness/atonce.ts'
import { findTeam } from '../fairness/turns.ts'
import type { UsageMeter } from '../models/meter.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import type { CheckRequest, Guardrails } from './checks.ts'
import type { Detection } from './detectors.ts'
import { MAX_CHECKED, runLongChecks } from './pieces.ts'
import { DETECTORS_BUSY } from './pool.ts'
import { loadTeamChecks } from './team.ts'
import type { CheckText } from './violations.ts'

/** How a node's texts are checked. */
type How = {
  /** How long a text may wait for a thread or a process. */
  patienceMs: number
  /** How long a long text may take, by the clock. Undefined: as long as the node. */
  limitMs?: number
  /** Whether another attempt is made if a check cannot be made. */
  isRetried?: boolean
  /** Of an attempt: calls to models stand in the usage of its execution. */
  meter?: UsageMeter
  /** Ends the calls to models. */
  signal?: AbortSignal
}

/** In a segment, which has a minute for all of its steps, and in an attempt. */
export const IN_SEGMENT: How = { patienceMs: 2_000, limitMs: 20_000 }
export const IN_ATTEMPT: How = { patienceMs: 30_000 }

/** So many texts of one node are looked at together: its items wait for each other, and not in the threads' queue. */
const AT_ONCE = 2

/**
 * Checks a text for a node of a run, in the name of its team. A check that cannot be made is told in its entry, and passes or
 * not as the operator says. Throws a NodeFailure: ExpressionsBusy if no thread or process was free (the step or attempt
 * is made again later, and it is no failure of the node), InvalidConfig for a schema that cannot be used, InputTooLarge,
 * and GuardrailUnavailable for a check that another attempt may make.
 */
export function createTextCheck(
  deps: { store: Store; guardrails: Guardrails; evaluator: Evaluator },
  context: ExecutionContext,
  how: How,
): CheckText {
  const { patienceMs, limitMs = Number.POSITIVE_INFINITY, isRetried = false } = how
  const guardrails = { ...deps.guardrails, evaluator: deps.evaluator, patienceMs }
  const inTurn = createLimit(AT_ONCE)
  return (text, checks) =>
    inTurn(async () => {
      if (text.length > MAX_CHECKED) {
        const message = `The text has ${text.length} UTF-16 units; at most ${MAX_CHECKED} are checked`
        throw new NodeFailure(message, { type: 'InputTooLarge' })
      }
      const began = performance.now()
      const isOver = () => performance.now() - began > limitMs
      try {
        const request = await prepareRequest(deps, context, text, checks, how)
        const result = await runLongChecks(guardrails, request, isOver)
        const failed = result.checks.find(({ error }) => error !== undefined)
        if (isRetried && failed) throw unavailable(failed.type, failed.error!)
        return result
      } catch (error) {
        throw toFailure(error)
      }
    })
}

/** The request that checks are. What is read of the team is read for each text: rules and exemplars may have changed. */
export async function prepareRequest(
  deps: { store: Store },
  context: ExecutionContext,
  text: string,
  checks: GuardrailChecks,
  { meter, signal }: Pick<How, 'meter' | 'signal'>,
): Promise<CheckRequest> {
  const team = await findTeam(deps, context)
  const { applyCustomRules, detectSemanticManipulation, validateSchema, jsonSchema, onViolation } = checks
  const wanted = { rules: applyCustomRules, semantic: detectSemanticManipulation, model: false }
  return {
    team,
    workflow: context.workflowId,
    text,
    detection: listDetectors(checks),
    schema: validateSchema ? jsonSchema : undefined,
    ...(await loadTeamChecks(deps.store.db, team, wanted)),
    model: checks.askModel ? MODEL_CHECKS : [],
    meter,
    signal,
    onViolation,
  }
}

function listDetectors(checks: GuardrailChecks): Detection {
  const { redactPii, piiTypes, detectPromptInjection, injectionSensitivity: sensitivity } = checks
  const { filterContent, contentCategories } = checks
  return {
    ...(redactPii ? { PII_REDACTION: { kinds: readNames(NAMED_PII_TYPES, piiTypes, PII_TYPES) } } : {}),
    ...(detectPromptInjection ? { PROMPT_INJECTION: { sensitivity } } : {}),
    ...(filterContent ? { CONTENT_FILTER: { categories: readNames(CONTENT_TYPES, contentCategories) } } : {}),
  }
}

function toFailure(error: unknown): unknown {
  if (error instanceof Error && error.name === DETECTORS_BUSY) {
    const message = `texts cannot be checked now: ${error.message}`
    return new NodeFailure(message, { type: EXPRESSIONS_BUSY, retryable: true })
  }
  if (error instanceof Fault && error.code === 'INVALID')
    return new NodeFailure(error.message, { type: 'InvalidConfig' })
  return error
}

const unavailable = (type: string, why: string) =>
  new NodeFailure(`The check ${type} could not be made: ${why}`, {
    type: 'GuardrailUnavailable',
    retryable: true,
  })
