import { type RawBuilder, sql } from 'kysely'
import { change, write } from '../change.ts'
import { isPrivate, isShownTo } from '../chat/privacy.ts'
import type { Tx } from '../connection.ts'
import { Fault } from '../fault.ts'
import { demandStill } from '../people/rights.ts'
import { demandTeam, type Scope, type Store } from '../scope.ts'
import { cancelOpen } from './cancel.ts'
import { removeEnded, STILL_NEEDED } from './delete.ts'
import { recoverExecution, type VersionChoice } from './starts/retry.ts'
import { IN_CHAT } from './starts/takeover.ts'
import { isEnded } from './status.ts'

/**
 * Selects the executions that meet all conditions. `from` (inclusive) and `to` (exclusive) are on createdAt.
 */
export type BulkFilter = {
  status?: string | undefined
  workflowId?: string | undefined
  from?: Date | undefined
  to?: Date | undefined
  ids?: string[] | undefined
}

/** The result of a call. `remaining` of the `matched` executions are left for another call. */
export type BulkTally = { matched: number; skipped: Skipped[]; remaining: number }
type Skipped = { id: string; reason: string }

const MAX_CANCELLED = 10_000
const MAX_RETRIED = 1_000
const MAX_SKIPPED = 1_000
const MAX_DELETED = 10_000

/** How many rows a transaction locks at most. */
const CHUNK = 500
const DELETED_AT_ONCE = 200
const RETRIES_AT_ONCE = 4
const MAX_MS = 20_000

/** The idempotency key of bulk retries. No client can send it, since a header cannot hold a line feed. */
const BULK_KEY = 'bulk\n'

type Match = { id: string; place: 'queued' | 'started' | 'waiting'; total: number }

/**
 * Cancels a team's open executions (OPERATOR), at most 10,000 in one call: queued ones first, so that none
 * starts in the place of a cancelled one. Works in small transactions, each with its audit entry. The
 * sweepers tell Temporal at once.
 */
export async function bulkCancel(
  scope: Scope,
  teamId: string,
  filter: BulkFilter,
): Promise<BulkTally & { cancelled: number }> {
  const { store } = scope
  await demandTeam(scope, teamId, 'OPERATOR')
  // The body may have come long after its headers, and if nothing matches, nothing is changed.
  await write(store, (tx) => demandStill(tx, { scope, least: 'OPERATOR' }, teamId))
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
      const ids = await holdUncancelled(tx, chunk)
      if (ids.length === 0) return { result: ids, unchanged: true }
      await cancelOpen(tx, ids)
      return { result: ids, ...describeCall(filter, { matched, cancelled: ids.length }) }
    })
    const left = chunk.filter((id) => !done.includes(id))
    const reason = 'The execution has ended or was cancelled in the meantime'
    skipped.push(...left.map((id) => ({ id, reason })))
    cancelled += done.length
  }
  return { matched, cancelled, skipped: skipped.slice(0, MAX_SKIPPED), remaining: matched - rows.length }
}

/**
 * Retries a team's failed and cancelled executions that were not retried yet (OPERATOR), the oldest first, without
 * those that reply in chats, and without tests of drafts unless they are named: for at most 20 seconds and 1,000 of
 * them. Two simultaneous calls retry each execution only once. The audit entry is written before the retries; each new
 * execution names the caller as its starter.
 */
export async function bulkRetry(
  scope: Scope,
  teamId: string,
  filter: BulkFilter,
  version: VersionChoice,
): Promise<BulkTally & { retried: number; executions: { executionId: string; retriedFrom: string }[] }> {
  const { store } = scope
  await demandTeam(scope, teamId, 'OPERATOR')
  const rows = await findMatches(
    store,
    teamId,
    filter,
    sql`status in ('FAILED', 'CANCELLED') and trigger <> 'CHAT' and not exists (
      select from executions r where r.retried_from = e.id and r.recovery = 'RETRY')
      and ${filter.ids ? sql`true` : sql`not draft`}`,
    sql`created_at, id limit ${MAX_RETRIED}`,
  )
  const skipped = await explainUnmatched(store, teamId, filter, rows, { retry: true })
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
      const more = { version, idempotencyKey: BULK_KEY, swept: true, many: true }
      const { fresh, executionId } = await recoverExecution(scope, id, 'RETRY', more)
      if (fresh) executions.push({ executionId, retriedFrom: id })
      else skipped.push({ id, reason: 'The execution has already been retried' })
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
  return {
    matched,
    retried: executions.length,
    executions,
    skipped: skipped.slice(0, MAX_SKIPPED),
    remaining: matched - seen,
  }
}

