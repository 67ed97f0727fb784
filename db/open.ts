import { sql } from 'kysely'
import type { Store } from './scope.ts'
import { cleanText } from './text.ts'

/** A running execution, and how far its history has been read. */
export type Unchecked = { id: string; runId: string | null; lastEventId: number }

/** Takes up to `limit` running executions that nobody has looked at for a while, and marks them looked at. */
export async function takeUnchecked(store: Store, limit: number, seconds: number): Promise<Unchecked[]> {
  const taken = await sql<Unchecked>`
    update executions set checked_at = now() where id in (
      select id from executions
      where status in ('PENDING', 'RUNNING') and status = 'RUNNING'
        and checked_at < now() - ${seconds} * interval '1 second'
      order by checked_at limit ${limit} for update skip locked)
    returning id, run_id, last_event_id`.execute(store.db)
  return taken.rows
}

/** Which of these executions are running by our rows; ids that are no UUIDs are none of ours. */
export async function filterOpen(store: Store, ids: string[]): Promise<string[]> {
  const uuids = ids.filter((id) => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(id))
  if (uuids.length === 0) return []
  const open = await sql<{ id: string }>`
    select id from executions where id = any(${uuids}::uuid[]) and status = 'RUNNING'`.execute(store.db)
  return open.rows.map((row) => row.id)
}

/** How a run came and went. */
export type Ended = { status: string; trigger: string }

/** Ends an execution whose run is gone from Temporal, with whatever was open in it; null where it had ended. */
export async function failLostRun(store: Store, executionId: string, message: string): Promise<Ended | null> {
  const ended = await sql<Ended>`
    with ended as (
      update executions set completed_at = now(), error_message = ${message},
        status = case when cancel_requested_at is null then 'FAILED' else 'CANCELLED' end
      where id = ${executionId} and status = 'RUNNING' returning id, status, trigger),
    open as (
      update node_executions n set status = 'CANCELLED', completed_at = now(), settled = true
      from ended where n.execution_id = ended.id and n.status = 'RUNNING')
    select status, trigger from ended`.execute(store.db)
  return ended.rows[0] ?? null
}

/** Shows on a running execution that its workflow code cannot go on. */
export async function noteStuck(store: Store, executionId: string, message: string): Promise<void> {
  await sql`update executions set error_message = ${cleanText(message)}
    where id = ${executionId} and status = 'RUNNING'`.execute(store.db)
}

/** Ends an accepted execution that can never start, say because its version names a type that is gone; null where it is PENDING no more. */
export async function failUnstartable(
  store: Store,
  executionId: string,
  message: string,
): Promise<Ended | null> {
  const ended = await sql<Ended>`
    with done as (delete from outbox where subject_id = ${executionId} and kind = 'START')
    update executions set status = 'FAILED', error_message = ${cleanText(message)}, started_at = now(),
      completed_at = now()
    where id = ${executionId} and status = 'PENDING' returning status, trigger`.execute(store.db)
  return ended.rows[0] ?? null
}
