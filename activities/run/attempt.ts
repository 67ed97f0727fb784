import { CancelledFailure, Context, type Info } from '@temporalio/activity'
import { ApplicationFailure, type ApplicationFailureCategory } from '@temporalio/common'
import { readVersion } from '../../db/workflows/versions.ts'
import type { FailureType } from '../../workflows/nodes/failures.ts'
import type { AttemptInput, AttemptResult } from '../../workflows/run/messages.ts'
import type { PlanNode } from '../../workflows/run/plan.ts'
import { unlessAborted } from '../abort.ts'
import type { ActivityDeps } from '../deps.ts'
import { isTurnedAway, kindOfSlot } from '../fairness/turns.ts'
import { NodeFailure, ToBeContinued } from '../nodes/kit/failure.ts'
import { abandonPauses } from './abandon.ts'
import type { AttemptFailure } from './attemptlog.ts'
import type { KeptAnswer } from './calls/answers.ts'
import { makeCall, storeKept } from './calls/call.ts'
import { type AttemptEnd, watchEnd } from './calls/end.ts'
import { describeAttempt } from './calls/idempotencykey.ts'
import { AtItElsewhere, type AttemptNotes, beginNotes, readNotes } from './calls/notes.ts'
import { describeFailure, finalFailure, finalIfDeleted, isInfrastructure, reportFailure } from './failures.ts'
import { retryOutages } from './outages.ts'
import { NoRoom, weighInputs } from './share.ts'

const HEARTBEAT_MS = 2_000

/** Short attempts need no heartbeat; if this process ends during a longer one, the next one must know of it. */
const FIRST_HEARTBEAT_MS = 300

/**
 * The activity that executes one attempt of a node. Only the node's own failures count against its
 * maxAttempts: they are counted in the heartbeat details, and the last one is thrown as non-retryable. A lost
 * worker, a shutdown or an outage of PostgreSQL costs only time: Temporal makes attempts without limit. Three
 * workers that ran out of memory count as a failure of the node.
 */
export async function runNode(deps: ActivityDeps, input: AttemptInput): Promise<AttemptResult> {
  const activity = Context.current()
  const { info } = activity
  let notes = readNotes(info)
  const number = info.attempt - notes.returned
  const beat = () => activity.heartbeat(notes)
  const timer = setInterval(beat, HEARTBEAT_MS)
  const first = setTimeout(beat, FIRST_HEARTBEAT_MS)
  let log: ReturnType<ActivityDeps['attempts']['begin']> | undefined
  let hasBegun = false
  const end = watchEnd(activity, deps.putDown)
  try {
    const begun = await retryOutages(end.signal, () => beginNotes(deps, notes, info))
    if (!begun) throw new AtItElsewhere()
    notes = begun
    hasBegun = true
    log = deps.attempts.begin(describeAttempt(input, info, number))
    // The main thread may be busy from now on until it ends.
    if (info.attempt > 1 || weighInputs(input) > 0) beat()
    const leaves = (answer: KeptAnswer | undefined) => {
      notes = { ...notes, answer: answer ?? notes.answer }
    }
    const result = await attempt(deps, input, info, { number, notes, leaves, end })
    const { returned } = notes
    return returned > 0 ? { ...result, returned } : result
  } catch (error) {
    const { failure, counts } = toActivityFailure(error, input.node, notes, end)
    if (!end.signal.aborted)
      reportFailure(deps, error, { executionId: input.context.id, nodeId: input.node.id })
    if (error instanceof NoRoom) deps.metrics?.turnedAway.inc({ kind: kindOfSlot(input.node) })
    // From now on the end of this process says nothing about the node. Before it has begun, another's may.
    const process = hasBegun && !(error instanceof AtItElsewhere) ? undefined : notes.process
    const counted = counts.failures > notes.failures
    const gaveBack = counts.returned > notes.returned
    notes = { ...notes, ...counts, process }
    if (failure instanceof ApplicationFailure) {
      if (!failure.nonRetryable) beat()
      const noted = gaveBack ? undefined : log?.fail(describeEnd(failure, counted))
      // The next attempt must not be noted before the failure of this one.
      if (counted && !failure.nonRetryable) await noted
    }
    await leaveIteration(deps, input, failure)
    throw failure
  } finally {
    clearInterval(timer)
    clearTimeout(first)
    end.leave()
    log?.end()
    deps.touch(input.context.id)
  }
}

/**
 * Takes over the call of an earlier attempt, or makes it. An attempt that is over for Temporal leaves its call
 * to the next one. One whose worker stops while only the storing is left gives the answer to the next one.
 */
async function attempt(
  deps: ActivityDeps,
  input: AttemptInput,
  info: Info,
  { number, notes, leaves, end }: { number: number; notes: AttemptNotes; leaves: Leave; end: AttemptEnd },
): Promise<AttemptResult> {
  const call = deps.calls.take(info, notes.failures, (control) =>
    notes.answer
      ? storeKept(deps, input, notes.answer, control)
      : makeCall(deps, input, { ...control, info, number }),
  )
  try {
    return await unlessAborted(call.done, end.signal)
  } catch (error) {
    if (!end.signal.aborted) throw error
    const why = end.why()
    if (why === 'LOST') call.leave()
    else {
      if (why === 'STOP') leaves(call.keep())
      call.abort()
    }
    throw error
  }
}

