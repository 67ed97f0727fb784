import type { Client } from '@temporalio/client'
import { ApplicationFailure } from '@temporalio/common'
import proto from '@temporalio/proto'
import type { FailureType } from '../../workflows/nodes/failures.ts'
import type { CallPlace } from '../run/calls/calls.ts'

const { STARTED, CANCEL_REQUESTED } = {
  STARTED: proto.temporal.api.enums.v1.PendingActivityState.PENDING_ACTIVITY_STATE_STARTED,
  CANCEL_REQUESTED: proto.temporal.api.enums.v1.PendingActivityState.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED,
}

const DEADLINE_MS = 2_000

/** How the worker of a process names itself to Temporal, which says of each attempt who has it. */
export function nameWorker(processId: string, host: string): string {
  return `${process.pid}@${host} ${processId}`
}

/**
 * Whether a run still wants the result of one of its activities: it is open, and has not ended or cancelled the
 * activity. Rejects if Temporal does not say so soon.
 */
export async function wantsResult(
  client: Client,
  { workflowId, runId, activityId }: CallPlace,
): Promise<boolean> {
  const run = await describeRun(client, workflowId, runId)
  if (run?.status.name !== 'RUNNING') return false
  const activity = run.raw.pendingActivities?.find((pending) => pending.activityId === activityId)
  return activity !== undefined && activity.state !== CANCEL_REQUESTED
}

/**
 * Fails the attempts of a run that a lost process had, so that Temporal makes others at once. Returns how many
 * there were. Temporal fails by the activity and not by the attempt, so each is looked at right before: it may
 * still happen that one of another process is failed, which has just begun. Its call goes on, and is taken over
 * by the next attempt.
 */
export async function failLostAttempts(
  client: Client,
  executionId: string,
  processId: string,
): Promise<number> {
  const failed = new Set<string>()
  for (;;) {
    const run = await describeRun(client, executionId)
    if (run?.status.name !== 'RUNNING') return failed.size
    const lost = (run.raw.pendingActivities ?? []).flatMap(({ activityId, state, lastWorkerIdentity }) =>
      activityId &&
      !failed.has(activityId) &&
      (state === STARTED || state === CANCEL_REQUESTED) &&
      lastWorkerIdentity?.endsWith(` ${processId}`)
        ? [activityId]
        : [],
    )
    const [activityId] = lost
    if (!activityId) return failed.size
    const type: FailureType = 'WorkerLost'
    const message = 'The worker was lost'
    const failure = ApplicationFailure.create({ message, type, nextRetryDelay: 1, category: 'BENIGN' })
    const place = { workflowId: executionId, runId: run.runId, activityId }
    await client
      .withDeadline(Date.now() + DEADLINE_MS, () => client.activity.fail(place, failure))
      .catch((error: Error) => {
        if (error.name !== 'ActivityNotFoundError') throw error
      })
    failed.add(activityId)
    if (lost.length === 1) return failed.size
  }
}

/** Undefined if Temporal does not know the run. */
async function describeRun(client: Client, workflowId: string, runId?: string) {
  const handle = client.workflow.getHandle(workflowId, runId)
  try {
    return await client.withDeadline(Date.now() + DEADLINE_MS, () => handle.describe())
  } catch (error) {
    if ((error as Error).name === 'WorkflowNotFoundError') return undefined
    throw error
  }
}
