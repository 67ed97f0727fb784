import { CancelledFailure, Context } from '@temporalio/activity'
import { ApplicationFailure } from '@temporalio/common'
import { isDatabaseAway } from '../../db/connection.ts'
import { readVersion } from '../../db/workflows/versions.ts'
import { getOwn } from '../../workflows/json.ts'
import type { FailureType } from '../../workflows/nodes/failures.ts'
import type { AttemptInput, AttemptResult } from '../../workflows/run/messages.ts'
import type { PlanNode } from '../../workflows/run/plan.ts'
import type { ActivityDeps } from '../deps.ts'
import { type AttemptCounts, readCounts } from '../fairness/turns.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import { createTimeLimit } from '../timelimit.ts'
import { abandonPauses } from './abandon.ts'
import { describeFailure, finalFailure, finalIfDeleted, isInfrastructure } from './failures.ts'
import { loadNode, prepareStep, runStep } from './step.ts'
import { createRunValues, packResult } from './values.ts'

const HEARTBEAT_MS = 2_000

/**
 * The activity that executes one attempt of a node. Only the node's own failures count against its
 * maxAttempts: they are counted in the heartbeat details, and the last one is thrown as non-retryable. A lost
 * worker, a shutdown or an outage of PostgreSQL costs only time: Temporal makes attempts without limit.
 */
export async function runNode(deps: ActivityDeps, input: AttemptInput): Promise<AttemptResult> {
  const activity = Context.current()
  const { info } = activity
  const counts = readCounts(activity)
  const { returned } = counts
  const beat = () => activity.heartbeat(counts)
  const timer = setInterval(beat, HEARTBEAT_MS)
  const log = deps.attempts.begin({
    executionId: input.context.id,
    nodeId: input.node.id,
    iteration: input.iteration,
    nodeName: input.node.name,
    nodeType: input.node.type,
    attempt: info.attempt - returned,
    at: new Date(info.scheduledTimestampMs),
  })
  try {
    const result = await attempt(deps, input, activity, info.attempt - returned)
    return returned > 0 ? { ...result, returned } : result
  } catch (error) {
    const failure = toActivityFailure(error, input.node, counts, activity)
    await leaveIteration(deps, input, failure)
    throw failure
  } finally {
    clearInterval(timer)
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
  // How long others keep the node waiting for a process does not count.
  const placed = { ...deps, evaluator: deps.evaluator.for({ waits: time.pause }) }
  const { sources, triggerNodeId, iteration, item } = input
  const find = (id: string) => getOwn(outputs, id)
  const step = { sources, needs: node.needs, find, triggerNodeId, context, iteration, item }
  const prepared = await retryOutages(cancelled, async () => {
    const graphNode = await loadNode(deps, context, node.id)
    const more = {
      node: graphNode,
      attempt: number,
      idempotencyKey: `${context.id}:${info.activityId}`,
      signal: AbortSignal.any([cancelled, limit.signal]),
    }
    return { graphNode, context: await prepareStep(placed, values, { ...step, ...more }) }
  })
  time.start()
  const result = await Promise.race([
    runStep(prepared.graphNode, prepared.context),
    rejectOn(limit.signal),
    rejectOn(cancelled),
  ]).finally(time.stop)
  const output = await retryOutages(cancelled, () =>
    packResult(deps, values, step, result.output, input.inlineBytes),
  )
  return { output, handle: result.handle ?? null }
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

/** The failure to report to Temporal for a failed attempt; `before` has the counts of those before it. */
function toActivityFailure(
  error: unknown,
  node: PlanNode,
  before: AttemptCounts,
  activity: Context,
): unknown {
  if (activity.cancellationSignal.aborted) {
    if (!activity.cancellationDetails?.workerShutdown)
      return new CancelledFailure('The execution was cancelled')
    return spare('WorkerShutdown', 'The worker shut down', 100)
  }
  const final = finalIfDeleted(error)
  if (final !== error) return final
  if (isInfrastructure(error)) return spare('Infrastructure', String(error), 1_000)

  const { message, type } = describeFailure(error)
  const counts = { ...before, failures: before.failures + 1 }
  const { failures } = counts
  const retryable = error instanceof NodeFailure ? error.retryable : true
  if (!retryable || failures >= node.retry.maxAttempts) {
    return finalFailure(type, message, counts)
  }
  activity.heartbeat(counts)
  const { initialIntervalMs, backoffCoefficient, maxIntervalMs } = node.retry
  const backoff = Math.min(maxIntervalMs, initialIntervalMs * backoffCoefficient ** (failures - 1))
  const retryAfterMs = error instanceof NodeFailure ? (error.retryAfterMs ?? 0) : 0
  const nextRetryDelay = Math.max(1, Math.round(backoff), retryAfterMs)
  return ApplicationFailure.create({ message, type, nextRetryDelay })
}

/** A failure that costs one of Temporal's spare attempts, not one of the node's own. */
function spare(type: FailureType, message: string, delayMs: number): ApplicationFailure {
  return ApplicationFailure.create({ message, type, nextRetryDelay: delayMs })
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
