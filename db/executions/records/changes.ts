import { sql } from 'kysely'
import { graphNodeId } from '../../../workflows/run/plan.ts'
import type { Store } from '../../scope.ts'
import { durationOf } from '../list.ts'
import { isEnded } from '../status.ts'
import { showHandles } from './records.ts'

/**
 * How far a follower has read an execution: all that the snapshot `from` sees (nothing if null), and if `to`
 * is set, also what that snapshot sees up to the record `after`. With `ended`, the follower also knows that
 * it has ended.
 */
export type Cursor = { from: string | null; to?: string; after?: ChangePosition; ended?: true }

/** A node record's position in the order in which changes are read. */
type ChangePosition = { startedAt: string; id: string }

type NodeChange = {
  id: string
  nodeId: string
  /** As in the record: null outside of loops. */
  iteration: string | null
  step: number | null
  tool: string | null
  nodeName: string
  nodeType: string
  status: string
  startedAt: string
  completedAt: string | null
  durationMs: number | null
  errorMessage: string | null
  handle: string | null
  /** As in the record: the handles of a node that may leave by several at once. */
  handles?: (string | null)[]
  retryCount: number
  nextAttemptAt: string | null
  waitingUntil: string | null
  itemCount: number | null
}

type ExecutionChange = {
  id: string
  status: string
  startedAt: string | null
  completedAt: string | null
  durationMs: number | null
  errorMessage: string | null
  cancelRequested: boolean
}

/**
 * What a read has found. `upTo` is the snapshot that it reads up to. `run` is null if the execution's own row
 * has not changed. `more` is true if the page is full and there are more records. `ended` is true if nothing
 * will change after `upTo`.
 */
export type Changes = {
  upTo: string
  run: ExecutionChange | null
  nodes: NodeChange[]
  more: boolean
  status: string
  ended: boolean
}

const FROM_THE_BEGINNING: Cursor = { from: null }

const PAGE = 500

/**
 * Reads what changed in an execution after the cursor, up to its `to`, else up to now; null if there is no
 * such execution. A row holds the id of the transaction that changed it last, and a snapshot sees exactly the
 * transactions that had ended when it was taken. So nothing is missed or read twice, in whatever order they
 * commit. If the values of the execution are `hidden`, so are errors, handles and steps.
 */
