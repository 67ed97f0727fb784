import { type RawBuilder, sql } from 'kysely'
import { write } from '../../change.ts'
import type { Store } from '../../scope.ts'
import { cleanText } from '../../text.ts'
import { cutPieces, type RecordRow } from '../projection/pieces.ts'
import { type ExecutionStatus, isEnded } from '../status.ts'
import type { Projection } from './projection.ts'

/** What the execution's row says after a projection was written. `begun`: its end is also the first that is written of its start. */
export type SavedExecution = {
  status: ExecutionStatus
  trigger: string
  traceparent: string | null
  begun: boolean
}

export type SaveOptions = { values: boolean; again?: boolean }

/** An execution's row as a projection tells it, with the records that are written in the same statement. */
export type Entry = {
  executionId: string
  projection: Omit<Projection, 'nodes'>
  rows: RecordRow[]
  again: boolean
}

/** Writes an entry; null if it was refused. */
export type EntryWriter = (entry: Entry) => Promise<SavedExecution | null>

/**
 * Writes a projection, in statements of bounded size: the last one writes the execution's row too. That one is
 * guarded by (position in the chain, last event), so that two projectors may project the same execution. An
 * ended row never opens again. An execution whose cancel request was accepted ends CANCELLED, whatever else
 * happened at the same time; one that was cancelled before any node began stays as it is. Returns what the row
 * then says, or null if this projection was not newer: only one of several projectors gets the end of an
 * execution. `values: false` leaves outputs out; `again` also writes a projection of the same position anew,
 * but never an older one.
 */
export async function saveProjection(
  store: Store,
  executionId: string,
  projection: Projection,
  options: SaveOptions,
  writeLast: EntryWriter = (entry) => writeEntry(store, entry),
): Promise<SavedExecution | null> {
  const { nodes, ...rest } = projection
  const pieces = cutPieces(executionId, nodes, options.values)
  let rows = pieces.next().value ?? []
  for (const next of pieces) {
    if (!(await saveRecords(store, executionId, rows))) return null
    rows = next
  }
  return writeLast({ executionId, projection: rest, rows, again: options.again === true })
}

/**
 * Writes the settled ones of a projection's records, whatever position the execution's row has: they are final, so any
 * process may write them at any time. False if the execution is deleted.
 */
export async function saveSettled(
  store: Store,
  executionId: string,
  { nodes }: Projection,
  options: SaveOptions,
): Promise<boolean> {
  const settled = nodes.filter(({ status }) => status !== 'RUNNING')
  for (const rows of cutPieces(executionId, settled, options.values))
    if (!(await saveRecords(store, executionId, rows))) return false
  return true
}

/**
 * Writes records without the execution's row. The lock keeps the execution from ending meanwhile: then no open
 * record may be added, and outputs that are not kept are removed.
 */
async function saveRecords(store: Store, executionId: string, rows: RecordRow[]): Promise<boolean> {
  const found = await write(store, (tx) =>
    sql`
    with held as (
      select id, status, parent_id, detached, trigger_node_id, keep_inputs, keep_outputs
      from executions where id = ${executionId} for share),
    guard as (
      select id, trigger_node_id, keep_inputs, status in ('PENDING', 'RUNNING') as open,
        keep_outputs or is_awaited(id, parent_id, detached) as keep_outputs from held),
    saved as (${upsert(rows)})
    select id from guard`.execute(tx),
  )
  return found.rows.length > 0
}

/** Writes an execution's row and records in one statement. */
export async function writeEntry(store: Store, entry: Entry): Promise<SavedExecution | null> {
  const { executionId, again, projection } = entry
  // This may start others at the gate (trigger executions_ended) whose rows are locked: then `write` tries again.
  const saved = await write(store, (tx) =>
    sql<SavedExecution>`
    with told as (select ${executionId}::uuid as id, ${projection.status} as new_status,
      ${cleanMessage(projection)}::text as message, ${time(projection.startedAt)}::timestamptz as began_at,
      ${time(projection.completedAt)}::timestamptz as ended_at, ${projection.position}::int as position,
      ${projection.runId} as run, ${projection.lastEventId}::int as event, ${projection.recordCount}::int as records,
      ${projection.since?.position ?? 0}::int as since_position, ${projection.since?.lastEventId ?? 0}::int as since_event,
      ${isEnded(projection.status)}::boolean as ended, ${projection.began}::boolean as began, ${again}::boolean as again),
    guard as (${updateExecutions(sql`true`)}),
    saved as (${upsert(entry.rows)}),
    begun as (${removeStarts()})
    select status, trigger, traceparent, exists (select from begun) as begun from guard`.execute(tx),
  )
  return saved.rows[0] ?? null
}

