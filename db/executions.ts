import { type SelectQueryBuilder, sql } from 'kysely'
import { Fault } from './fault.ts'
import { type NodeExecution, readNodeExecutions } from './nodes.ts'
import { enqueue } from './outbox.ts'
import { makePage, type Page, type PageRequest } from './page.ts'
import type { DB } from './schema.ts'
import { change, demand, demandTeam, type Scope, type Store, type Tx } from './scope.ts'

export const STATUSES = ['PENDING', 'RUNNING', 'SUCCESS', 'FAILED', 'CANCELLED'] as const
export type Status = (typeof STATUSES)[number]

export type ExecutionItem = {
  id: string
  workflowId: string
  workflowName: string
  status: string
  startedAt: Date | null
  finishedAt: Date | null
  durationMs: number | null
  triggerType: string
  nodeCount: number
  errorMessage: string | null
}

export type ExecutionDetail = {
  id: string
  workflowId: string
  workflowName: string
  workflowVersion: number
  status: string
  trigger: string
  inputData: Record<string, unknown>
  outputData: Record<string, unknown> | null
  errorMessage: string | null
  createdAt: Date
  startedAt: Date | null
  completedAt: Date | null
  durationMs: number | null
  nodeExecutions: NodeExecution[]
}

/** On createdAt: `from` inclusive, `to` exclusive. */
export type ExecutionQuery = PageRequest & {
  status?: Status | undefined
  from?: Date | undefined
  to?: Date | undefined
}

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
  const teamId = await findWorkflowTeam(scope.store, workflowId)
  if (teamId === undefined) throw new Fault('NOT_FOUND', 'There is no such workflow')
  demand(scope, teamId, 'VIEWER')
  return listExecutions(scope.store, 'workflowId', workflowId, query)
}

async function listExecutions(
  store: Store,
  by: 'teamId' | 'workflowId',
  owner: string,
  query: ExecutionQuery,
): Promise<Page<ExecutionItem>> {
  const total = await countExecutions(store, by, owner, query)
  const offset = query.page * query.size
  if (offset >= total) return makePage([], total, query)
  // The ids come from an index alone, also behind thousands of others; only the page's own rows are fetched.
  const page = filter(store.db.selectFrom('executions'), by, owner, query)
    .select('id')
    .orderBy('createdAt', 'desc')
    .orderBy('id', 'desc')
    .limit(query.size)
    .offset(offset)
  const rows = await store.db
    .selectFrom(page.as('page'))
    .innerJoin('executions as e', 'e.id', 'page.id')
    .select(['e.id', 'e.workflowId', 'e.workflowName', 'e.status', 'e.startedAt', 'e.completedAt'])
    .select(['e.trigger', 'e.nodeCount', 'e.errorMessage'])
    .orderBy('e.createdAt', 'desc')
    .orderBy('e.id', 'desc')
    .execute()
  const content = rows.map(({ trigger, completedAt, ...row }) => ({
    id: row.id,
    workflowId: row.workflowId,
    workflowName: row.workflowName,
    status: row.status,
    startedAt: row.startedAt,
    finishedAt: completedAt,
    durationMs: durationOf(row.startedAt, completedAt),
    triggerType: trigger,
    nodeCount: row.nodeCount,
    errorMessage: row.errorMessage,
  }))
  return makePage(content, total, query)
}

/** Totals without a span of time come from the counters kept with the rows: counting a million takes too long. */
async function countExecutions(
  store: Store,
  by: 'teamId' | 'workflowId',
  owner: string,
  query: ExecutionQuery,
): Promise<number> {
  if (query.from || query.to) {
    const { total } = await filter(store.db.selectFrom('executions'), by, owner, query)
      .select((eb) => eb.fn.countAll<number>().as('total'))
      .executeTakeFirstOrThrow()
    return total
  }
  const { total } = await store.db
    .selectFrom('executionCounts')
    .select(sql<number>`coalesce(sum(n), 0)::bigint`.as('total'))
    .where(by, '=', owner)
    .$if(query.status !== undefined, (counts) => counts.where('status', '=', query.status!))
    .executeTakeFirstOrThrow()
  return total
}