/**
 * Deletes a team's ended executions (BUILDER), the oldest first: at most 10,000 in one call, and for at most 20 seconds.
 * Works in small transactions, each with its audit entry. Those that are hidden from the caller, or still needed, stay.
 */
export async function bulkDelete(
  scope: Scope,
  teamId: string,
  filter: BulkFilter,
): Promise<BulkTally & { deleted: number; ids: string[] }> {
  const { store } = scope
  await demandTeam(scope, teamId, 'BUILDER')
  await write(store, (tx) => demandStill(tx, { scope, least: 'BUILDER' }, teamId))
  const ended = sql`status in ('SUCCESS', 'FAILED', 'CANCELLED') and ${isShownTo(scope, teamId, 'e')}`
  const rows = await findMatches(store, teamId, filter, ended, sql`created_at, id limit ${MAX_DELETED}`)
  const skipped = await explainUnmatched(store, teamId, filter, rows, {
    shown: isShownTo(scope, teamId, 'executions'),
  })
  const matched = rows[0]?.total ?? 0
  const until = Date.now() + MAX_MS
  const ids: string[] = []
  let seen = 0
  while (seen < rows.length && Date.now() < until) {
    const chunk = rows.slice(seen, seen + DELETED_AT_ONCE).map(({ id }) => id)
    const done = await change(scope, 'EXECUTIONS_DELETED', teamId, async (tx) => {
      const result = await removeEnded(tx, scope, teamId, chunk)
      if (result.length === 0) return { result, unchanged: true }
      return { result, ...describeCall(filter, { matched, deleted: result.length }) }
    })
    ids.push(...done)
    const gone = new Set(done)
    skipped.push(...chunk.filter((id) => !gone.has(id)).map((id) => ({ id, reason: STILL_NEEDED })))
    seen += chunk.length
  }
  const left = { skipped: skipped.slice(0, MAX_SKIPPED), remaining: matched - seen }
  return { matched, deleted: ids.length, ids, ...left }
}

/** Locks those that are still open and that no other call is cancelling, so that of several calls one counts them. */
async function holdUncancelled(tx: Tx, ids: string[]): Promise<string[]> {
  const rows = await tx
    .selectFrom('executions')
    .select('id')
    .where('id', 'in', ids)
    .where('status', 'in', ['PENDING', 'RUNNING'])
    .where('cancelRequestedAt', 'is', null)
    .orderBy('id')
    .forUpdate()
    .execute()
  return rows.map(({ id }) => id)
}

async function findMatches(
  { db }: Store,
  teamId: string,
  { status, workflowId, from, to, ids }: BulkFilter,
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

/** Why executions named by id were not found. Another team's are reported as if they did not exist. */
async function explainUnmatched(
  { db }: Store,
  teamId: string,
  { ids = [] }: BulkFilter,
  rows: Match[],
  { retry = false, shown = sql<boolean>`true` } = {},
): Promise<Skipped[]> {
  const found = new Set(rows.map(({ id }) => id))
  const left = [...new Set(ids)].filter((id) => !found.has(id))
  if (left.length === 0) return []
  const existing = await db
    .selectFrom('executions')
    .select(['id', 'status', 'cancelRequestedAt', 'trigger'])
    .select(shown.as('shown'))
    .select(
      sql<boolean>`exists (select from executions r
        where r.retried_from = executions.id and r.recovery = 'RETRY')`.as('retried'),
    )
    .where('teamId', '=', teamId)
    .where('id', 'in', left)
    .execute()
  const byId = new Map(existing.map((row) => [row.id, row]))
  return left.map((id) => {
    const row = byId.get(id)
    if (!row) return { id, reason: 'There is no such execution' }
    if (!row.shown) return { id, reason: isPrivate().message }
    if (retry && row.trigger === 'CHAT') return { id, reason: IN_CHAT }
    const cancels = !isEnded(row.status) && row.cancelRequestedAt !== null
    const how = cancels ? ', being cancelled' : row.retried ? ', retried already' : ''
    return { id, reason: `The execution does not match the filter: ${row.status}${how}` }
  })
}

/** Chunks of ids with the same `place`: only the end of an execution that holds a place locks its gate. */
function* chunksOf(rows: Match[]): Generator<string[]> {
  for (const place of ['queued', 'waiting', 'started'] as const) {
    const ids = rows.filter((row) => row.place === place).map(({ id }) => id)
    for (let at = 0; at < ids.length; at += CHUNK) yield ids.slice(at, at + CHUNK)
  }
}

/** The part of an audit entry that describes a bulk call. */
function describeCall(filter: Record<string, unknown>, counts: Record<string, number>) {
  return { resourceId: null, details: { filter, ...counts } }
}
