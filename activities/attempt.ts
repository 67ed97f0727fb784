import { CancelledFailure, Context } from '@temporalio/activity'
import { ApplicationFailure } from '@temporalio/common'
import { isDatabaseAway } from '../db/connection.ts'
import { readVersion } from '../db/versions.ts'
import type { AttemptInput, AttemptResult } from '../workflows/messages.ts'
import type { PlanNode } from '../workflows/plan.ts'
import { endWaits } from './ends.ts'
import { NodeFailure } from './nodes/failure.ts'
import {
  type ActivityDeps,
  createValues,
  describeFailure,
  finalIfDeleted,
  isInfrastructure,
  loadNode,
  packResult,
  prepareStep,
  runStep,
} from './step.ts'

const HEARTBEAT_MS = 2_000

/**
 * A node's attempt as an activity. Only the node's own failures count against its maxAttempts: they are counted
 * in the heartbeat details, and the last one is thrown non-retryable. A lost worker, a shutdown, or PostgreSQL
 * being away costs one of Temporal's spare attempts, or only time.
 */
export async function runNode(deps: ActivityDeps, input: AttemptInput): Promise<AttemptResult> {
  const activity = Context.current()
  const { info } = activity
  const failures = readFailures(info.heartbeatDetails)
  const beat = () => activity.heartbeat({ failures })
  const timer = setInterval(beat, HEARTBEAT_MS)
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
    return await attempt(deps, input, activity)
  } catch (error) {
    const told = judge(error, input.node, failures, activity)
    await leaveIteration(deps, input, told)
    throw told
  } finally {
    clearInterval(timer)
    log.end()
    deps.touch(input.context.id)
  }
}

async function attempt(deps: ActivityDeps, input: AttemptInput, activity: Context): Promise<AttemptResult> {
  const { node, context, outputs } = input
  const { cancellationSignal: cancelled, info } = activity
  const values = createValues(deps, context.id)
  const limit = new AbortController()
  const { sources, triggerNodeId, iteration, item } = input
  const find = (id: string) => (Object.hasOwn(outputs, id) ? outputs[id] : undefined)
  const step = { sources, needs: node.needs, find, triggerNodeId, context, iteration, item }
  const prepared = await whileAway(cancelled, async () => {
    const graphNode = await loadNode(deps, context, node.id)
    const more = {
      node: graphNode,
      attempt: info.attempt,
      idempotencyKey: `${context.id}:${info.activityId}`,
      signal: AbortSignal.any([cancelled, limit.signal]),
    }
    return { graphNode, context: await prepareStep(deps, values, { ...step, ...more }) }
  })
  const timer = setTimeout(() => {
    const message = `The node took longer than its limit of ${node.timeoutMs} ms`
    limit.abort(new NodeFailure(message, { type: 'NodeTimedOut', retryable: true }))
  }, node.timeoutMs)
  const result = await Promise.race([
    runStep(prepared.graphNode, prepared.context),
    rejectOn(limit.signal),
    rejectOn(cancelled),
  ]).finally(() => clearTimeout(timer))
  const output = await whileAway(cancelled, () =>
    packResult(deps, values, step, result.output, input.inlineBytes),
  )
  return { output, handle: result.handle ?? null }
}

/** A node that fails for good ends its iteration, with what waits in other branches; what this misses the loop's end does. */
async function leaveIteration(
  deps: ActivityDeps,
  { node, context, iteration }: AttemptInput,
  told: unknown,
): Promise<void> {
  const final = told instanceof ApplicationFailure && told.nonRetryable && node.onError === 'FAIL'
  if (!final || node.parentId === undefined) return
  try {
    const { nodes } = await readVersion(deps.store, context.workflowId, context.version)
    await endWaits(deps, context.id, nodes, node.parentId, iteration, true)
  } catch (error) {
    deps.log.warn({ err: error, executionId: context.id }, 'what waited in a failed iteration was not ended')
  }
}

/** What Temporal is told of a failed attempt. */
function judge(error: unknown, node: PlanNode, failed: number, activity: Context): unknown {
  if (activity.cancellationSignal.aborted) {
    if (!activity.cancellationDetails?.workerShutdown) return new CancelledFailure('The run was cancelled')
    return spare('WorkerShutdown', 'The worker shut down', 100)
  }
  const final = finalIfDeleted(error)
  if (final !== error) return final
  if (isInfrastructure(error)) return spare('Infrastructure', String(error), 1_000)

  const { message, type } = describeFailure(error)
  const failures = failed + 1
  const retryable = error instanceof NodeFailure ? error.retryable : true
  if (!retryable || failures >= node.retry.maxAttempts) {
    return ApplicationFailure.create({ message, type, nonRetryable: true })
  }
  activity.heartbeat({ failures })
  const { initialIntervalMs, backoffCoefficient, maxIntervalMs } = node.retry
  const backoff = Math.min(maxIntervalMs, initialIntervalMs * backoffCoefficient ** (failures - 1))
  const asked = error instanceof NodeFailure ? (error.retryAfterMs ?? 0) : 0
  return ApplicationFailure.create({ message, type, nextRetryDelay: Math.max(1, Math.round(backoff), asked) })
}

function spare(type: string, message: string, delayMs: number): ApplicationFailure {
  return ApplicationFailure.create({ message, type, nextRetryDelay: delayMs })
}

function readFailures(details: unknown): number {
  const failures = (details as { failures?: unknown } | undefined)?.failures
  return typeof failures === 'number' ? failures : 0
}

/** Repeats what PostgreSQL's absence stopped until it is back, or the attempt is cancelled. */
async function whileAway<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
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
