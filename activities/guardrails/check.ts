import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '../../db/fault.ts'
import type { Store } from '../../db/scope.ts'
import type { ExecutionContext } from '../../workflows/run/plan.ts'
import { unlessAborted } from '../abort.ts'
import type { Evaluator } from '../expressions/evaluator.ts'
import { EXPRESSIONS_BUSY } from '../expressions/failures.ts'
import { createLimit } from '../fairness/atonce.ts'
import type { UsageMeter } from '../models/meter.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import { retryOutages } from '../run/outages.ts'
import { THREADS_BUSY } from '../threads.ts'
import { NO_MODEL } from './model/call.ts'
import type { PieceDeps } from './piece.ts'
import { checkPieces, MAX_CHECKED } from './pieces.ts'
import { type CheckRequest, type Guardrails, keepOnly, listAsked } from './request.ts'
import { prepareRequest } from './team.ts'
import { type CheckText, type GuardrailResult, isMade } from './violations.ts'

/*
 * How it works
 *
 * All checks of texts come through this file: `checkText` for a request that is complete (the API, evaluation), and
 * `createCheck` for the nodes of a run, which reads the team's settings (team.ts). A `CheckOptions` says how long a caller waits
 * and what it does about a check that could not be made.
 *
 *   createCheck -> checkText -> checkPieces (pieces.ts)  cuts a long text, and puts the results together
 *                                 -> checkPiece (piece.ts)  makes all checks of one piece, side by side
 *                                      -> pool.ts: threads with the detectors (content/, injection/, personal data) and the
 *                                         patterns and lists of rules/
 *                                      -> semantic/: threads that compare meanings
 *                                      -> schema.ts and the code of rules/: processes of expressions/
 *                                      -> model/: the team's model
 *
 * A check ends with violations, or with an `error` if it could not be made; then `onError` of the operator decides whether
 * the text passes. If no thread was free, nothing has been checked, and the call rejects with DetectorsBusy.
 */

/** How texts are checked. */
export type CheckOptions = {
  /** How long a check may wait for a thread or a process if its caller will ask again, in milliseconds. */
  patienceMs?: number
  /** How long a long text may take, by the clock, in milliseconds. Undefined: as long as the signal allows. */
  limitMs?: number
  /** How many texts are checked together: the others wait here, and not in the threads' queue. */
  atOnce?: number
  /** The longest text that is checked, in UTF-16 units. */
  longest?: number
  /**
   * What happens to a check that could not be made: by default its entry says so; `here` repeats it some times before that;
   * `later` throws, because another attempt will be made.
   */
  retry?: 'here' | 'later'
  /** The meter of an attempt: calls to models then count for its execution. */
  meter?: UsageMeter
  /** Ends the checks and the calls to models. */
  signal?: AbortSignal
}

const FAR = Number.POSITIVE_INFINITY
const FOR_NODE = { atOnce: 2, longest: MAX_CHECKED } as const
/** For the texts of a node in a segment, which has a minute for all of its steps. */
export const IN_SEGMENT: CheckOptions = { ...FOR_NODE, patienceMs: 2_000, limitMs: 20_000 }
/** For the texts of a node in an attempt. */
export const IN_ATTEMPT: CheckOptions = { ...FOR_NODE, patienceMs: 30_000 }
/** For an attempt whose other work must not be done again, such as a question to a model. */
export const BESIDE_WORK: CheckOptions = { patienceMs: 30_000, retry: 'here' }

/** The pauses before a check that could not be made is tried again. */
const PAUSES_MS = [500, 1_000, 2_000, 4_000]

/**
 * Checks texts for a node of a run, in the name of its team. Throws the signal's reason once that is aborted, and a
 * NodeFailure: ExpressionsBusy if no thread or process was free (the step or attempt is made again later, and it is no
 * failure of the node), InvalidConfig for a schema that cannot be used, InputTooLarge, and GuardrailUnavailable for a check
 * that another attempt may make.
 */
export function createCheck(
  deps: { store: Store; guardrails: Guardrails; evaluator: Evaluator },
  context: ExecutionContext,
  how: CheckOptions,
): CheckText {
  const { atOnce = FAR, longest = FAR, limitMs = FAR, retry, signal } = how
  const guardrails = { ...deps.guardrails, evaluator: deps.evaluator }
  const inTurn = createLimit(atOnce)
  return (text, checks, json) =>
    inTurn(async () => {
      if (text.length > longest) {
        const message = `The text has ${text.length} UTF-16 units; at most ${longest} are checked`
        throw new NodeFailure(message, { type: 'InputTooLarge' })
      }
      const until = performance.now() + limitMs
      try {
        const prepare = () => prepareRequest(deps, context, text, checks, how)
        const request = await (retry === 'here' && signal ? retryOutages(signal, prepare) : prepare())
        const results: GuardrailResult[] = []
        for (const part of json === undefined ? [request] : partRequest(request, json))
          results.push(await checkText(guardrails, part, { ...how, limitMs: until - performance.now() }))
        const result = joinResults(results)
        const failed = result.checks.find((check) => !isMade(check))
        if (retry === 'later' && failed) throw unavailable(failed.type, failed.error!)
        return result
      } catch (error) {
        signal?.throwIfAborted()
        throw toFailure(error, how)
      }
    })
}

