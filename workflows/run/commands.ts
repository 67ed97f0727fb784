import {
  ActivityCancellationType,
  ActivityFailure,
  ApplicationFailure,
  proxyLocalActivities,
  scheduleActivity,
} from '@temporalio/workflow'
import type { Failure } from './frame.ts'
import type { Activities, AttemptInput, AttemptResult } from './messages.ts'
import type { NodeError } from './records.ts'
import { ENGINE_FAILED, NODE_FAILED, WORKER_LOST } from './records.ts'
import { stepKey } from './walk.ts'

const HEARTBEAT_TIMEOUT_MS = 10_000

/**
 * Each attempt ends itself at the node's time limit, which does not count how long it waits for room in its
 * worker. Temporal's limit is later, for one that cannot end itself.
 */
const ATTEMPT_GRACE_MS = 60_000

/** Has a worker take all pure steps that are ready, and those that become ready by them. */
export const { walkSegment } = proxyLocalActivities<Pick<Activities, 'walkSegment'>>({
  startToCloseTimeout: '1 minute',
  localRetryThreshold: '1 minute',
  retry: { initialInterval: '200 ms', backoffCoefficient: 2, maximumInterval: '10 s' },
  cancellationType: ActivityCancellationType.TRY_CANCEL,
})

/** Runs a node as its own activity, with its retries. Throws an error that readFailure reads. */
export function attemptNode(attempt: AttemptInput): Promise<AttemptResult> {
  const { node, iteration } = attempt
  const { initialIntervalMs, backoffCoefficient, maxIntervalMs } = node.retry
  return scheduleActivity<AttemptResult>('runNode', [attempt], {
    activityId: iteration === '' ? node.id : stepKey(node.id, iteration),
    startToCloseTimeout: node.timeoutMs + ATTEMPT_GRACE_MS,
    heartbeatTimeout: HEARTBEAT_TIMEOUT_MS,
    cancellationType: ActivityCancellationType.TRY_CANCEL,
    summary: node.name,
    // Without a limit: the worker counts the node's own failures and says which is the last, so that no number
    // of lost workers fails a run.
    retry: {
      initialInterval: initialIntervalMs,
      backoffCoefficient,
      maximumInterval: Math.max(initialIntervalMs, maxIntervalMs),
    },
  })
}

/** The node's error, read from the error with which attemptNode failed. */
export function readFailure(error: unknown): NodeError {
  const cause = error instanceof ActivityFailure ? (error.cause ?? error) : error
  if (cause instanceof ApplicationFailure) return { message: cause.message, type: cause.type ?? 'Error' }
  return WORKER_LOST
}

/** The failure that ends a run because one of its nodes failed. */
export function nodeFailure({ message, type, nodeId }: Failure): ApplicationFailure {
  return ApplicationFailure.create({
    message,
    type: NODE_FAILED,
    details: [{ nodeId, type }],
    nonRetryable: true,
  })
}

/** The failure that ends a run for any other reason. An ApplicationFailure stays as it is. */
export function engineFailure(error: unknown): ApplicationFailure {
  if (error instanceof ApplicationFailure) return error
  const message = error instanceof Error ? error.message : String(error)
  return ApplicationFailure.create({ message, type: ENGINE_FAILED, nonRetryable: true })
}
