import {
  isScheduleRefusal,
  isUpToDate,
  listRegisteredDigests,
  type ScheduleDeps,
  syncSchedules,
} from '../../activities/schedules/schedules.ts'
import { listSentSchedules } from '../../db/schedules/schedules.ts'

const EVERY_MS = 5 * 60_000

/**
 * Compares Temporal's schedules with those that the database says were registered: creates the missing ones,
 * replaces those that differ or are sealed as older releases did, removes those that belong to nothing. Any
 * number of processes may do so.
 */
export async function reconcileSchedules(deps: ScheduleDeps): Promise<void> {
  const expected = await listSentSchedules(deps.store)
  const found = await listRegisteredDigests(deps)
  const wrong = new Set<string>()
  const known = new Set<string>()
  for (const { workflowId, nodeId, digest } of expected) {
    known.add(`${workflowId}/${nodeId}`)
    const right = isUpToDate(deps.sealer, digest) && found.get(workflowId)?.get(nodeId) === digest
    if (!right) wrong.add(workflowId)
  }
  for (const [workflowId, schedules] of found) {
    for (const nodeId of schedules.keys()) if (!known.has(`${workflowId}/${nodeId}`)) wrong.add(workflowId)
  }
  for (const workflowId of wrong) {
    deps.log.info({ workflowId }, "repairing a workflow's schedules in Temporal")
    await syncSchedules(deps, workflowId, found.get(workflowId) ?? new Map()).catch((error) => {
      // syncSchedules has logged what Temporal refuses; the
      // other workflows' schedules are repaired all the same.
      if (!isScheduleRefusal(error)) throw error
    })
  }
  await deps.sealer.settle()
}

/** Returns a function that reconciles at its first call, and later only if five minutes have passed. */
export function createReconciler(deps: ScheduleDeps): () => Promise<void> {
  let dueAt = 0
  return async () => {
    if (Date.now() < dueAt) return
    await reconcileSchedules(deps)
    dueAt = Date.now() + EVERY_MS
  }
}
