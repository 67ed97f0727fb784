import { type RawBuilder, sql } from 'kysely'
import { LRUCache } from 'lru-cache'
import { perDatabase } from '../cache.ts'
import { chatPrivacyOf, isHiddenFrom } from '../chat/privacy.ts'
import { makePage, type Page, type PageRequest } from '../page.ts'
import type { Scope, Store } from '../scope.ts'
import { retriedByOf } from './retried.ts'
import { searchExecutions } from './search.ts'
import { type Starter, showStarter, starterOf } from './starter.ts'
import type { ExecutionStatus } from './status.ts'
import type { Trigger } from './triggers.ts'

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
  draft: boolean
  errorMessage: string | null
  /** The execution that this one retries or reruns. */
  retriedFrom: string | null
  /** The newest execution that retries this one from its failed nodes. */
  retriedBy: string | null
  /** Null if the caller may not see it. */
  startedBy: Starter | null
}

/** `from` (inclusive) and `to` (exclusive) are on createdAt. */
export type ExecutionQuery = PageRequest & {
  status?: ExecutionStatus | undefined
  from?: Date | undefined
  to?: Date | undefined
  /** Only what the newest executions have in their texts, or how they were started: see search.ts. */
  search?: string | undefined
  trigger?: Trigger | undefined
}

/** `searchedFrom` only of a list that was searched, as Found has it. */
export type ExecutionPage = Page<ExecutionItem> & { searchedFrom?: Date | null }

/** Whose executions are listed: a team's, or those of one of its workflows. */
export type Listed = { teamId: string; workflowId?: string | undefined }

/**
 * One page of a team's or a workflow's executions, newest first. The caller must have checked the right. If
 * `from` or `to` is given, a total for which more than 10,000 rows were counted may be ten seconds old. With `search` or
 * `trigger` the total is of those that were found.
 */
export async function listExecutions(
  scope: Scope,
  { teamId, workflowId }: Listed,
  query: ExecutionQuery,
): Promise<ExecutionPage> {
  const { store } = scope
  const [by, owner] =
    workflowId === undefined ? (['teamId', teamId] as const) : (['workflowId', workflowId] as const)
  const offset = query.page * query.size
  if (query.search || query.trigger) {
    const { status, from, to } = query
    const span = sql.join(selectSpan(query), sql` and `)
    const key = JSON.stringify([owner, status, from, to])
    const among = { teamId, where: select(by, owner, query), span, key }
    const { ids, searchedFrom } = await searchExecutions(scope, among, query)
    const content = await readItems(scope, ids.slice(offset, offset + query.size))
    return { ...makePage(content, ids.length, query), searchedFrom }
  }
  const total = await countExecutions(store, by, owner, query)
  if (offset >= total) return makePage([], total, query)
  // The ids come from an index alone, so that a large offset is cheap; only the page's own rows are fetched.
  const page = await sql<{ id: string }>`
    select id from executions e where ${select(by, owner, query)}
    order by created_at desc, id desc limit ${query.size} offset ${offset}`.execute(store.db)
  return makePage(
    await readItems(
      scope,
      page.rows.map(({ id }) => id),
    ),
    total,
    query,
  )
}

