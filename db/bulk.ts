import { type RawBuilder, sql } from 'kysely'
import { isEnded } from './executions.ts'
import { Fault } from './fault.ts'
import { type Choice, recoverExecution } from './retry.ts'
import { change, demandTeam, type Scope, type Store, type Tx } from './scope.ts'

/** Which of a team's runs; all that is named must hold. On createdAt: `from` inclusive, `to` exclusive. */
export type Filter = {
  status?: string | undefined
  workflowId?: string | undefined
  from?: Date | undefined
  to?: Date | undefined
  ids?: string[] | undefined
}

/** What a call came to: `remaining` are left for another one. */
export type Tally = { matched: number; skipped: Skipped[]; remaining: number }
type Skipped = { id: string; reason: string }

const MAX_CANCELLED = 10_000
const MAX_RETRIED = 1_000
const MAX_SKIPPED = 1_000
/** So many rows are locked at once. */
const CHUNK = 500
const RETRIES_AT_ONCE = 4
const MAX_MS = 20_000
/** No header can hold it. */
const BULK_KEY = 'bulk\n'

type Match = { id: string; place: 'queued' | 'started' | 'waiting'; total: number }

/**
 * Cancels a team's open runs (OPERATOR), those that wait first, so that none begins for the place of another. In
 * small transactions, each with its audit entry; the sweepers tell Temporal at once.
 */
export async function bulkCancel(
  scope: Scope,
  teamId: string,
  filter: Filter,
): Promise<Tally & { cancelled: number }> {
  const { store } = scope
  await demandTeam(scope, teamId, 'OPERATOR')
  const rows = await findMatches(
    store,
    teamId,
    filter,
    sql`status in ('PENDING', 'RUNNING') and cancel_requested_at is null`,
    sql`queued_at is null, status, created_at, id limit ${MAX_CANCELLED}`,
  )
  const skipped = await explainUnmatched(store, teamId, filter, rows)
  const matched = rows[0]?.total ?? 0
  let cancelled = 0
  for (const chunk of chunksOf(rows)) {
    const done = await change(scope, 'EXECUTIONS_CANCELLED', teamId, async (tx) => {
      const ids = await cancelChunk(tx, chunk)
      return { result: ids, ...describeCall(filter, { matched, cancelled: ids.length }) }
    })
    const left = chunk.filter((id) => !done.includes(id))
    skipped.push(...left.map((id) => ({ id, reason: 'The execution has ended meanwhile' })))
    cancelled += done.length
  }
  return { matched, cancelled, skipped: skipped.slice(0, MAX_SKIPPED), remaining: matched - rows.length }
}

/**
 * Retries a team's failed and cancelled runs that nobody has retried yet (OPERATOR), the oldest first. Two calls at
 * once retry each run once. The audit entry comes before them; each new run says itself who started it.
 */
export async function bulkRetry(
  scope: Scope,
  teamId: string,
  filter: Filter,
  version: Choice,
): Promise<Tally & { retried: number; executions: { executionId: string; retriedFrom: string }[] }> {
  const { store } = scope
  await demandTeam(scope, teamId, 'OPERATOR')
  const rows = await findMatches(
    store,
    teamId,
    filter,
    sql`status in ('FAILED', 'CANCELLED') and not exists (
      select from executions r where r.retried_from = e.id and r.recovery = 'RETRY')`,
    sql`created_at, id limit ${MAX_RETRIED}`,
  )
  const skipped = await explainUnmatched(store, teamId, filter, rows)
  const matched = rows[0]?.total ?? 0
  const executions: { executionId: string; retriedFrom: string }[] = []
  await change(scope, 'EXECUTIONS_RETRIED', teamId, async () => ({
    result: undefined,
    ...describeCall({ ...filter, version }, { matched }),
  }))
  const until = Date.now() + MAX_MS
  let seen = 0
  const retry = async (id: string) => {
    try {
      const more = { version, idempotencyKey: BULK_KEY, swept: true }
      const { fresh, executionId } = await recoverExecution(scope, id, 'RETRY', more)
      if (fresh) executions.push({ executionId, retriedFrom: id })
      else skipped.push({ id, reason: 'The execution has been retried already' })
    } catch (error) {
      if (!(error instanceof Fault) || error.code === 'UNAVAILABLE') throw error
      skipped.push({ id, reason: error.message })
    }
  }
  while (seen < rows.length && Date.now() < until) {
    const some = rows.slice(seen, seen + RETRIES_AT_ONCE)
    await Promise.all(some.map(({ id }) => retry(id)))
    seen += some.length
  }
  const told = skipped.slice(0, MAX_SKIPPED)
  return { matched, retried: executions.length, executions, skipped: told, remaining: matched - seen }
}

