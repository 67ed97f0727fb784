import { sql } from 'kysely'
import { v5 as uuidv5 } from 'uuid'
import { findErrorTrigger } from '../../../workflows/graph/graph.ts'
import { copyFiles } from '../../files/files.ts'
import type { Store } from '../../scope.ts'
import { readSettings } from '../../workflows/settings.ts'
import { IS_NO_TEST } from '../triggers.ts'
import { addExecution, type StartedExecution } from './add.ts'
import { readStartable } from './startable.ts'

/** `reason` says why the setting could not be followed; null if the workflow has no error workflow. */
export type ErrorStart = { started: StartedExecution } | { started: null; reason: string | null }

/**
 * Starts the error workflow of a failed execution's workflow at its ERROR_TRIGGER, even if it is inactive.
 * Its data is what is known of the failure. Repeated calls for an execution start only one.
 */
export async function startErrorWorkflow(store: Store, executionId: string): Promise<ErrorStart> {
  const run = await store.db
    .selectFrom('executions as e')
    .innerJoin('workflows as w', 'w.id', 'e.workflowId')
    .select(['e.id', 'e.teamId', 'e.workflowId', 'e.workflowName', 'e.workflowVersion', 'e.status'])
    .select(['e.trigger', 'e.errorMessage', 'e.retriedFrom', 'e.createdAt', 'e.startedAt', 'e.completedAt'])
    .select(['w.name', 'w.settings'])
    .select(IS_NO_TEST.as('isNoTest'))
    .where('e.id', '=', executionId)
    .executeTakeFirst()
  const errorWorkflowId = run && readSettings(run.settings).errorWorkflowId
  // An execution for a test alarms no one.
  if (!run || !errorWorkflowId || !run.isNoTest) return { started: null, reason: null }
  const workflow = await readStartable(store, errorWorkflowId, (teamId) => teamId === run.teamId)
  if (!workflow) return { started: null, reason: `the error workflow ${errorWorkflowId} does not exist` }
  const node = findErrorTrigger(workflow.graph)
  if (!node) return { started: null, reason: `the error workflow ${errorWorkflowId} has no ERROR_TRIGGER` }
  const { name, settings: _, teamId: __, isNoTest: ___, ...execution } = run
  const hasFiles = await store.db
    .selectFrom('executionFiles')
    .select('id')
    .where('executionId', '=', executionId)
    .limit(1)
    .executeTakeFirst()
  const failedNode = await findFailedNode(store, executionId, run.errorMessage)
  const started = await addExecution(store, workflow, {
    origin: 'FAILURE',
    id: errorRunId(executionId),
    node,
    trigger: 'ERROR',
    failed: executionId,
    data: { execution: { ...execution, failedNode }, workflow: { id: run.workflowId, name } },
    by: { kind: 'SYSTEM', id: null, name: 'error' },
    adopt: hasFiles && ((tx, to) => copyFiles(tx, executionId, to, 'all')),
  })
  return { started }
}

/** The id of the execution that the failure of an execution starts. */
export function errorRunId(executionId: string): string {
  return uuidv5('error', executionId)
}

/** The node that made the execution fail: the one with its message, else the last that failed, else null. */
async function findFailedNode(store: Store, executionId: string, message: string | null) {
  const found = await store.db
    .selectFrom('nodeExecutions')
    .select(['nodeId', 'nodeName', 'nodeType', 'errorMessage', 'retryCount'])
    .select(sql<string | null>`nullif(iteration, '')`.as('iteration'))
    .where('executionId', '=', executionId)
    .where('status', '=', 'FAILED')
    // Not a step of an agent: the agent itself has failed.
    .where('step', 'is', null)
    .orderBy(sql`error_message = ${message}`, (order) => order.desc().nullsLast())
    .orderBy('completedAt', 'desc')
    .limit(1)
    .executeTakeFirst()
  return found ?? null
}