/** The executions with these ids, as a list shows them, the newest first. */
async function readItems(scope: Scope, ids: string[]): Promise<ExecutionItem[]> {
  if (ids.length === 0) return []
  const rows = await scope.store.db
    .selectFrom('executions as e')
    .select(['e.id', 'e.workflowId', 'e.workflowName', 'e.status', 'e.startedAt', 'e.completedAt'])
    .select(['e.trigger', 'e.nodeCount', 'e.errorMessage', 'e.retriedFrom', 'e.teamId', 'e.draft'])
    .select(retriedByOf('e').as('retriedBy'))
    .select(chatPrivacyOf('e').as('privacy'))
    .select(starterOf('e').as('starter'))
    .where('e.id', 'in', ids)
    .orderBy('e.createdAt', 'desc')
    .orderBy('e.id', 'desc')
    .execute()
  return rows.map(({ trigger, completedAt, privacy, ...row }) => {
    const hidden = isHiddenFrom(scope, row.teamId, privacy)
    return {
      id: row.id,
      workflowId: row.workflowId,
      workflowName: row.workflowName,
      status: row.status,
      startedAt: row.startedAt,
      finishedAt: completedAt,
      durationMs: durationOf(row.startedAt, completedAt),
      triggerType: trigger,
      nodeCount: row.nodeCount,
      draft: row.draft,
      errorMessage: hidden ? null : row.errorMessage,
      retriedFrom: row.retriedFrom,
      retriedBy: row.retriedBy,
      startedBy: showStarter(scope, { ...row, hidden }),
    }
  })
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

/** If more rows than this had to be counted, the total is cached for ten seconds, so that many pages need it once. */
const MANY = 10_000
const totalsOf = perDatabase(() => new LRUCache<string, number>({ max: 1_000, ttl: 10_000 }))
const DAY_MS = 86_400_000

/**
 * A time as PostgreSQL reads it. Nothing was created outside of the years 1 to 9999, which ISO 8601 writes in its own
 * way.
 */
function writeTime(at: number): string {
  const text = new Date(at).toISOString()
  if (text.startsWith('+')) return 'infinity'
  return /^(-|0000)/.test(text) ? '-infinity' : text
}

/**
 * The total of a span of time: whole days (UTC) come from counters (see days.ts), the rest of it, and the days that are
 * not counted yet, from the rows. All of it is one statement, so that it is right while executions are changing.
 */
async function countSpan(
  { db }: Store,
  by: 'teamId' | 'workflowId',
  owner: string,
  query: ExecutionQuery,
): Promise<number> {
  const totals = totalsOf(db)
  const { status, from, to } = query
  const key = JSON.stringify([by, owner, status, from, to])
  const known = totals.get(key)
  if (known !== undefined) return known
  const low = from ? writeTime(Math.ceil(from.getTime() / DAY_MS) * DAY_MS) : '-infinity'
  const high = to ? writeTime(Math.floor(to.getTime() / DAY_MS) * DAY_MS) : 'infinity'
  const hasStatus = status === undefined ? sql`true` : sql`status = ${status}`
  const rowsOf = sql`select count(*) from executions where ${sql.ref(by)} = ${owner} and ${hasStatus}`
  const [first, last] = [
    from ? writeTime(from.getTime()) : '-infinity',
    to ? writeTime(to.getTime()) : 'infinity',
  ]
  const { rows } = await sql<{ kept: number; counted: number }>`
    with whole as materialized (
      select ${low}::timestamptz as low, least(counted_until, ${high}::timestamptz) as high from execution_days_kept)
    select kept::bigint, counted from whole, lateral (
      select coalesce(sum(n), 0) as kept,
        (${rowsOf} and created_at >= ${first}::timestamptz and created_at < low)
          + (${rowsOf} and created_at >= high and created_at < ${last}::timestamptz) as counted
      from execution_days where owner_id = ${owner} and ${hasStatus}
        and day >= (low at time zone 'UTC')::date and day < (high at time zone 'UTC')::date) whole_days
    where low < high
    union all
    select 0, (${rowsOf} and created_at >= ${first}::timestamptz and created_at < ${last}::timestamptz)
    from whole where low >= high`.execute(db)
  const { kept, counted } = rows[0]!
  const total = kept + counted
  if (counted > MANY) totals.set(key, total)
  return total
}

/** Selects executions `e` by what their indexes have. */
function select(by: 'teamId' | 'workflowId', owner: string, query: ExecutionQuery): RawBuilder<unknown> {
  const { status } = query
  const conditions = [
    sql`${sql.ref(`e.${by}`)} = ${owner}`,
    ...(status === undefined ? [] : [sql`e.status = ${status}`]),
    ...selectSpan(query),
  ]
  return sql.join(conditions, sql` and `)
}

function selectSpan({ from, to }: ExecutionQuery): RawBuilder<unknown>[] {
  return [
    sql`true`,
    ...(from === undefined ? [] : [sql`e.created_at >= ${writeTime(from.getTime())}::timestamptz`]),
    ...(to === undefined ? [] : [sql`e.created_at < ${writeTime(to.getTime())}::timestamptz`]),
  ]
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
