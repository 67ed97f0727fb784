import { sql } from 'kysely'
import type { Store, Tx } from './scope.ts'

/**
 * What Temporal shall do: with an execution's run, whose id is the subject. SIGNAL tells the run that what `key`
 * (nodeId#iteration) waits for may be there. SCHEDULE makes the schedules of the workflow that is the subject what
 * its row says; a trigger of the database queues it. ERROR starts the error workflow of the failed run that is the subject.
 */
export type ErrandKind = 'START' | 'CANCEL' | 'DELETE' | 'SIGNAL' | 'SCHEDULE' | 'ERROR'

/** `key` is '' where the errand concerns all of its subject. */
export type Errand = { kind: ErrandKind; subjectId: string; key: string }

/**
 * Notes in the verb's own transaction what Temporal shall do; asking twice for the same is asking once. The
 * caller carries it out right after the commit; the sweeper does so where that failed.
 */
export async function enqueue(tx: Tx, kind: ErrandKind, subjectIds: string[], key = ''): Promise<void> {
  if (subjectIds.length === 0) return
  await sql`insert into outbox (kind, subject_id, key)
    select ${kind}, unnest(${subjectIds}::uuid[]), ${key} on conflict (subject_id, kind, key) do nothing`.execute(
    tx,
  )
}

/** Takes up to `limit` due errands for `leaseMs`, oldest first: a taker that dies leaves them to the next one. */
export async function claimErrands(
  store: Store,
  limit: number,
  leaseMs: number,
): Promise<(Errand & { attempts: number })[]> {
  const taken = await sql<Errand & { attempts: number; id: number }>`
    update outbox set attempts = attempts + 1, due_at = now() + ${leaseMs} * interval '1 millisecond'
    where id in (
      select id from outbox where due_at <= now() order by due_at, id limit ${limit} for update skip locked)
    returning id, kind, subject_id, key, attempts`.execute(store.db)
  return taken.rows.sort((a, b) => a.id - b.id)
}

/** The errand is done. Answers whether it still stood: of several that settle it, one is told so. */
export async function settleErrand(store: Store, { kind, subjectId, key }: Errand): Promise<boolean> {
  const settled = await store.db
    .deleteFrom('outbox')
    .where('subjectId', '=', subjectId)
    .where('kind', '=', kind)
    .where('key', '=', key)
    .executeTakeFirst()
  return settled.numDeletedRows > 0n
}

/** The errand failed, or wants a second pass: due again after `delayMs`. */
export async function postponeErrand(
  store: Store,
  { kind, subjectId, key }: Errand,
  delayMs: number,
  error: string | null,
): Promise<void> {
  await sql`update outbox set due_at = now() + ${delayMs} * interval '1 millisecond', last_error = ${error}
    where subject_id = ${subjectId} and kind = ${kind} and key = ${key}`.execute(store.db)
}

/**
 * Temporal took the start: PENDING becomes RUNNING by compare-and-set and the errand is done, in one statement.
 * Answers the status that then stands, or null where the execution was deleted meanwhile; `settled` is true for
 * one of those who mark it.
 */
export async function markStarted(
  store: Store,
  executionId: string,
): Promise<{ status: string; settled: boolean } | null> {
  const marked = await sql<{ status: string; settled: boolean }>`
    with done as (delete from outbox where subject_id = ${executionId} and kind = 'START' returning id),
    started as (
      update executions set status = 'RUNNING', started_at = coalesce(started_at, now()), checked_at = now()
      where id = ${executionId} and status = 'PENDING' returning status)
    select status, exists (select from done) as settled from (
      select status from started
      union all select status from executions where id = ${executionId} and status <> 'PENDING') s`.execute(
    store.db,
  )
  return marked.rows[0] ?? null
}
