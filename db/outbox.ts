import { sql } from 'kysely'
import type { Db } from './connection.ts'
import type { Store, Tx } from './scope.ts'

/**
 * What Temporal shall do: with an execution's run, whose id is the subject. SIGNAL tells the run that what `key`
 * (nodeId#iteration) waits for may be there. SCHEDULE makes the schedules of the workflow that is the subject what
 * its row says; a trigger of the database queues it. ERROR starts the error workflow of the failed run that is the subject.
 */
export type ErrandKind = 'START' | 'CANCEL' | 'DELETE' | 'SIGNAL' | 'SCHEDULE' | 'ERROR'

/** So many times what it wants a taker looks at, where others take too. */
const ELSEWHERE = 4

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

/**
 * Takes up to `limit` due errands for `leaseMs`: of each team in turn its oldest, so that thousands of one do not hold
 * up the others'. A taker that dies leaves them to the next one.
 */
export async function claimErrands(
  store: Store,
  limit: number,
  leaseMs: number,
): Promise<(Errand & { attempts: number })[]> {
  const taken = await sql<Errand & { attempts: number; id: number }>`
    with recursive teams as (
      (select team_id from outbox order by team_id limit 1)
      union all
      select (select o.team_id from outbox o where o.team_id > t.team_id order by o.team_id limit 1)
      from teams t where t.team_id is not null),
    due as (
      select o.id, o.due_at, row_number() over (partition by t.team_id order by o.due_at, o.id) as turn
      from teams t cross join lateral (
        select id, due_at from outbox where team_id = t.team_id and due_at <= now()
        order by due_at, id limit ${limit * ELSEWHERE}) o),
    -- Some of them others take at this moment.
    next as materialized (select id, turn, due_at from due order by turn, due_at, id limit ${limit * ELSEWHERE}),
    chosen as materialized (
      select o.id from next join outbox o using (id) where o.due_at <= now()
      order by next.turn, next.due_at, o.id limit ${limit} for update of o skip locked)
    update outbox o set attempts = o.attempts + 1, due_at = now() + ${leaseMs} * interval '1 millisecond'
    from chosen where o.id = chosen.id
    returning o.id, o.kind, o.subject_id, o.key, o.attempts`.execute(store.db)
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
export function markStarted(store: Store, executionId: string): Promise<Marked | null> {
  const marked = mark(store, executionId)
  const known: Marks = marks.get(store.db) ?? new Map()
  marks.set(store.db, known)
  known.set(executionId, marked)
  if (known.size > MAX_MARKS) known.delete(known.keys().next().value!)
  return marked
}

/**
 * Whether this process marks the run as RUNNING, or just did: it had not ended before it began then, and from there on
 * only Temporal ends it. Asked once; false says nothing.
 */
export async function hasBegun(store: Store, executionId: string): Promise<boolean> {
  const known = marks.get(store.db)
  const marked = known?.get(executionId)
  known?.delete(executionId)
  return (await marked?.catch(() => null))?.status === 'RUNNING'
}

type Marked = { status: string; settled: boolean }
type Marks = Map<string, Promise<Marked | null>>

const MAX_MARKS = 1_000
const marks = new WeakMap<Db, Marks>()

async function mark(store: Store, executionId: string): Promise<Marked | null> {
  // Locked first: while another is at the row, the statement's own snapshot is older than what then stands.
  const marked = await sql<Marked>`
    with held as (select id, status from executions where id = ${executionId} for no key update),
    started as (
      update executions set status = 'RUNNING', started_at = coalesce(started_at, now()), checked_at = now()
      from held where executions.id = held.id and held.status = 'PENDING' returning executions.status),
    done as (delete from outbox where subject_id = ${executionId} and kind = 'START' returning id)
    select coalesce((select status from started), status) as status, exists (select from done) as settled
    from held`.execute(store.db)
  return marked.rows[0] ?? null
}