/**
 * Writes several entries in one statement; those that it returns nothing of were refused, wait for another transaction that
 * holds their row, or wait at a gate: its lock must not be held together with that of another gate. Rows are locked in the order of their ids, so
 * that two such statements cannot deadlock.
 */
export async function writeEntries(store: Store, entries: Entry[]): Promise<Map<string, SavedExecution>> {
  const of = <T>(read: (projection: Entry['projection']) => T) =>
    entries.map(({ projection }) => read(projection))
  const ids = entries.map(({ executionId }) => executionId)
  const saved = await write(store, (tx) =>
    sql<SavedExecution & { id: string }>`
    with held as materialized (
      select id from executions where id = any(${ids}::uuid[]) order by id for no key update skip locked),
    told as (select t.* from held join unnest(
      ${ids}::uuid[], ${of(({ status }) => status)}::text[], ${of(cleanMessage)}::text[],
      ${of(({ startedAt }) => time(startedAt))}::timestamptz[],
      ${of(({ completedAt }) => time(completedAt))}::timestamptz[], ${of(({ position }) => position)}::int[],
      ${of(({ runId }) => runId)}::text[], ${of(({ lastEventId }) => lastEventId)}::int[],
      ${of(({ recordCount }) => recordCount)}::int[], ${of(({ since }) => since?.position ?? 0)}::int[],
      ${of(({ since }) => since?.lastEventId ?? 0)}::int[], ${of(({ status }) => isEnded(status))}::boolean[],
      ${of(({ began }) => began)}::boolean[], ${entries.map(({ again }) => again)}::boolean[])
      as t(id, new_status, message, began_at, ended_at, position, run, event, records, since_position,
        since_event, ended, began, again) using (id)),
    guard as (${updateExecutions(sql`e.gate_id is null`)}),
    saved as (${upsert(entries.flatMap(({ rows }) => rows))}),
    begun as (${removeStarts()})
    select id, status, trigger, traceparent, id in (select subject_id from begun) as begun from guard`.execute(
      tx,
    ),
  )
  return new Map(saved.rows.map(({ id, ...row }) => [id, row]))
}

/** Removes the START errands of executions that have ended, since a run cannot have ended without a start. */
function removeStarts() {
  return sql`
    delete from outbox b using guard g
    where b.subject_id = g.id and b.kind = 'START' and g.status not in ('PENDING', 'RUNNING') returning b.subject_id`
}

/** Updates the executions that `told` tells of, if it knows more than their rows. */
function updateExecutions(where: RawBuilder<unknown>) {
  const cancelled = 'The execution was cancelled'
  return sql`
    update executions e set
      status = case when t.ended and cancel_requested_at is not null then 'CANCELLED' else t.new_status end,
      error_message = case when t.ended and cancel_requested_at is not null
        then coalesce(cancel_reason, ${cancelled}) else t.message end,
      started_at = t.began_at, completed_at = t.ended_at, run_position = t.position, run_id = t.run,
      last_event_id = t.event, record_count = t.records, projection_failures = 0, checked_at = now()
    from told t
    where e.id = t.id and ${where}
      and ((e.run_position, e.last_event_id) < (t.position, t.event)
        or t.again and (e.run_position, e.last_event_id) = (t.position, t.event))
      -- Rows may have been restored to an older state: then what came before would be missing.
      and (e.run_position, e.last_event_id) >= (t.since_position, t.since_event)
      and (t.ended or e.status in ('PENDING', 'RUNNING'))
      and (t.began or e.status <> 'CANCELLED')
    returning e.id, e.status, e.trigger, e.traceparent, e.trigger_node_id, e.keep_inputs, true as open,
      e.keep_outputs or is_awaited(e.id, e.parent_id, e.detached) as keep_outputs`
}

/**
 * Writes records of the executions that `guard` has. A record that is settled never opens again, and one that
 * would not change is not written.
 */
