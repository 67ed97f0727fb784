import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '../../db/fault.ts'
import type { ModelCheck } from '../../db/guardrails/settings.ts'
import type { Store } from '../../db/scope.ts'
import type { ExecutionContext } from '../../workflows/run/plan.ts'
import { unlessAborted } from '../abort.ts'
import type { Evaluator } from '../expressions/evaluator.ts'
import type { UsageMeter } from '../models/meter.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import { retryOutages } from '../run/outages.ts'
import type { CheckRequest, Guardrails } from './checks.ts'
import type { Guard, GuardResult } from './guarding.ts'
import { NO_MODEL } from './model/call.ts'
import { runLongChecks } from './pieces.ts'
import { DETECTORS_BUSY } from './pool.ts'
import { IN_ATTEMPT, prepareRequest } from './textcheck.ts'
import type { GuardrailResult, Violation, ViolationType } from './violations.ts'

/** The pauses before a check that could not be made is tried again. */
const PAUSES_MS = [500, 1_000, 2_000, 4_000]

type Place = { guardrails: Guardrails; signal: AbortSignal }

export function createGuard(
  deps: { store: Store; guardrails: Guardrails; evaluator: Evaluator },
  context: ExecutionContext,
  { meter, signal }: { meter: UsageMeter; signal: AbortSignal },
): Guard {
  const { patienceMs } = IN_ATTEMPT
  const place = { guardrails: { ...deps.guardrails, evaluator: deps.evaluator, patienceMs }, signal }
  return async (checks, { text, json = text }) => {
    const { schema, ...request } = await retryOutages(signal, () =>
      prepareRequest(deps, context, text, checks, { meter, signal }),
    )
    const results: GuardResult[] = []
    if (listAsked(request).length > 0) results.push(await checkAgain(place, request))
    if (schema) {
      const { team, workflow, onViolation } = request
      results.push(
        await checkAgain(place, { team, workflow, detection: {}, schema, onViolation, text: json }),
      )
    }
    return {
      passed: results.every(({ passed }) => passed),
      violations: results.flatMap(({ violations }) => violations),
      failed: results.flatMap(({ failed }) => failed),
    }
  }
}

/** Makes checks, and those that fail again: the others are neither made nor paid twice. */
async function checkAgain(place: Place, request: CheckRequest): Promise<GuardResult> {
  const { signal } = place
  const violations: Violation[] = []
  let passed = true
  let left = request
  for (let tries = 0; ; tries++) {
    const result = await checkOnce(place, left)
    const failed = result.checks.filter(({ error }) => error !== undefined)
    const isLast = tries >= PAUSES_MS.length || failed.every(({ error }) => error === NO_MODEL)
    const again = new Set(isLast ? [] : failed.map(({ type }) => type))
    violations.push(...result.violations.filter(({ type }) => !again.has(type)))
    passed &&= result.checks.every((check) => again.has(check.type) || check.passed)
    if (again.size === 0) return { passed, violations, failed }
    left = keepOnly(left, again)
    await sleep(PAUSES_MS[tries], undefined, { signal }).catch(() => signal.throwIfAborted())
  }
}

async function checkOnce({ guardrails, signal }: Place, request: CheckRequest): Promise<GuardrailResult> {
  signal.throwIfAborted()
  try {
    const isOver = () => signal.aborted
    const result = await unlessAborted(runLongChecks(guardrails, request, isOver), signal)
    signal.throwIfAborted()
    return result
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof Fault && error.code === 'INVALID')
      throw new NodeFailure(`guardrails have a schema that cannot be used: ${error.message}`, {
        type: 'InvalidConfig',
      })
    if (!(error instanceof Error) || error.name !== DETECTORS_BUSY) throw error
    const passed = guardrails.onError === 'open'
    const { message } = error
    const checks = listAsked(request).map((type) => ({
      type,
      passed,
      violationsFound: 0,
      durationMs: 0,
      error: message,
    }))
    return { passed, violations: [], checks }
  }
}

/** The checks that a request asks for. */
function listAsked({ detection, schema, rules, semantic }: Omit<CheckRequest, 'text'>): ViolationType[] {
  return [
    ...(Object.keys(detection) as ViolationType[]),
    ...(schema ? (['SCHEMA_VALIDATION'] as const) : []),
    ...(rules ? (['CUSTOM_RULE'] as const) : []),
    ...(semantic ? (['SEMANTIC_SIMILARITY'] as const) : []),
  ]
}

/** The checks that a model is asked about too. */
const ASKED: Record<ModelCheck, ViolationType> = { injection: 'PROMPT_INJECTION', content: 'CONTENT_FILTER' }

function keepOnly(request: CheckRequest, types: Set<ViolationType>): CheckRequest {
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
