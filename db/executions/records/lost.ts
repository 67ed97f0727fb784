import { sql } from 'kysely'
import { write } from '../../change.ts'
import { selectFree } from '../../queue.ts'
import type { Store } from '../../scope.ts'
import { cleanText } from '../../text.ts'

/** A running execution, with its Temporal run and the last event of it that the projection has read. */
export type Unchecked = {
  id: string
  teamId: string
  runId: string | null
  lastEventId: number
  createdAt: Date
  isCancelled: boolean
  /** How long its own time limit has been over; null if it has none. */
  overdueMs: number | null
}

/** A check that found nothing new doubles the time to the next one, from 20 seconds up to 11 minutes. */
const CHECK_SECONDS = 20
const MAX_DOUBLINGS = 5

/** When a check is tried again that failed itself, for example because Temporal could not be reached. */
const AGAIN_SECONDS = 10

/** Claims up to `limit` running executions whose check is due. No other process checks them for 20 seconds. */
export async function claimUnchecked(store: Store, limit: number): Promise<Unchecked[]> {
  const due = selectFree('executions', {
    which: sql`q.status in ('PENDING', 'RUNNING') and q.status = 'RUNNING'
      and q.checked_at < now() - ${CHECK_SECONDS} * interval '1 second'`,
    order: sql`q.checked_at`,
    limit,
  })
  const taken = await write(store, (tx) =>
    sql<Unchecked>`
    update executions set checked_at = now() where id = any(array(${due}))
    returning id, team_id, run_id, last_event_id, created_at, cancel_requested_at is not null as is_cancelled,
      extract(epoch from now() - started_at)::float8 * 1000 - timeout_ms as overdue_ms`.execute(tx),
  )
  return taken.rows
}

/** What a check of a run found: it only waits, something is new, or the check itself failed. */
export type CheckResult = 'quiet' | 'news' | 'failed'

/**
 * Notes what checks found, in one statement: a run that only waits is checked ever more rarely, but in time for
 * its own time limit; all others come again soon.
 */
export async function noteChecks(store: Store, results: Map<string, CheckResult>): Promise<void> {
  if (results.size === 0) return
  await write(store, (tx) =>
    sql`
    with found as (
      -- In the order of the ids, so that two processes cannot deadlock.
      select e.id, r.result, least(e.quiet_checks + 1, ${MAX_DOUBLINGS}::int) as quiet
      from executions e join unnest(${[...results.keys()]}::uuid[], ${[...results.values()]}::text[]) as r (id, result)
        using (id)
      where e.status = 'RUNNING' order by e.id for no key update of e)
    update executions e set
      quiet_checks = case result when 'quiet' then quiet when 'news' then 0 else quiet_checks end,
      checked_at = case result
        when 'quiet' then least(now() + ${CHECK_SECONDS}::int * (power(2, quiet) - 1) * interval '1 second',
          case when timeout_ms is not null
            then greatest(now(), started_at + timeout_ms * interval '1 millisecond') end)
        when 'failed' then now() - ${CHECK_SECONDS - AGAIN_SECONDS} * interval '1 second'
        else checked_at end,
      missing_since = case when result = 'failed' then missing_since end,
      missing_checks = case when result = 'failed' then missing_checks else 0 end
    from found where e.id = found.id`.execute(tx),
  )
}

/** How often and for how long checks have missed the run of an execution. */
export type Missing = { checks: number; forMs: number }

/** Notes that Temporal does not know the run of a running execution. The next check comes after `againMs`. */
export async function noteMissing(store: Store, executionId: string, againMs: number): Promise<Missing> {
  const noted = await write(store, (tx) =>
    sql<Missing>`
    update executions set missing_since = coalesce(missing_since, now()), missing_checks = missing_checks + 1,
      quiet_checks = 0,
      checked_at = now() + ${againMs - CHECK_SECONDS * 1_000} * interval '1 millisecond'
    where id = ${executionId} and status = 'RUNNING'
    returning missing_checks as checks, extract(epoch from now() - missing_since)::float8 * 1000 as for_ms`.execute(
      tx,
    ),
  )
  return noted.rows[0] ?? { checks: 0, forMs: 0 }
}

/** How many running executions there are whose runs Temporal did not know when they were last checked. */
export async function countMissing({ db }: Pick<Store, 'db'>): Promise<number> {
  const { rows } = await sql<{ n: number }>`
    select count(*) as n from executions where status = 'RUNNING' and missing_since is not null`.execute(db)
  return rows[0]?.n ?? 0
}

/**
 * Older executions of the same team that Temporal should know, up to five: if it knows none of them, it is not
 * the one that they ran in, or has lost its data.
 */
export async function findWitnesses({ db }: Store, { teamId, createdAt }: Unchecked): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select id from (
      select id, created_at, status, completed_at, run_id, missing_since from executions
      where team_id = ${teamId} and created_at < ${createdAt} order by created_at desc limit 1000) older
    where run_id is not null and missing_since is null
      and (status = 'RUNNING' or completed_at > now() - interval '1 day')
    order by created_at desc limit 5`.execute(db)
  return rows.map(({ id }) => id)
}

/** Those of the executions whose rows say RUNNING. Ids that are not UUIDs are not ours, and are left out. */
export async function filterRunning(store: Store, ids: string[]): Promise<string[]> {
  const uuids = ids.filter((id) => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(id))
  if (uuids.length === 0) return []
  const open = await sql<{ id: string }>`
    select id from executions where id = any(${uuids}::uuid[]) and status = 'RUNNING'`.execute(store.db)
  return open.rows.map((row) => row.id)
}

/** The error message of an execution whose run Temporal no longer knows. */
export const LOST_MESSAGE = 'Temporal no longer knows this execution'

/** How an execution was started and how it ended. */
export type EndedExecution = { status: string; trigger: string }

/** Ends an execution whose Temporal run is gone, and its open node records. Null if it was not RUNNING. */
export async function failLostExecution(store: Store, executionId: string): Promise<EndedExecution | null> {
  const ended = await write(store, (tx) =>
    sql<EndedExecution>`
    with ended as (
      update executions set completed_at = now(), error_message = ${LOST_MESSAGE}, missing_since = null,
        status = case when cancel_requested_at is null then 'FAILED' else 'CANCELLED' end
      where id = ${executionId} and status = 'RUNNING' returning id, status, trigger),
    open as (
      update node_executions n set status = 'CANCELLED', completed_at = now(), error_message = null, settled = true
      from ended where n.execution_id = ended.id and n.status = 'RUNNING')
    select status, trigger from ended`.execute(tx),
  )
  return ended.rows[0] ?? null
}

/**
 * Sets the error message of a running execution whose run cannot go on because its workflow code fails. Returns
 * whether it had none, so that this is reported only once.
 */
export async function noteStuck(store: Store, executionId: string, message: string): Promise<boolean> {
  const noted = await write(store, (tx) =>
    sql<{ isNew: boolean }>`
    update executions e set error_message = ${cleanText(message)}
    from (select id, error_message from executions where id = ${executionId} for no key update) old
    where e.id = old.id and e.status = 'RUNNING'
    returning old.error_message is null as is_new`.execute(tx),
  )
  return noted.rows[0]?.isNew ?? false
}

/** Notes why an execution whose cancel was accepted ends as it does, unless there is a reason already. */
export async function noteCancelReason(store: Store, executionId: string, reason: string): Promise<void> {
  await write(store, (tx) =>
    sql`update executions set cancel_reason = coalesce(cancel_reason, ${cleanText(reason)})
    where id = ${executionId} and status = 'RUNNING' and cancel_requested_at is not null`.execute(tx),
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
