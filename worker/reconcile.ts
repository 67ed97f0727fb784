import { isRefusal, listFound, REVISION, type ScheduleDeps, syncSchedules } from '../activities/schedules.ts'
import { listTold } from '../db/schedules.ts'

const EVERY_MS = 5 * 60_000

/**
 * Holds Temporal's schedules against what it was told of them: makes those that are missing or another's work,
 * removes those of nobody. Any number of processes may.
 */
export async function reconcileSchedules(deps: ScheduleDeps): Promise<void> {
  const [told, found] = [await listTold(deps.store), await listFound(deps)]
  const wrong = new Set<string>()
  const known = new Set<string>()
  for (const { workflowId, nodeId, digest } of told) {
    known.add(`${workflowId}/${nodeId}`)
    const right = digest.startsWith(`${REVISION}.`) && found.get(workflowId)?.get(nodeId) === digest
    if (!right) wrong.add(workflowId)
  }
  for (const [workflowId, schedules] of found) {
    for (const nodeId of schedules.keys()) if (!known.has(`${workflowId}/${nodeId}`)) wrong.add(workflowId)
  }
  for (const workflowId of wrong) {
    deps.log.info({ workflowId }, 'the schedules of a workflow are set right')
    await syncSchedules(deps, workflowId, found.get(workflowId) ?? new Map()).catch((error) => {
      // What Temporal refuses is logged there, and keeps the others from nothing.
      if (!isRefusal(error)) throw error
    })
  }
}

/** Reconciles at the first call, and then when it is called and five minutes have gone by. */
export function createReconciler(deps: ScheduleDeps): () => Promise<void> {
  let dueAt = 0
  return async () => {
    if (Date.now() < dueAt) return
    await reconcileSchedules(deps)
    dueAt = Date.now() + EVERY_MS
  }
}