/** Parts a request whose schema is for another text, `json`. */
function partRequest(request: CheckRequest, json: string): CheckRequest[] {
  const { schema, team, workflow, onViolation } = request
  const rest = { ...request, schema: undefined }
  return [
    ...(listAsked(rest).length > 0 ? [rest] : []),
    ...(schema ? [{ team, workflow, detection: {}, schema, onViolation, text: json }] : []),
  ]
}

/**
 * Checks a text of any length. Nothing is stored, and no part of the text is in the result but in `redactedContent`. The
 * same text gives the same violations. Throws a Fault (INVALID) for a schema that cannot be used, the signal's reason once
 * that is aborted, and, unless it tries again here, DetectorsBusy (threads.ts) when no thread was free in time.
 */
export async function checkText(
  guardrails: Guardrails,
  request: CheckRequest,
  how: CheckOptions = {},
): Promise<GuardrailResult> {
  const { patienceMs, signal } = how
  const done: GuardrailResult[] = []
  let left = request
  for (let tries = 0; ; tries++) {
    const result = await checkOnce({ ...guardrails, patienceMs }, left, how)
    const failed = result.checks.filter((check) => !isMade(check))
    const isLast =
      how.retry !== 'here' || tries >= PAUSES_MS.length || failed.every(({ error }) => error === NO_MODEL)
    // The others are neither made nor paid twice.
    const again = new Set(isLast ? [] : failed.map(({ type }) => type))
    done.push({
      ...result,
      violations: result.violations.filter(({ type }) => !again.has(type)),
      checks: result.checks.filter(({ type }) => !again.has(type)),
    })
    if (again.size === 0) return joinResults(done)
    left = keepOnly(left, again)
    await sleep(PAUSES_MS[tries], undefined, { signal }).catch(() => signal?.throwIfAborted())
  }
}

async function checkOnce(
  deps: PieceDeps,
  request: CheckRequest,
  { limitMs = FAR, retry, signal }: CheckOptions,
): Promise<GuardrailResult> {
  signal?.throwIfAborted()
  const began = performance.now()
  const isOver = () => signal?.aborted === true || performance.now() - began > limitMs
  try {
    const checking = checkPieces(deps, request, isOver)
    const result = await (signal ? unlessAborted(checking, signal) : checking)
    signal?.throwIfAborted()
    return result
  } catch (error) {
    signal?.throwIfAborted()
    if (retry !== 'here' || !isBusy(error)) throw error
    const passed = deps.onError === 'open'
    const checks = listAsked(request).map((type) => {
      return { type, passed, violationsFound: 0, durationMs: 0, error: error.message }
    })
    return { passed, violations: [], checks }
  }
}

/** One result of several, each with checks of its own. */
function joinResults(results: GuardrailResult[]): GuardrailResult {
  if (results.length === 1) return results[0]!
  const checks = results.flatMap((result) => result.checks)
  const redacted = results.find(({ redactedContent }) => redactedContent !== undefined)
  return {
    passed: checks.every(({ passed }) => passed),
    violations: results.flatMap(({ violations }) => violations),
    ...(redacted ? { redactedContent: redacted.redactedContent } : {}),
    checks,
  }
}

const isBusy = (error: unknown): error is Error => error instanceof Error && error.name === THREADS_BUSY

function toFailure(error: unknown, { retry }: CheckOptions): unknown {
  if (isBusy(error)) {
    const message = `texts cannot be checked now: ${error.message}`
    return new NodeFailure(message, { type: EXPRESSIONS_BUSY, retryable: true })
  }
  if (!(error instanceof Fault) || error.code !== 'INVALID') return error
  // Beside other work, the node's failure has to say which part of its config is meant.
  const about = retry === 'here' ? 'guardrails have a schema that cannot be used: ' : ''
  return new NodeFailure(`${about}${error.message}`, { type: 'InvalidConfig' })
}

const unavailable = (type: string, why: string) =>
  new NodeFailure(`The check ${type} could not be made: ${why}`, {
    type: 'GuardrailUnavailable',
    retryable: true,
  })
