import { sql } from 'kysely'
import { isEnded } from './executions.ts'
import { durationOf } from './listing.ts'
import { readOwner } from './owners.ts'
import { demand, type Scope, type Store } from './scope.ts'

/**
 * How far a follower has been told of a run: of all that the snapshot `from` sees (null: nothing yet), and where `to`
 * stands, of what that one sees too as far as the record `after`. `ended`: and that it has ended.
 */
export type Cursor = { from: string | null; to?: string; after?: Place; ended?: true }

/** A node record's place in the order in which they are told. */
export type Place = { startedAt: string; id: string }

export type NodeChange = {
  id: string
  nodeId: string
  /** As in the record: null outside of loops. */
  iteration: string | null
  nodeName: string
  nodeType: string
  status: string
  startedAt: string
  completedAt: string | null
  durationMs: number | null
  errorMessage: string | null
  handle: string | null
  retryCount: number
}

export type RunChange = {
  id: string
  status: string
  startedAt: string | null
  completedAt: string | null
  durationMs: number | null
  errorMessage: string | null
  cancelRequested: boolean
}

/**
 * What a read has found. `upTo` is the snapshot it reads to; `run` is null where nothing of it has changed;
 * `more`: the page is full. `ended`: what has been read up to `upTo` is all there will be.
 */
export type Changes = {
  upTo: string
  run: RunChange | null
  nodes: NodeChange[]
  more: boolean
  status: string
  ended: boolean
}

export const START: Cursor = { from: null }

const PAGE = 500

/**
 * What changed in a run behind the cursor, up to its `to`, else up to now; null where there is no such run. A row
 * holds the transaction that changed it last, and a snapshot sees exactly those that are over: so nothing is missed or
 * told twice however transactions commit.
 */
export async function readChanges(
  store: Store,
  executionId: string,
  cursor: Cursor,
): Promise<Changes | null> {
  const { from, to = null, after } = cursor
  // Rows of a restored copy may hold transactions that this cluster has yet to come to: those are old.
  const isFresh = (
    column: string,
  ) => sql`case when ${sql.ref(column)} is null or ${sql.ref(column)} >= b.future
    then b.since is null
    else pg_visible_in_snapshot(${sql.ref(column)}, b.up_to)
      and (b.since is null or not pg_visible_in_snapshot(${sql.ref(column)}, b.since)) end`
  const { rows } = await sql<Row>`
    with bounds as (
      select case when known then coalesce(${to}::pg_snapshot, now) else now end as up_to,
        case when known then ${from}::pg_snapshot end as since, known, pg_snapshot_xmax(now) as future
      from pg_current_snapshot() as now, lateral (select
        coalesce(pg_snapshot_xmax(${to}::pg_snapshot) <= pg_snapshot_xmax(now), true) and
        coalesce(pg_snapshot_xmax(${from}::pg_snapshot) <= pg_snapshot_xmax(now), true) as known) as k)
    select b.up_to::text as up_to, e.status, e.started_at, e.completed_at, e.error_message,
      e.cancel_requested_at is not null as cancel_requested,
      (${after === undefined} or not b.known or e.status not in ('PENDING', 'RUNNING')) and ${isFresh('e.changed')} as fresh,
      e.changed is null or e.changed >= b.future or pg_visible_in_snapshot(e.changed, b.up_to) as told,
      (select coalesce(json_agg(r), '[]') from (
        select n.id, n.node_id as "nodeId", nullif(n.iteration, '') as iteration, n.node_name as "nodeName",
          n.node_type as "nodeType", n.status, n.started_at as "startedAt", n.completed_at as "completedAt",
          n.error_message as "errorMessage", n.handle, n.retry_count as "retryCount"
        from node_executions n where n.execution_id = e.id and ${isFresh('n.changed')}
          and (${after === undefined} or not b.known
            or (n.started_at, n.id) > (${after?.startedAt ?? null}::timestamptz, ${after?.id ?? null}::uuid))
        order by n.started_at, n.id limit ${PAGE + 1}) r) as nodes
    from executions e, bounds b where e.id = ${executionId}`.execute(store.db)
  const [row] = rows
  if (!row) return null
  const { status, startedAt, completedAt, errorMessage, cancelRequested } = row
  const run = {
    id: executionId,
    status,
    startedAt: startedAt?.toISOString() ?? null,
    completedAt: completedAt?.toISOString() ?? null,
    durationMs: durationOf(startedAt, completedAt),
    errorMessage,
    cancelRequested,
  }
  const more = row.nodes.length > PAGE
  return {
    upTo: row.upTo,
    run: row.fresh ? run : null,
    nodes: row.nodes.slice(0, PAGE).map(readNode),
    more,
    status,
    ended: isEnded(status) && row.told && !more,
  }
}

/** Throws unless the caller may follow the run (VIEWER). */
export async function demandRun(scope: Scope, id: string): Promise<void> {
  demand(scope, await readOwner(scope.store, 'executions', id), 'VIEWER')
}

/** What a follower has been told of who wants only what comes from now on. */
export async function readSnapshot(store: Store): Promise<string> {
  const { rows } = await sql<{ now: string }>`select pg_current_snapshot()::text as now`.execute(store.db)
  return rows[0]!.now
}

/** A cursor as an event's id; without commas, since headers that are sent twice are joined by them. */
export function writeCursor({ from, to, after, ended }: Cursor): string {
  const place = after ? `${Date.parse(after.startedAt)}.${after.id}` : ''
  const rest = to !== undefined ? `/${to}/${place}` : ended ? '/end' : ''
  return `${from ?? ''}${rest}`.replaceAll(',', '+')
}

/** The cursor of an event's id; the start for what is none. */
export function readCursor(text: string): Cursor {
  const [from = '', to, place = '', ...rest] = text.replaceAll('+', ',').split('/')
  if (rest.length > 0 || (from !== '' && !isSnapshot(from))) return START
  if (to === undefined) return from === '' ? START : { from }
  if (to === 'end') return place === '' && from !== '' ? { from, ended: true } : START
  const [, ms, id] = /^(\d{1,13})\.([\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})$/.exec(place) ?? []
  if (!isSnapshot(to) || !ms || !id) return START
  return { from: from || null, to, after: { startedAt: new Date(Number(ms)).toISOString(), id } }
}

/** What PostgreSQL takes for a pg_snapshot: xmin:xmax:those in progress, ascending. */
function isSnapshot(text: string): boolean {
  const [, low, high, open] = /^([1-9]\d{0,17}):([1-9]\d{0,17}):((?:\d{1,18},)*\d{1,18})?$/.exec(text) ?? []
  if (!low || !high) return false
  const numbers = [low, ...(open?.split(',') ?? []), high].map(BigInt)
  return numbers.every(
    (number, at) => at === 0 || number > numbers[at - 1]! || (at === 1 && number === numbers[0]),
  )
}

type Row = {
  upTo: string
  status: string
  startedAt: Date | null
  completedAt: Date | null
  errorMessage: string | null
  cancelRequested: boolean
  fresh: boolean
  told: boolean
  nodes: Omit<NodeChange, 'durationMs'>[]
}

function readNode(row: Omit<NodeChange, 'durationMs'>): NodeChange {
  const startedAt = new Date(row.startedAt)
  const completedAt = row.completedAt === null ? null : new Date(row.completedAt)
  return {
    ...row,
    startedAt: startedAt.toISOString(),
    completedAt: completedAt?.toISOString() ?? null,
    durationMs: durationOf(startedAt, completedAt),
  }
}
