import type { WorkflowExecutionDescription, WorkflowHandle } from '@temporalio/client'
import type { Logger } from 'pino'
import { noteCancelReason } from '../../db/executions/records/lost.ts'
import type { Store } from '../../db/scope.ts'
import { STUCK_ENDED } from '../../workflows/run/records.ts'

/**
 * After this time without a workflow task done, an execution that was cancelled, or whose time limit has passed,
 * is ended by the service: its own code will not do it.
 */
export const STUCK_AFTER_MS = 30_000

/** A workflow task that is to be done: since when, and how often that was tried. */
export type PendingTask = { attempts: number; forMs: number }

/** The workflow task that a run waits for; undefined if the run waits for something else. */
export function findPendingTask(run: WorkflowExecutionDescription): PendingTask | undefined {
  const task = run.raw.pendingWorkflowTask
  if (!task) return undefined
  const { seconds, nanos } = task.originalScheduledTime ?? task.scheduledTime ?? {}
  const since = Number(seconds ?? Date.now() / 1_000) * 1_000 + (nanos ?? 0) / 1_000_000
  return { attempts: task.attempt ?? 1, forMs: Math.max(0, Date.now() - since) }
}

/**
 * Terminates a run that must end but whose workflow task no worker has done for `afterMs`. The row of its execution
 * follows from Temporal's history. Returns whether it did.
 */
export async function endIfStuck(
  { store, log }: { store: Store; log: Logger },
  handle: WorkflowHandle,
  task: PendingTask | undefined,
  why: string,
  afterMs = STUCK_AFTER_MS,
): Promise<boolean> {
  if (!task || task.forMs < afterMs) return false
  const executionId = handle.workflowId
  const seconds = Math.round(task.forMs / 1_000)
  const reason = `${STUCK_ENDED}, and it ${why}: no worker did a workflow task of it for ${seconds} s`
  log.error({ executionId, ...task }, `an execution that could not go on is terminated: it ${why}`)
  await noteCancelReason(store, executionId, reason)
  await handle.terminate(reason)
  return true
}