export async function readChanges(
  store: Store,
  executionId: string,
  cursor: Cursor,
  hidden: boolean,
): Promise<Changes | null> {
  const { from, to = null, after } = cursor
  // Restored rows may hold ids of transactions that this cluster has yet to reach: they count as old.
  const isFresh = (
    column: string,
  ) => sql`case when ${sql.ref(column)} is null or ${sql.ref(column)} >= b.future
    then b.since is null
    else pg_visible_in_snapshot(${sql.ref(column)}, b.up_to)
      and (b.since is null or not pg_visible_in_snapshot(${sql.ref(column)}, b.since)) end`
  const { rows } = await sql<ChangeRow>`
    with bounds as (
      select case when known then coalesce(${to}::pg_snapshot, now) else now end as up_to,
        case when known then ${from}::pg_snapshot end as since, known, pg_snapshot_xmax(now) as future
      from pg_current_snapshot() as now, lateral (select
        coalesce(pg_snapshot_xmax(${to}::pg_snapshot) <= pg_snapshot_xmax(now), true) and
        coalesce(pg_snapshot_xmax(${from}::pg_snapshot) <= pg_snapshot_xmax(now), true) as known) as k)
    select b.up_to::text as up_to, e.status, e.started_at, e.completed_at, e.error_message,
      e.cancel_requested_at is not null as cancel_requested,
      (${after === undefined} or not b.known or e.status not in ('PENDING', 'RUNNING')) and ${isFresh('e.changed')} as fresh,
      e.changed is null or e.changed >= b.future or pg_visible_in_snapshot(e.changed, b.up_to) as visible,
      (select coalesce(json_agg(r), '[]') from (
        select n.id, n.node_id as "nodeId", nullif(split_part(n.iteration, '!', 1), '') as iteration, n.step, n.tool, n.node_name as "nodeName",
          n.node_type as "nodeType", n.status, n.started_at as "startedAt", n.completed_at as "completedAt",
          n.error_message as "errorMessage", n.handle, n.retry_count as "retryCount",
          case when n.status = 'RUNNING' then n.next_attempt_at end as "nextAttemptAt",
          case when n.status = 'RUNNING' then n.waiting_until end as "waitingUntil", n.item_count as "itemCount"
        from node_executions n where n.execution_id = e.id and ${isFresh('n.changed')} and (${!hidden} or n.step is null)
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
    errorMessage: hidden ? null : errorMessage,
    cancelRequested,
  }
  const more = row.nodes.length > PAGE
  return {
    upTo: row.upTo,
    run: row.fresh ? run : null,
    nodes: row.nodes.slice(0, PAGE).map((node) => readNode(node, hidden)),
    more,
    status,
    ended: isEnded(status) && row.visible && !more,
  }
}

/** The current snapshot: as `from` of a cursor, it leaves out all that has changed until now. */
export async function readWholeExecution(store: Store): Promise<string> {
  const { rows } = await sql<{ now: string }>`select pg_current_snapshot()::text as now`.execute(store.db)
  return rows[0]!.now
}

/** Writes a cursor as an event's id, without commas: headers that are sent twice are joined by commas. */
export function writeCursor({ from, to, after, ended }: Cursor): string {
  const place = after ? `${Date.parse(after.startedAt)}.${after.id}` : ''
  const rest = to !== undefined ? `/${to}/${place}` : ended ? '/end' : ''
  return `${from ?? ''}${rest}`.replaceAll(',', '+')
}

/** Reads the cursor from an event's id. A string that is not a cursor means FROM_THE_BEGINNING. */
export function readCursor(text: string): Cursor {
  const [from = '', to, place = '', ...rest] = text.replaceAll('+', ',').split('/')
  if (rest.length > 0 || (from !== '' && !isSnapshot(from))) return FROM_THE_BEGINNING
  if (to === undefined) return from === '' ? FROM_THE_BEGINNING : { from }
  if (to === 'end') return place === '' && from !== '' ? { from, ended: true } : FROM_THE_BEGINNING
  const [, ms, id] = /^(\d{1,13})\.([\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})$/.exec(place) ?? []
  if (!isSnapshot(to) || !ms || !id) return FROM_THE_BEGINNING
  return { from: from || null, to, after: { startedAt: new Date(Number(ms)).toISOString(), id } }
}

/** Whether PostgreSQL accepts the string as a pg_snapshot: xmin:xmax:ids in progress, in ascending order. */
function isSnapshot(text: string): boolean {
  const [, low, high, open] = /^([1-9]\d{0,17}):([1-9]\d{0,17}):((?:\d{1,18},)*\d{1,18})?$/.exec(text) ?? []
  if (!low || !high) return false
  const numbers = [low, ...(open?.split(',') ?? []), high].map(BigInt)
  return numbers.every(
    (number, at) => at === 0 || number > numbers[at - 1]! || (at === 1 && number === numbers[0]),
  )
}

type ChangeRow = {
  upTo: string
  status: string
  startedAt: Date | null
  completedAt: Date | null
  errorMessage: string | null
  cancelRequested: boolean
  fresh: boolean
  visible: boolean
  nodes: Omit<NodeChange, 'durationMs'>[]
}

function readNode(row: Omit<NodeChange, 'durationMs'>, hidden: boolean): NodeChange {
  const startedAt = new Date(row.startedAt)
  const completedAt = row.completedAt === null ? null : new Date(row.completedAt)
  return {
    ...row,
    nodeId: graphNodeId(row.nodeId),
    ...(hidden ? { handle: null, errorMessage: null } : showHandles(row.handle)),
    startedAt: startedAt.toISOString(),
    completedAt: completedAt?.toISOString() ?? null,
    durationMs: durationOf(startedAt, completedAt),
    nextAttemptAt: row.nextAttemptAt === null ? null : new Date(row.nextAttemptAt).toISOString(),
    waitingUntil: row.waitingUntil === null ? null : new Date(row.waitingUntil).toISOString(),
  }
}