type Leave = (answer: KeptAnswer | undefined) => void

/**
 * If the node has failed for good, its iteration ends: abandons the pauses in other branches of it. Pauses
 * that this misses are abandoned when the loop ends.
 */
async function leaveIteration(
  deps: ActivityDeps,
  { node, context, iteration, agent }: AttemptInput,
  failure: unknown,
): Promise<void> {
  const isFinal = failure instanceof ApplicationFailure && failure.nonRetryable && node.onError === 'FAIL'
  // A failed task of an agent is for the next turn to see.
  if (!isFinal || node.parentId === undefined || agent?.kind === 'task') return
  try {
    const { nodes } = await readVersion(deps.store, context.workflowId, context.version)
    await abandonPauses(deps, context.id, nodes, node.parentId, iteration, true)
  } catch (error) {
    deps.log.warn(
      { err: error, executionId: context.id },
      'the pauses of a failed iteration were not abandoned',
    )
  }
}

/** The note of a failed attempt; its node's record shows the reason until the next one comes. */
function describeEnd(
  { type, message, nonRetryable, nextRetryDelay }: ApplicationFailure,
  counted: boolean,
): AttemptFailure {
  const nextAt = new Date(Date.now() + Number(nextRetryDelay ?? 0))
  return { type: type ?? 'Error', message, counted, ...(counted && !nonRetryable ? { nextAt } : {}) }
}

/** The failure to report to Temporal for a failed attempt, and the counts with it; `before` has those until then. */
function toActivityFailure(
  error: unknown,
  node: PlanNode,
  before: AttemptNotes,
  end: AttemptEnd,
): { failure: unknown; counts: Pick<AttemptNotes, 'failures' | 'returned'> } {
  const { failures, returned } = before
  const uncounted = findUncounted(error, node, end, returned)
  if (uncounted) {
    const gaveBack = isReturn(error) || isWithoutProcess(error, node)
    const counts = { failures, returned: returned + (gaveBack ? 1 : 0) }
    return { failure: uncounted, counts }
  }
  const { message, type } = describeFailure(error)
  const counts = { failures: failures + 1, returned }
  const retryable = error instanceof NodeFailure ? error.retryable : true
  if (!retryable || counts.failures >= node.retry.maxAttempts) {
    const notes = error instanceof NodeFailure ? error.notes : undefined
    return { failure: finalFailure(type, message, { returned, ...(notes ? { notes } : {}) }), counts }
  }
  const { initialIntervalMs, backoffCoefficient, maxIntervalMs } = node.retry
  const backoff = Math.min(maxIntervalMs, initialIntervalMs * backoffCoefficient ** failures)
  const retryAfterMs = error instanceof NodeFailure ? (error.retryAfterMs ?? 0) : 0
  const nextRetryDelay = Math.max(1, Math.round(backoff), retryAfterMs)
  return { failure: ApplicationFailure.create({ message, type, nextRetryDelay }), counts }
}

/** The failure of an attempt that says nothing about its node; undefined if the node itself has failed. */
function findUncounted(error: unknown, node: PlanNode, end: AttemptEnd, returned: number): unknown {
  if (end.signal.aborted) {
    if (end.why() !== 'STOP') return new CancelledFailure('The execution was cancelled')
    return again('WorkerShutdown', 'The worker shut down', 100)
  }
  const final = finalIfDeleted(error, { returned })
  if (final !== error) return final
  // Nothing is wrong, so the SDK logs nothing.
  if (isReturn(error)) return again('WorkerBusy', error.message, error.afterMs, 'BENIGN')
  if (isWithoutProcess(error, node)) return again('WorkerBusy', describeFailure(error).message, 500, 'BENIGN')
  if (isInfrastructure(error)) return again('Infrastructure', describeFailure(error).message, 1_000)
  return undefined
}

/** Whether the attempt has only given its slot back. */
function isReturn(error: unknown): error is NoRoom | AtItElsewhere | ToBeContinued {
  return error instanceof NoRoom || error instanceof AtItElsewhere || error instanceof ToBeContinued
}

/** Whether a node that only computes has not got a process in time, because its team has its half of them. */
function isWithoutProcess(error: unknown, { kind }: PlanNode): boolean {
  return kind === 'pure' && isTurnedAway(error)
}

/** A failure after which Temporal makes another attempt, without counting against the node's own. */
function again(
  type: FailureType,
  message: string,
  nextRetryDelay: number,
  category?: keyof typeof ApplicationFailureCategory,
): ApplicationFailure {
  return ApplicationFailure.create({ message, type, nextRetryDelay, ...(category ? { category } : {}) })
}
