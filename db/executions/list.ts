import { type SelectQueryBuilder, sql } from 'kysely'
import { LRUCache } from 'lru-cache'
import { perDatabase } from '../cache.ts'
import { countRows, makePage, type Page, type PageRequest } from '../page.ts'
import type { DB } from '../schema.ts'
import type { Store } from '../scope.ts'
import type { ExecutionStatus } from './status.ts'

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
  /** The execution that this one retries or reruns. */
  retriedFrom: string | null
}

/** `from` (inclusive) and `to` (exclusive) are on createdAt. */
export type ExecutionQuery = PageRequest & {
  status?: ExecutionStatus | undefined
  from?: Date | undefined
  to?: Date | undefined
}

/**
 * One page of a team's or a workflow's executions, newest first. The caller must have checked the right. If
 * `from` or `to` is given, a total above 10,000 may be ten seconds old.
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
  // The ids come from an index alone, so that a large offset is cheap; only the page's own rows are fetched.
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

/**
 * Totals without `from` and `to` come from counters kept by triggers: counting a million rows is too slow.
 */
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

/** Totals above this are cached for ten seconds, so that a client that reads many pages counts them once. */
const MANY = 10_000
const totalsOf = perDatabase(() => new LRUCache<string, number>({ max: 1_000, ttl: 10_000 }))

async function countSpan(
  { db }: Store,
  by: 'teamId' | 'workflowId',
  owner: string,
  query: ExecutionQuery,
): Promise<number> {
  const totals = totalsOf(db)
  const key = JSON.stringify([by, owner, query.status, query.from, query.to])
  const known = totals.get(key)
  if (known !== undefined) return known
  const total = await countRows(filter(db.selectFrom('executions'), by, owner, query))
  if (total > MANY) totals.set(key, total)
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

/** A duration in milliseconds; null while open, 0 for an execution that ended without having started. */
export function durationOf(startedAt: Date | null, completedAt: Date | null): number | null {
  if (!completedAt) return null
  return startedAt ? completedAt.getTime() - startedAt.getTime() : 0
}

/** The ids of all executions of all teams, in ascending order, read a page at a time. */
export async function* listAllExecutionIds({ db }: Pick<Store, 'db'>): AsyncGenerator<string> {
  for (let last = '00000000-0000-0000-0000-000000000000'; ; ) {
    const rows = await db
      .selectFrom('executions')
      .select('id')
      .where('id', '>', last)
      .orderBy('id')
      .limit(500)
      .execute()
    for (const row of rows) yield row.id
    if (rows.length === 0) return
    last = rows.at(-1)!.id
  }
}
