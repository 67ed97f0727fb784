import { CancelledFailure, Context } from '@temporalio/activity'
import { ApplicationFailure, type ApplicationFailureCategory } from '@temporalio/common'
import { isDatabaseAway } from '../../db/connection.ts'
import { readVersion } from '../../db/workflows/versions.ts'
import { getOwn } from '../../workflows/json.ts'
import type { FailureType } from '../../workflows/nodes/failures.ts'
import type { AttemptInput, AttemptResult } from '../../workflows/run/messages.ts'
import type { PlanNode } from '../../workflows/run/plan.ts'
import type { ActivityDeps } from '../deps.ts'
import { findTeam, isTurnedAway } from '../fairness/turns.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import type { NodeResult } from '../nodes/kit/node.ts'
import { demandIdentity } from '../temporal/identity.ts'
import { createTimeLimit } from '../timelimit.ts'
import { abandonPauses } from './abandon.ts'
import { describeFailure, finalFailure, finalIfDeleted, isInfrastructure } from './failures.ts'
import { type AttemptNotes, beginNotes, readNotes } from './notes.ts'
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
  const number = info.attempt - notes.returned
  const beat = () => activity.heartbeat(notes)
  const timer = setInterval(beat, HEARTBEAT_MS)
  const first = setTimeout(beat, FIRST_HEARTBEAT_MS)
  const log = deps.attempts.begin({
    executionId: input.context.id,
    nodeId: input.node.id,
    iteration: input.iteration,
    nodeName: input.node.name,
    nodeType: input.node.type,
    attempt: number,
    at: new Date(info.scheduledTimestampMs),
  })
  try {
    notes = await retryOutages(activity.cancellationSignal, () => beginNotes(deps, notes))
    // The main thread may be busy from now on until it ends.
    if (info.attempt > 1 || weighInputs(input) > 0) beat()
    const result = await attempt(deps, input, activity, number)
    const { returned } = notes
    return returned > 0 ? { ...result, returned } : result
  } catch (error) {
    const { failure, counts } = toActivityFailure(error, input.node, notes, activity)
    if (counts.returned > notes.returned) deps.metrics?.turnedAway.inc({ kind: 'node' })
    // From now on the end of this process says nothing about the node.
    notes = { ...notes, ...counts, process: undefined }
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

async function attempt(
  deps: ActivityDeps,
  input: AttemptInput,
  activity: Context,
  number: number,
): Promise<AttemptResult> {
  const { node, context, outputs } = input
  const { cancellationSignal: cancelled, info } = activity
  const values = createRunValues(deps, context.id)
  const limit = new AbortController()
  const time = createTimeLimit(node.timeoutMs, () => {
    const message = `The node took longer than its limit of ${node.timeoutMs} ms`
    limit.abort(new NodeFailure(message, { type: 'NodeTimedOut', retryable: true }))
  })
  const signal = AbortSignal.any([cancelled, limit.signal])
  // How long others keep the node waiting for a process does not count. Nobody wants what it waits for once it
  // is over.
  const placed = { ...deps, evaluator: deps.evaluator.for({ waits: time.pause, signal }) }
  const { sources, triggerNodeId, iteration, item } = input
  const find = (id: string) => getOwn(outputs, id)
  const step = { sources, needs: node.needs, find, triggerNodeId, context, iteration, item }
  const graphNode = await retryOutages(cancelled, async () => {
    await demandIdentity(deps.store, context, { open: true })
    return loadNode(deps, context, node.id)
  })
  const more = {
    node: graphNode,
    attempt: number,
    idempotencyKey: `${context.id}:${info.activityId}`,
    signal,
  }
  const share = await deps.shares.take(graphNode, input, activity)
  let working: Promise<NodeResult> | undefined
  try {
    const prepared = await retryOutages(cancelled, () => prepareStep(placed, values, { ...step, ...more }))
    time.start()
    working = runStep(graphNode, { ...prepared, share })
    const result = await Promise.race([working, rejectOn(limit.signal), rejectOn(cancelled)]).finally(
      time.stop,
    )
    const { written } = result
    const output = await retryOutages(cancelled, () =>
      written
        ? packWritten(deps, context.id, written)
        : packResult(deps, values, step, result.output, input.inlineBytes),
    )
    return { output, handle: result.handle ?? null }
  } catch (error) {
    if (!isTurnedAway(error)) throw error
    const afterMs = deps.places.processes.turnAway(await findTeam(deps, context))
    throw new NoRoom('the expressions of this node', afterMs)
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

/** The failure to report to Temporal for a failed attempt, and the counts with it; `before` has those until then. */
function toActivityFailure(
  error: unknown,
  node: PlanNode,
  before: AttemptNotes,
  activity: Context,
): { failure: unknown; counts: Pick<AttemptNotes, 'failures' | 'returned'> } {
  const { failures, returned } = before
  const uncounted = findUncounted(error, activity, returned)
  if (uncounted) {
    const counts = { failures, returned: returned + (error instanceof NoRoom ? 1 : 0) }
    return { failure: uncounted, counts }
  }
  const { message, type } = describeFailure(error)
  const counts = { failures: failures + 1, returned }
  const retryable = error instanceof NodeFailure ? error.retryable : true
  if (!retryable || counts.failures >= node.retry.maxAttempts) {
    return { failure: finalFailure(type, message, { returned }), counts }
  }
  const { initialIntervalMs, backoffCoefficient, maxIntervalMs } = node.retry
  const backoff = Math.min(maxIntervalMs, initialIntervalMs * backoffCoefficient ** failures)
  const retryAfterMs = error instanceof NodeFailure ? (error.retryAfterMs ?? 0) : 0
  const nextRetryDelay = Math.max(1, Math.round(backoff), retryAfterMs)
  return { failure: ApplicationFailure.create({ message, type, nextRetryDelay }), counts }
}

/** The failure of an attempt that says nothing about its node; undefined if the node itself has failed. */
function findUncounted(error: unknown, activity: Context, returned: number): unknown {
  if (activity.cancellationSignal.aborted) {
    if (!activity.cancellationDetails?.workerShutdown)
      return new CancelledFailure('The execution was cancelled')
    return again('WorkerShutdown', 'The worker shut down', 100)
  }
  const final = finalIfDeleted(error, { returned })
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