async function findMatches(
  { db }: Store,
  teamId: string,
  { status, workflowId, from, to, ids }: Filter,
  fit: RawBuilder<unknown>,
  order: RawBuilder<unknown>,
): Promise<Match[]> {
  const { rows } = await sql<Match>`
    select id, count(*) over () as total,
      case when queued_at is not null then 'queued' when status = 'RUNNING' then 'started' else 'waiting' end as place
    from executions e where team_id = ${teamId} and ${fit}
      and (${status ?? null}::text is null or status = ${status ?? null})
      and (${workflowId ?? null}::uuid is null or workflow_id = ${workflowId ?? null})
      and (${from ?? null}::timestamptz is null or created_at >= ${from ?? null})
      and (${to ?? null}::timestamptz is null or created_at < ${to ?? null})
      and (${ids ?? null}::uuid[] is null or id = any(${ids ?? null}::uuid[]))
    order by ${order}`.execute(db)
  return rows
}

/** Why what was named by its id is not among those found; of another team's nothing is told. */
async function explainUnmatched(
  { db }: Store,
  teamId: string,
  { ids = [] }: Filter,
  rows: Match[],
): Promise<Skipped[]> {
  const found = new Set(rows.map(({ id }) => id))
  const left = [...new Set(ids)].filter((id) => !found.has(id))
  if (left.length === 0) return []
  const stand = await db
    .selectFrom('executions')
    .select(['id', 'status', 'cancelRequestedAt'])
    .select(
      sql<boolean>`exists (select from executions r
        where r.retried_from = executions.id and r.recovery = 'RETRY')`.as('retried'),
    )
    .where('teamId', '=', teamId)
    .where('id', 'in', left)
    .execute()
  const byId = new Map(stand.map((row) => [row.id, row]))
  return left.map((id) => {
    const row = byId.get(id)
    if (!row) return { id, reason: 'There is no such execution' }
    const cancels = !isEnded(row.status) && row.cancelRequestedAt !== null
    const how = cancels ? ', being cancelled' : row.retried ? ', retried already' : ''
    return { id, reason: `It does not fit: ${row.status}${how}` }
  })
}

/** Runs of one place at a time: only the end of one that holds a place waits for a limit's gate. */
function* chunksOf(rows: Match[]): Generator<string[]> {
  for (const place of ['queued', 'waiting', 'started'] as const) {
    const ids = rows.filter((row) => row.place === place).map(({ id }) => id)
    for (let at = 0; at < ids.length; at += CHUNK) yield ids.slice(at, at + CHUNK)
  }
}

/** As cancelExecution does; answers those that were open. */
async function cancelChunk(tx: Tx, ids: string[]): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    with open as (
      select id, team_id, status from executions where id = any(${ids}::uuid[]) and status in ('PENDING', 'RUNNING')
      order by id for update),
    unstarted as (
      delete from outbox o using open where o.subject_id = open.id and open.status = 'PENDING' and o.kind = 'START'),
    told as (
      insert into outbox (kind, subject_id, team_id, due_at) select 'CANCEL', id, team_id, now() from open
      on conflict do nothing),
    ended as (
      update executions e set cancel_requested_at = coalesce(e.cancel_requested_at, now()), status = 'CANCELLED',
        completed_at = now(), error_message = 'The run was cancelled before it started'
      from open where e.id = open.id and open.status = 'PENDING'),
    asked as (
      update executions e set cancel_requested_at = coalesce(e.cancel_requested_at, now())
      from open where e.id = open.id and open.status = 'RUNNING')
    select id from open`.execute(tx)
  return rows.map(({ id }) => id)
}

/** What an audit entry says of a call. */
function describeCall(filter: Record<string, unknown>, counts: Record<string, number>) {
  return { resourceId: null, details: { filter, ...counts } }
}
