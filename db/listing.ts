import { type SelectQueryBuilder, sql } from 'kysely'
import type { Db } from './connection.ts'
import { countRows, makePage, type Page, type PageRequest } from './page.ts'
import type { DB } from './schema.ts'
import type { Store } from './scope.ts'

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
  /** The run that this one takes up. */
  retriedFrom: string | null
}

/** On createdAt: `from` inclusive, `to` exclusive. */
export type ExecutionQuery = PageRequest & {
  status?: Status | undefined
  from?: Date | undefined
  to?: Date | undefined
}

/**
 * One page of a team's or a workflow's executions, newest first. The right is checked before. A total above
 * 10,000 within a span of time may be ten seconds old.
 */
export async function listExecutions(
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
    .select(['e.trigger', 'e.nodeCount', 'e.errorMessage', 'e.retriedFrom'])
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
    retriedFrom: row.retriedFrom,
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
  if (query.from || query.to) return countSpan(store, by, owner, query)
  const { total } = await store.db
    .selectFrom('executionCounts')
    .select(sql<number>`coalesce(sum(n), 0)::bigint`.as('total'))
    .where(by, '=', owner)
    .$if(query.status !== undefined, (counts) => counts.where('status', '=', query.status!))
    .executeTakeFirstOrThrow()
  return total
}

const MANY = 10_000
const REMEMBERED_MS = 10_000
const MAX_REMEMBERED = 1_000
const remembered = new WeakMap<Db, Map<string, { total: number; until: number }>>()

// Whoever pages through many counts them once.
async function countSpan(
  { db }: Store,
  by: 'teamId' | 'workflowId',
  owner: string,
  query: ExecutionQuery,
): Promise<number> {
  const totals = remembered.get(db) ?? new Map<string, { total: number; until: number }>()
  remembered.set(db, totals)
  const key = JSON.stringify([by, owner, query.status, query.from, query.to])
  const known = totals.get(key)
  if (known && known.until > Date.now()) return known.total
  totals.delete(key)
  const total = await countRows(filter(db.selectFrom('executions'), by, owner, query))
  if (total > MANY) {
    totals.set(key, { total, until: Date.now() + REMEMBERED_MS })
    if (totals.size > MAX_REMEMBERED) totals.delete(totals.keys().next().value!)
  }
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

/** Milliseconds; null while open, 0 for what ended before it started. */
export function durationOf(startedAt: Date | null, completedAt: Date | null): number | null {
  if (!completedAt) return null
  return startedAt ? completedAt.getTime() - startedAt.getTime() : 0
}
