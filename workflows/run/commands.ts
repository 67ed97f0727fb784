import {
  ActivityCancellationType,
  ActivityFailure,
  ApplicationFailure,
  defaultPayloadConverter,
  proxyLocalActivities,
  scheduleActivity,
  workflowInfo,
} from '@temporalio/workflow'
import type { Failure } from './frame.ts'
import {
  type Activities,
  type AttemptInput,
  type AttemptResult,
  isRefused,
  readActivityError,
} from './messages.ts'
import { nameQueue, type PlanNode } from './plan.ts'
import type { NodeError } from './records.ts'
import { ENGINE_FAILED, NODE_FAILED, RUN_REFUSED, WORKER_LOST } from './records.ts'
import { joinStep, stepKey } from './walk.ts'

/**
 * After this time without a heartbeat Temporal makes another attempt. Lost workers are found sooner, by their leases.
 * This limit is long, so that a Temporal or a network that hangs for a while does not cost a call.
 */
const HEARTBEAT_TIMEOUT_MS = 60_000

/**
 * Each attempt ends itself at the node's time limit, which does not count how long it waits for room in its
 * worker or stores its answer. Temporal's limit is later, for one that cannot end itself.
 */
const ATTEMPT_GRACE_MS = 3_600_000

/** Has a worker take all pure steps that are ready, and those that become ready by them. */
export const { walkSegment } = proxyLocalActivities<Pick<Activities, 'walkSegment'>>({
  startToCloseTimeout: '1 minute',
  localRetryThreshold: '1 minute',
  retry: { initialInterval: '200 ms', backoffCoefficient: 2, maximumInterval: '10 s' },
  cancellationType: ActivityCancellationType.TRY_CANCEL,
})

/** Runs a node, or a step of an agent, as its own activity, with its retries. Throws an error that readFailure reads. */
export function attemptNode(attempt: AttemptInput): Promise<AttemptResult> {
  const { node } = attempt
  return scheduleActivity<AttemptResult>('runNode', [attempt], {
    activityId: nameActivity(attempt),
    ...chooseQueue(node),
    startToCloseTimeout: node.timeoutMs + ATTEMPT_GRACE_MS,
    heartbeatTimeout: HEARTBEAT_TIMEOUT_MS,
    cancellationType: ActivityCancellationType.TRY_CANCEL,
    summary: node.name,
    // Without a limit: the worker counts the node's own failures and says which is the last, so that no number
    // of lost workers fails a run. It says how long to wait after them, too: these pauses follow a lost worker.
    retry: { initialInterval: '500 ms', backoffCoefficient: 2, maximumInterval: '5 s' },
  })
}

/** The id of the activity: `node`, `node#iteration`, and with `!step` behind for a step of an agent. */
function nameActivity({ node, iteration, agent }: AttemptInput): string {
  if (iteration === '') return joinStep(node.id, agent?.step)
  return stepKey(node.id, joinStep(iteration, agent?.step))
}

/** Where a node's attempts wait for a worker; nothing for those that wait where the run does. */
function chooseQueue({ queue }: PlanNode): { taskQueue?: string } {
  return queue ? { taskQueue: nameQueue(workflowInfo().taskQueue, queue) } : {}
}

/** The node's error, read from the error with which attemptNode failed. */
export function readFailure(error: unknown): NodeError {
  const cause = error instanceof ActivityFailure ? (error.cause ?? error) : error
  if (!(cause instanceof ApplicationFailure)) return WORKER_LOST
  const hidden = cause.failure?.encodedAttributes
  const read = hidden && defaultPayloadConverter.fromPayload(hidden)
  return readActivityError(cause.message, cause.type ?? 'Error', read ?? undefined)
}

/** Throws the failure that ends the run, if what came from Temporal was refused. */
export function demandOurs(message: unknown): void {
  if (isRefused(message)) throw refusal(message.message)
}

export function refusal(message: string): ApplicationFailure {
  return ApplicationFailure.create({ message, type: RUN_REFUSED, nonRetryable: true })
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
  const failed = readFailure(error)
  if (failed.type === RUN_REFUSED) return refusal(failed.message)
  const message = error instanceof Error ? error.message : String(error)
  return ApplicationFailure.create({ message, type: ENGINE_FAILED, nonRetryable: true })
}
