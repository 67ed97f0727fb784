import { sql } from 'kysely'
import { write } from '../change.ts'
import type { Store } from '../scope.ts'
import { cleanText } from '../text.ts'

/** A running execution, with its Temporal run and the last event of it that the projection has read. */
export type Unchecked = { id: string; runId: string | null; lastEventId: number }

/** Claims up to `limit` running executions that nobody has checked for `seconds`, and marks them checked. */
export async function claimUnchecked(store: Store, limit: number, seconds: number): Promise<Unchecked[]> {
  const taken = await write(store, (tx) =>
    sql<Unchecked>`
    update executions set checked_at = now() where id in (
      select id from executions
      where status in ('PENDING', 'RUNNING') and status = 'RUNNING'
        and checked_at < now() - ${seconds} * interval '1 second'
      order by checked_at limit ${limit} for update skip locked)
    returning id, run_id, last_event_id`.execute(tx),
  )
  return taken.rows
}

/** Those of the executions whose rows say RUNNING. Ids that are not UUIDs are not ours, and are left out. */
export async function filterRunning(store: Store, ids: string[]): Promise<string[]> {
  const uuids = ids.filter((id) => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(id))
  if (uuids.length === 0) return []
  const open = await sql<{ id: string }>`
    select id from executions where id = any(${uuids}::uuid[]) and status = 'RUNNING'`.execute(store.db)
  return open.rows.map((row) => row.id)
}

/** How an execution was started and how it ended. */
export type EndedExecution = { status: string; trigger: string }

/** Ends an execution whose Temporal run is gone, and its open node records. Null if it was not RUNNING. */
export async function failLostExecution(
  store: Store,
  executionId: string,
  message: string,
): Promise<EndedExecution | null> {
  const ended = await write(store, (tx) =>
    sql<EndedExecution>`
    with ended as (
      update executions set completed_at = now(), error_message = ${message},
        status = case when cancel_requested_at is null then 'FAILED' else 'CANCELLED' end
      where id = ${executionId} and status = 'RUNNING' returning id, status, trigger),
    open as (
      update node_executions n set status = 'CANCELLED', completed_at = now(), settled = true
      from ended where n.execution_id = ended.id and n.status = 'RUNNING')
    select status, trigger from ended`.execute(tx),
  )
  return ended.rows[0] ?? null
}

/** Sets the error message of a running execution whose run cannot go on because its workflow code fails. */
export async function noteStuck(store: Store, executionId: string, message: string): Promise<void> {
  await write(store, (tx) =>
    sql`update executions set error_message = ${cleanText(message)}
    where id = ${executionId} and status = 'RUNNING'`.execute(tx),
  )
}

/**
 * Ends an accepted execution that can never start, for example because its version has a node type that no
 * longer exists. Null if it is no longer PENDING.
 */
export async function failUnstartable(
  store: Store,
  executionId: string,
  message: string,
): Promise<EndedExecution | null> {
  const ended = await write(store, (tx) =>
    sql<EndedExecution>`
    with done as (delete from outbox where subject_id = ${executionId} and kind = 'START')
    update executions set status = 'FAILED', error_message = ${cleanText(message)}, started_at = now(),
      completed_at = now()
    where id = ${executionId} and status = 'PENDING' returning status, trigger`.execute(tx),
  )
  return ended.rows[0] ?? null
}
