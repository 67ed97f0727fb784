import { CancelledFailure, Context } from '@temporalio/activity'
import { ApplicationFailure, type ApplicationFailureCategory } from '@temporalio/common'
import { isDatabaseAway } from '../../db/connection.ts'
import { readVersion } from '../../db/workflows/versions.ts'
import { getOwn } from '../../workflows/json.ts'
import type { FailureType } from '../../workflows/nodes/failures.ts'
import type { AttemptInput, AttemptResult } from '../../workflows/run/messages.ts'
import type { PlanNode } from '../../workflows/run/plan.ts'
import type { ActivityDeps } from '../deps.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import type { NodeResult } from '../nodes/kit/node.ts'
import { demandIdentity } from '../temporal/identity.ts'
import { abandonPauses } from './abandon.ts'
import { describeFailure, finalFailure, finalIfDeleted, isInfrastructure } from './failures.ts'
import { beginNotes, readNotes } from './notes.ts'
import { NoRoom, weighInputs } from './share.ts'
import { loadNode, prepareStep, runStep } from './step.ts'
import { createRunValues, packResult, packWritten } from './values.ts'

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
  const beat = () => activity.heartbeat(notes)
  const timer = setInterval(beat, HEARTBEAT_MS)
  const first = setTimeout(beat, FIRST_HEARTBEAT_MS)
  const log = deps.attempts.begin({
    executionId: input.context.id,
    nodeId: input.node.id,
    iteration: input.iteration,
    nodeName: input.node.name,
    nodeType: input.node.type,
    attempt: info.attempt,
    at: new Date(info.scheduledTimestampMs),
  })
  try {
    notes = await retryOutages(activity.cancellationSignal, () => beginNotes(deps, notes))
    // The main thread may be busy from now on until it ends.
    if (info.attempt > 1 || weighInputs(input) > 0) beat()
    return await attempt(deps, input, activity)
  } catch (error) {
    const { failure, failures } = toActivityFailure(error, input.node, notes.failures, activity)
    // From now on the end of this process says nothing about the node.
    notes = { ...notes, failures, process: undefined }
    if (failure instanceof ApplicationFailure && !failure.nonRetryable) beat()
    await leaveIteration(deps, input, failure)
    throw failure
  } finally {
    clearInterval(timer)
    clearTimeout(first)
    log.end()
    deps.touch(input.context.id)
  }
}

async function attempt(deps: ActivityDeps, input: AttemptInput, activity: Context): Promise<AttemptResult> {
  const { node, context, outputs } = input
  const { cancellationSignal: cancelled, info } = activity
  const values = createRunValues(deps, context.id)
  const limit = new AbortController()
  const { sources, triggerNodeId, iteration, item } = input
  const find = (id: string) => getOwn(outputs, id)
  const step = { sources, needs: node.needs, find, triggerNodeId, context, iteration, item }
  const graphNode = await retryOutages(cancelled, async () => {
    await demandIdentity(deps.store, context, { open: true })
    return loadNode(deps, context, node.id)
  })
  const more = {
    node: graphNode,
    attempt: info.attempt,
    idempotencyKey: `${context.id}:${info.activityId}`,
    signal: AbortSignal.any([cancelled, limit.signal]),
  }
  const share = await deps.shares.take(graphNode, input, activity)
  let working: Promise<NodeResult> | undefined
  try {
    const prepared = await retryOutages(cancelled, () => prepareStep(deps, values, { ...step, ...more }))
    const timer = setTimeout(() => {
      const message = `The node took longer than its limit of ${node.timeoutMs} ms`
      limit.abort(new NodeFailure(message, { type: 'NodeTimedOut', retryable: true }))
    }, node.timeoutMs)
    working = runStep(graphNode, { ...prepared, share })
    const result = await Promise.race([working, rejectOn(limit.signal), rejectOn(cancelled)]).finally(() =>
      clearTimeout(timer),
    )
    const { written } = result
    const output = await retryOutages(cancelled, () =>
      written
        ? packWritten(deps, context.id, written)
        : packResult(deps, values, step, result.output, input.inlineBytes),
    )
    return { output, handle: result.handle ?? null }
  } finally {
    // An attempt that is over because of its limit or a cancellation may still hold an answer for a moment.
    void Promise.allSettled([working]).then(() => share?.release())
  }
}

/**
 * If the node has failed for good, its iteration ends: abandons the pauses in other branches of it. Pauses
 * that this misses are abandoned when the loop ends.
 */
async function leaveIteration(
  deps: ActivityDeps,
  { node, context, iteration }: AttemptInput,
  failure: unknown,
): Promise<void> {
  const isFinal = failure instanceof ApplicationFailure && failure.nonRetryable && node.onError === 'FAIL'
  if (!isFinal || node.parentId === undefined) return
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

/**
 * The failure to report to Temporal for a failed attempt, and the number of the node's own failures; `failed`
 * is the number of those before it.
 */
function toActivityFailure(
  error: unknown,
  node: PlanNode,
  failed: number,
  activity: Context,
): { failure: unknown; failures: number } {
  const uncounted = findUncounted(error, activity)
  if (uncounted) return { failure: uncounted, failures: failed }
  const { message, type } = describeFailure(error)
  const failures = failed + 1
  const retryable = error instanceof NodeFailure ? error.retryable : true
  if (!retryable || failures >= node.retry.maxAttempts) {
    return { failure: finalFailure(type, message), failures }
  }
  const { initialIntervalMs, backoffCoefficient, maxIntervalMs } = node.retry
  const backoff = Math.min(maxIntervalMs, initialIntervalMs * backoffCoefficient ** (failures - 1))
  const retryAfterMs = error instanceof NodeFailure ? (error.retryAfterMs ?? 0) : 0
  const nextRetryDelay = Math.max(1, Math.round(backoff), retryAfterMs)
  return { failure: ApplicationFailure.create({ message, type, nextRetryDelay }), failures }
}

/** The failure of an attempt that says nothing about its node; undefined if the node itself has failed. */
function findUncounted(error: unknown, activity: Context): unknown {
  if (activity.cancellationSignal.aborted) {
    if (!activity.cancellationDetails?.workerShutdown)
      return new CancelledFailure('The execution was cancelled')
    return again('WorkerShutdown', 'The worker shut down', 100)
  }
  const final = finalIfDeleted(error)
  if (final !== error) return final
  // Nothing is wrong, so the SDK logs nothing.
  if (error instanceof NoRoom) return again('WorkerBusy', error.message, error.afterMs, 'BENIGN')
  if (isInfrastructure(error)) return again('Infrastructure', String(error), 1_000)
  return undefined
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

/** Repeats the work while PostgreSQL cannot be reached, until the attempt is cancelled. */
async function retryOutages<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  for (let delay = 200; ; delay = Math.min(2_000, delay * 2)) {
    try {
      return await work()
    } catch (error) {
      if (signal.aborted || !isDatabaseAway(error)) throw error
      await new Promise((resolve) => setTimeout(resolve, delay))
    }
  }
}

function rejectOn(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
