import { v5 as uuidv5 } from 'uuid'
import { findStart } from '../../../workflows/graph/graph.ts'
import { readExecutionOutput } from '../../executions/records/records.ts'
import { addExecution } from '../../executions/starts/add.ts'
import { readStartable } from '../../executions/starts/startable.ts'
import { isEnded } from '../../executions/status.ts'
import { Fault } from '../../fault.ts'
import type { Actor, Store } from '../../scope.ts'
import { readVersion } from '../../workflows/versions.ts'

/** A workflow that is tried out with a case of a batch, in the version that the batch has begun with. */
export type CaseStart = {
  runId: string
  place: number
  workflowId: string
  version: number
  data: Record<string, unknown>
  by: Actor
}

/**
 * Starts the execution of a case, or finds it: a case never has two. Throws NOT_FOUND if the workflow or the version is
 * deleted, CONFLICT if it has no trigger or its limit turns the execution away.
 */
export async function startCaseExecution(
  store: Store,
  { runId, place, workflowId, version, data, by }: CaseStart,
): Promise<string> {
  const found = await readStartable(store, workflowId, () => true)
  if (!found) throw new Fault('NOT_FOUND', 'The workflow no longer exists')
  const graph = version === found.version ? found.graph : await readVersion(store, workflowId, version)
  const node = findStart(graph)
  if (!node) throw new Fault('INVALID', 'The workflow has no trigger to start at')
  const started = await addExecution(
    store,
    { ...found, version, graph },
    {
      origin: 'BATCH',
      id: uuidv5(`case ${place}`, runId),
      node,
      trigger: 'EVALUATION',
      data,
      by,
      swept: true,
    },
  )
  return started.executionId
}

/** What an execution has come to: its output is undefined if it was not kept. Null while it is open. */
export async function readCaseExecution(
  store: Store,
  executionId: string,
): Promise<{ output: unknown } | { reason: string } | null> {
  const run = await store.db
    .selectFrom('executions')
    .select(['id', 'teamId', 'workflowId', 'workflowVersion', 'status', 'triggerNodeId', 'onlyNode'])
    .select('errorMessage')
    .where('id', '=', executionId)
    .executeTakeFirst()
  if (!run) return { reason: 'The execution was deleted' }
  if (!isEnded(run.status)) return null
  if (run.status === 'SUCCESS') return { output: await readExecutionOutput(store, run) }
  const why = run.errorMessage ? `: ${run.errorMessage}` : ''
  return { reason: `The execution ended ${run.status}${why}` }
}