function filter<O>(
  executions: SelectQueryBuilder<DB, 'executions', O>,
  by: 'teamId' | 'workflowId',
  owner: string,
  { status, from, to }: ExecutionQuery,
) {
  return executions
    .where(by, '=', owner)
    .$if(status !== undefined, (query) => query.where('status', '=', status!))
    .$if(from !== undefined, (query) => query.where('createdAt', '>=', from!))
    .$if(to !== undefined, (query) => query.where('createdAt', '<', to!))
}

/** An execution with its node records. */
export async function readExecution(scope: Scope, id: string): Promise<ExecutionDetail> {
  const row = await scope.store.db
    .selectFrom('executions')
    .select(['id', 'teamId', 'workflowId', 'workflowName', 'workflowVersion', 'status', 'trigger'])
    .select(['triggerNodeId', 'inputData', 'errorMessage', 'createdAt', 'startedAt', 'completedAt'])
    .where('id', '=', id)
    .executeTakeFirst()
  if (!row) throw missing()
  demand(scope, row.teamId, 'VIEWER')
  const { nodeExecutions, outputData } = await readNodeExecutions(scope.store, row)
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
    startedAt: row.startedAt,
    completedAt: row.completedAt,
    durationMs: durationOf(row.startedAt, row.completedAt),
    nodeExecutions,
  }
}

/**
 * Cancels (OPERATOR): what has not started ends here and now, what runs is told through Temporal, and can from
 * now on only end CANCELLED. A CANCEL is queued for both, for a start may be under way. Answers the status that
 * stands after it. Throws CONFLICT where the execution has ended.
 */
export async function cancelExecution(scope: Scope, id: string): Promise<string> {
  const found = await scope.store.db
    .selectFrom('executions')
    .select('teamId')
    .where('id', '=', id)
    .executeTakeFirst()
  if (!found) throw missing()
  return change(scope, 'EXECUTION_CANCELLED', found.teamId, async (tx) => {
    const row = await tx
      .selectFrom('executions')
      .select(['status', 'workflowId'])
      .where('id', '=', id)
      .forUpdate()
      .executeTakeFirst()
    if (!row) throw missing()
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
      await tx.deleteFrom('outbox').where('executionId', '=', id).where('kind', '=', 'START').execute()
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
 * Queues the removal from Temporal of a workflow's executions and returns them: all that are open or that
 * Temporal, which keeps histories for 30 days, may still know. What else was queued for them is dropped.
 */
export async function forgetExecutions(tx: Tx, workflowId: string): Promise<string[]> {
  const rows = await tx
    .selectFrom('executions')
    .select('id')
    .where('workflowId', '=', workflowId)
    .where((eb) =>
      eb.or([
        eb('status', 'in', ['PENDING', 'RUNNING']),
        eb('completedAt', '>', sql<Date>`now() - interval '31 days'`),
      ]),
    )
    .execute()
  const ids = rows.map((row) => row.id)
  await sql`delete from outbox where execution_id = any(${ids}::uuid[]) and kind <> 'DELETE'`.execute(tx)
  await enqueue(tx, 'DELETE', ids)
  return ids
}

export function isEnded(status: string): boolean {
  return status !== 'PENDING' && status !== 'RUNNING'
}

/** Milliseconds; null while open, 0 for what ended before it started. */
function durationOf(startedAt: Date | null, completedAt: Date | null): number | null {
  if (!completedAt) return null
  return startedAt ? completedAt.getTime() - startedAt.getTime() : 0
}

async function findWorkflowTeam(store: Store, workflowId: string): Promise<string | undefined> {
  const row = await store.db
    .selectFrom('workflows')
    .select('teamId')
    .where('id', '=', workflowId)
    .executeTakeFirst()
  return row?.teamId
}

function missing(): Fault {
  return new Fault('NOT_FOUND', 'There is no such execution')
}