function upsert(rows: RecordRow[]) {
  const of = <K extends keyof RecordRow>(key: K) => rows.map((row) => row[key])
  const retries = sql`case when excluded.status in ('SUCCESS', 'FAILED') then excluded.retry_count
    else greatest(n.retry_count, excluded.retry_count) end`
  // While a node retries, only its attempts know why the last one failed.
  const message = sql`case when excluded.settled then excluded.error_message
    else coalesce(excluded.error_message, n.error_message) end`
  return sql`
    insert into node_executions as n
      (id, execution_id, node_id, iteration, node_name, node_type, status, started_at, completed_at,
       output, handle, error_message, retry_count, settled, position, loop, given_by, notes, step, tool,
       agent, waiting_until, item_count)
    select r.id, r.execution_id, r.node_id, r.iteration, r.node_name, r.node_type, r.status, r.started_at,
      r.completed_at,
      -- Outputs that are not kept are stored while somebody waits for them. The trigger's output is the input.
      case when keep_outputs and (keep_inputs or r.node_id <> trigger_node_id) then r.output::json end,
      r.handle, r.error_message, r.retry_count, r.status <> 'RUNNING', r.position,
      case when keep_outputs then r.loop::json end, r.given_by, case when keep_outputs then r.notes::json end,
      r.step, r.tool, case when keep_inputs and keep_outputs then r.agent::json end, r.waiting_until, r.item_count
    from guard join unnest(
      ${of('id')}::uuid[], ${of('executionId')}::uuid[], ${of('nodeId')}::text[], ${of('iteration')}::text[],
      ${of('nodeName')}::text[], ${of('nodeType')}::text[], ${of('status')}::text[],
      ${of('startedAt')}::timestamptz[], ${of('completedAt')}::timestamptz[], ${of('output')}::text[],
      ${of('handle')}::text[], ${of('errorMessage')}::text[], ${of('retryCount')}::int[],
      ${of('position')}::int[], ${of('loop')}::text[], ${of('givenBy')}::text[],
      ${of('notes')}::text[], ${of('step')}::int[], ${of('tool')}::text[], ${of('agent')}::text[],
      ${of('waitingUntil')}::timestamptz[], ${of('itemCount')}::int[]
    ) as r(id, execution_id, node_id, iteration, node_name, node_type, status, started_at, completed_at,
           output, handle, error_message, retry_count, position, loop, given_by, notes, step, tool, agent,
           waiting_until, item_count) on r.execution_id = guard.id
    where open or r.status <> 'RUNNING'
    -- Attempts are written in the same order, so that the two cannot deadlock.
    order by r.id
    on conflict (execution_id, node_id, iteration) do update set
      status = excluded.status, started_at = excluded.started_at, completed_at = excluded.completed_at,
      output = excluded.output, handle = excluded.handle, error_message = ${message},
      retry_count = ${retries}, settled = excluded.settled, position = excluded.position,
      loop = excluded.loop, given_by = excluded.given_by, notes = excluded.notes, step = excluded.step,
      tool = excluded.tool, agent = excluded.agent, waiting_until = excluded.waiting_until,
      item_count = excluded.item_count
    where (excluded.settled or not n.settled)
      and (n.status, n.started_at, n.completed_at, n.output::text, n.handle, n.error_message, n.retry_count,
        n.settled, n.position, n.loop::text, n.given_by, n.notes::text, n.tool, n.agent::text,
        n.waiting_until, n.item_count)
      is distinct from (excluded.status, excluded.started_at, excluded.completed_at, excluded.output::text,
        excluded.handle, ${message}, ${retries}, excluded.settled, excluded.position,
        excluded.loop::text, excluded.given_by, excluded.notes::text, excluded.tool, excluded.agent::text,
        excluded.waiting_until, excluded.item_count)`
}

/** How far an execution's row is; null if it is deleted. */
export async function readPosition(store: Store, executionId: string) {
  const row = await store.db
    .selectFrom('executions')
    .select(['status', 'runPosition', 'lastEventId'])
    .where('id', '=', executionId)
    .executeTakeFirst()
  return row ?? null
}

/** Notes that a projection could not be stored. Returns how often in a row this has happened. */
export async function countProjectionFailure(store: Store, executionId: string): Promise<number> {
  const counted = await write(store, (tx) =>
    sql<{ projectionFailures: number }>`
    update executions set projection_failures = projection_failures + 1 where id = ${executionId}
    returning projection_failures`.execute(tx),
  )
  return counted.rows[0]?.projectionFailures ?? 0
}

function cleanMessage({ errorMessage }: Pick<Projection, 'errorMessage'>): string | null {
  return errorMessage === null ? null : cleanText(errorMessage)
}

function time(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}
