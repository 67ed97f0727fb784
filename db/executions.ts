import { sql } from 'kysely'
import { Fault, missing } from './fault.ts'
import { durationOf, type ExecutionItem, type ExecutionQuery, listExecutions } from './listing.ts'
import { enqueue } from './outbox.ts'
import { readOwner } from './owners.ts'
import { makePage, type Page } from './page.ts'
import type { Recovery } from './retry.ts'
import { change, demand, demandTeam, type Scope, type Store, type Tx } from './scope.ts'
import { readNodeExecutions, type Shown, STORED_NODES } from './shown.ts'

export type ExecutionDetail = {
  id: string
  workflowId: string
  workflowName: string
  workflowVersion: number
  status: string
  trigger: string
  inputData: Record<string, unknown>
  errorMessage: string | null
  createdAt: Date
  /** Since when it waits for a place at its workflow's limit; null where it does not. */
  queuedAt: Date | null
  startedAt: Date | null
  completedAt: Date | null
  durationMs: number | null
  /** The run whose SUB_WORKFLOW node started this one. */
  parentExecutionId: string | null
  parentNodeId: string | null
  /** The run that this one took up, how, and the newest runs that took up this one. */
  retriedFrom: string | null
  recovery: Recovery | null
  retries: string[]
  /** The one node that was run. */
  onlyNode: string | null
} & Shown

/** A team's executions, newest first. A `workflowId` of another team matches nothing. */
export async function listTeamExecutions(
  scope: Scope,
  teamId: string,
  query: ExecutionQuery & { workflowId?: string | undefined },
): Promise<Page<ExecutionItem>> {
  await demandTeam(scope, teamId, 'VIEWER')
  const { workflowId } = query
  if (workflowId === undefined) return listExecutions(scope.store, 'teamId', teamId, query)
  const owner = await findWorkflowTeam(scope.store, workflowId)
  if (owner !== teamId) return makePage([], 0, query)
  return listExecutions(scope.store, 'workflowId', workflowId, query)
}

/** A workflow's executions, newest first. */
export async function listWorkflowExecutions(
  scope: Scope,
  workflowId: string,
  query: ExecutionQuery,
): Promise<Page<ExecutionItem>> {
  demand(scope, await readOwner(scope.store, 'workflows', workflowId), 'VIEWER')
  return listExecutions(scope.store, 'workflowId', workflowId, query)
}

/** An execution with its node records. */
export async function readExecution(scope: Scope, id: string): Promise<ExecutionDetail> {
  const row = await scope.store.db
    .selectFrom('executions')
    .select(['id', 'teamId', 'workflowId', 'workflowName', 'workflowVersion', 'status', 'trigger'])
    .select([
      'triggerNodeId',
      'inputData',
      'errorMessage',
      'createdAt',
      'queuedAt',
      'startedAt',
      'completedAt',
      'parentId',
      'parentKey',
      'retriedFrom',
      'recovery',
      'onlyNode',
    ])
    .select(
      sql<string[]>`array(select r.id::text from executions r where r.retried_from = executions.id
        order by r.created_at desc, r.id desc fetch first 100 rows only)`.as('retries'),
    )
    .select(STORED_NODES.as('nodes'))
    .where('id', '=', id)
    .executeTakeFirst()
  if (!row) throw missing('execution')
  demand(scope, row.teamId, 'VIEWER')
  const { outputData, ...nodes } = await readNodeExecutions(scope.store, row)
  return {
    id,
    workflowId: row.workflowId,
    workflowName: row.workflowName,
    workflowVersion: row.workflowVersion,
    status: row.status,
    trigger: row.trigger,
    inputData: row.inputData as Record<string, unknown>,
    outputData,
    errorMessage: row.errorMessage,
    createdAt: row.createdAt,
    queuedAt: row.queuedAt,
    startedAt: row.startedAt,
    completedAt: row.completedAt,
    durationMs: durationOf(row.startedAt, row.completedAt),
    parentExecutionId: row.parentId,
    parentNodeId: row.parentKey?.split('#')[0] ?? null,
    retriedFrom: row.retriedFrom,
    recovery: row.recovery as Recovery | null,
    retries: row.retries,
    onlyNode: row.onlyNode,
    ...nodes,
  }
}

/**
 * Cancels (OPERATOR): what has not started ends here and now, what runs is told through Temporal, and can from
 * now on only end CANCELLED. A CANCEL is queued for both, for a start may be under way. Answers the status that
 * stands after it. Throws CONFLICT where the execution has ended.
 */
export async function cancelExecution(scope: Scope, id: string): Promise<string> {
  const teamId = await readOwner(scope.store, 'executions', id)
  return change(scope, 'EXECUTION_CANCELLED', teamId, async (tx) => {
    const row = await tx
      .selectFrom('executions')
      .select(['status', 'workflowId'])
      .where('id', '=', id)
      .forUpdate()
      .executeTakeFirst()
    if (!row) throw missing('execution')
    if (isEnded(row.status)) throw new Fault('CONFLICT', `The execution has ended already: ${row.status}`)
    const pending = row.status === 'PENDING'
    await tx
      .updateTable('executions')
      .set({ cancelRequestedAt: sql<Date>`coalesce(cancel_requested_at, now())` })
      .$if(pending, (query) =>
        query.set({
          status: 'CANCELLED',
          completedAt: sql<Date>`now()`,
          errorMessage: 'The run was cancelled before it started',
        }),
      )
      .where('id', '=', id)
      .execute()
    if (pending)
      await tx.deleteFrom('outbox').where('subjectId', '=', id).where('kind', '=', 'START').execute()
    await enqueue(tx, 'CANCEL', [id])
    const details = { workflowId: row.workflowId, status: row.status }
    return { result: pending ? 'CANCELLED' : row.status, resourceId: id, details }
  })
}

/** Whether nothing will change any more; true for what is deleted. */
export async function hasEnded(store: Store, id: string): Promise<boolean> {
  const row = await store.db.selectFrom('executions').select('status').where('id', '=', id).executeTakeFirst()
  return !row || isEnded(row.status)
}

/**
 * Queues the removal from Temporal of a workflow's or a team's executions and returns them: all that are open or
 * that Temporal, which keeps histories for 30 days, may still know. What else was queued for them is dropped.
 */
export async function forgetExecutions(
  tx: Tx,
  owner: 'workflowId' | 'teamId',
  id: string,
): Promise<string[]> {
  const rows = await tx
    .selectFrom('executions')
    .select('id')
    .where(owner, '=', id)
    .where((eb) =>
      eb.or([
        eb('status', 'in', ['PENDING', 'RUNNING']),
        eb('completedAt', '>', sql<Date>`now() - interval '31 days'`),
      ]),
    )
    .execute()
  const ids = rows.map((row) => row.id)
  await sql`delete from outbox where subject_id = any(${ids}::uuid[]) and kind <> 'DELETE'`.execute(tx)
  await enqueue(tx, 'DELETE', ids)
  return ids
}

export function isEnded(status: string): boolean {
  return status !== 'PENDING' && status !== 'RUNNING'
}

async function findWorkflowTeam(store: Store, workflowId: string): Promise<string | undefined> {
  const row = await store.db
    .selectFrom('workflows')
    .select('teamId')
    .where('id', '=', workflowId)
    .executeTakeFirst()
  return row?.teamId
}
