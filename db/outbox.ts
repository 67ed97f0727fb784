import { sql } from 'kysely'
import { LRUCache } from 'lru-cache'
import { perDatabase } from './cache.ts'
import { write } from './change.ts'
import type { Tx } from './connection.ts'
import { createBatches } from './operation/batches.ts'
import { claim, later, selectByTurns } from './queue.ts'
import type { Store } from './scope.ts'

/**
 * What Temporal must do. The subject is an execution, except for SCHEDULE. SIGNAL nudges its run: what `key`
 * (nodeId#iteration) waits for may be there. ERROR starts the error workflow of the failed execution.
 * SCHEDULE makes the schedules of a workflow agree with its row, and is queued by a trigger of the database.
 */
export const ERRAND_KINDS = ['START', 'CANCEL', 'DELETE', 'SIGNAL', 'SCHEDULE', 'ERROR'] as const
export type ErrandKind = (typeof ERRAND_KINDS)[number]

/** A claim looks at this many times its limit, since other processes may be claiming some of the errands. */
const OVERSCAN = 4

/** `key` is '' if the errand concerns its whole subject. */
export type Errand = { kind: ErrandKind; subjectId: string; key: string }

/**
 * Queues, in the caller's transaction, what Temporal must do; an errand that is queued already is not added
 * again. The caller carries it out right after the commit, and the sweeper if that fails.
 */
export async function enqueue(tx: Tx, kind: ErrandKind, subjectIds: string[], key = ''): Promise<void> {
  if (subjectIds.length === 0) return
  await sql`insert into outbox (kind, subject_id, key)
    select ${kind}, unnest(${subjectIds}::uuid[]), ${key} on conflict (subject_id, kind, key) do nothing`.execute(
    tx,
  )
}

/**
 * Errands are carried out in two lanes. Deleting a run takes longest and is least urgent: the thousands of a deleted
 * workflow must not stand before the starts and signals of its own team. Each lane has its own index.
 */
const OUTBOX = { table: 'outbox', id: 'id', due: 'due_at', tries: 'attempts' }
const LANES = {
  urgent: { ...OUTBOX, open: sql`q.kind <> 'DELETE'` },
  deletes: { ...OUTBOX, open: sql`q.kind = 'DELETE'` },
}
export type ErrandLane = keyof typeof LANES

/**
 * Claims up to `limit` due errands of a lane for `leaseMs`. The teams take turns, each with its oldest errand, so
 * that thousands of one team do not delay the others. If the process dies, its errands are due again when the
 * lease ends.
 */
export async function claimErrands(
  store: Store,
  lane: ErrandLane,
  limit: number,
  leaseMs: number,
): Promise<(Errand & { attempts: number })[]> {
  const queue = LANES[lane]
  // Other processes may be claiming some of those that are looked at.
  const lookedAt = limit * OVERSCAN
  const chosen = selectByTurns(queue, { limit, ofTeam: lookedAt, lookedAt })
  const taken = await write(store, (tx) =>
    claim<Errand & { attempts: number; id: number }>(tx, queue, {
      chosen,
      leaseMs,
      returning: sql`id, kind, subject_id, key, attempts`,
    }),
  )
  return taken.sort((a, b) => a.id - b.id)
}

/**
 * Removes an errand that is done. Returns whether it was still there: true for only one of several callers.
 */
export async function settleErrand(store: Store, { kind, subjectId, key }: Errand): Promise<boolean> {
  const settled = await write(store, (tx) =>
    tx
      .deleteFrom('outbox')
      .where('subjectId', '=', subjectId)
      .where('kind', '=', kind)
      .where('key', '=', key)
      .executeTakeFirst(),
  )
  return settled.numDeletedRows > 0n
}

/** Makes an errand that failed, or that needs a second pass, due again after `delayMs`. */
export async function postponeErrand(
  store: Store,
  { kind, subjectId, key }: Errand,
  delayMs: number,
  error: string | null,
): Promise<void> {
  await write(store, (tx) =>
    sql`update outbox set due_at = ${later(delayMs)}, last_error = ${error}
    where subject_id = ${subjectId} and kind = ${kind} and key = ${key}`.execute(tx),
  )
}

/**
 * Temporal has accepted the start: one statement changes PENDING to RUNNING by compare-and-set and removes the errand,
 * for all executions that start at the same time. Resolves to the status after it, or null if the execution has been
 * deleted; `settled` is true for only one of several callers. `agoMs`: how long ago Temporal accepted it.
 */
export function markStarted(store: Store, executionId: string, agoMs = 0): Promise<Marked | null> {
  const marked = mark(store, { id: executionId, agoMs })
  marksOf(store.db).set(executionId, marked)
  return marked
}

/** A run that begins later than this may have been cancelled before. */
const EXPECTED_MS = 1_000

/**
 * Takes an execution as just started that is not marked yet: its caller waits for its end, which may be stored before
 * anyone could read that it is RUNNING. It is to be marked soon, or its end is.
 */
export function expectStarted(store: Store, executionId: string): void {
  marksOf(store.db).set(executionId, Promise.resolve({ status: 'RUNNING' }), { ttl: EXPECTED_MS })
}

/** Its run does not begin here at once, so that it may be cancelled before. */
export function expectNoMore(store: Store, executionId: string): void {
  marksOf(store.db).delete(executionId)
}

/**
 * Whether this process is marking the execution as RUNNING, or just did. If so, it had not ended before its
 * run began, and from then on only Temporal ends it. Only the first call can return true; false means
 * nothing.
 */
export async function wasJustStarted(store: Store, executionId: string): Promise<boolean> {
  const marks = marksOf(store.db)
  const marked = marks.get(executionId)
  marks.delete(executionId)
  return (await marked?.catch(() => null))?.status === 'RUNNING'
}

const MOST_MARKS = 100

const SINCE = sql`started_at = coalesce(executions.started_at, now() - ago * interval '1 millisecond')`

/** The status and the trigger of an execution, and whether its START errand was removed. */
type Marked = { status: string; trigger: string; settled: boolean }

type Mark = { id: string; agoMs: number }

const marksOf = perDatabase(
  () => new LRUCache<string, Promise<Pick<Marked, 'status'> | null>>({ max: 1_000 }),
)

/** Starts that are under way at the same time are marked by one statement. */
const marksInTurn = perDatabase((db) =>
  createBatches((_key, marks: Mark[]) => markAll({ db }, marks), MOST_MARKS),
)

async function mark(store: Store, one: Mark): Promise<Marked | null> {
  return (await marksInTurn(store.db)('', one)) ?? markAlone(store, one)
}

/**
 * Marks executions whose rows are free. Null for those whose rows another transaction is changing, and for deleted
 * ones: an execution must not wait for a lock that concerns another one.
 */
async function markAll(store: Pick<Store, 'db'>, marks: Mark[]): Promise<(Marked | null)[]> {
  const ids = marks.map(({ id }) => id)
  const { rows } = await write(store, (tx) =>
    sql<Marked & { id: string }>`
    with held as (
      select id, status, trigger from executions where id = any(${ids}::uuid[])
      order by id for no key update skip locked),
    begun as (
      select id, max(ago) as ago from unnest(${ids}::uuid[], ${marks.map(({ agoMs }) => agoMs)}::float8[]) as m (id, ago)
      group by id),
    started as (
      update executions set status = 'RUNNING', ${SINCE}, checked_at = now()
      from held join begun using (id) where executions.id = held.id and held.status = 'PENDING' returning executions.id),
    done as (
      delete from outbox using held where subject_id = held.id and kind = 'START' returning subject_id)
    select id, trigger, case when id in (select id from started) then 'RUNNING' else status end as status,
      id in (select subject_id from done) as settled
    from held`.execute(tx),
  )
  const found = new Map(rows.map(({ id, ...marked }) => [id, marked]))
  // If there are several calls for one execution, the first one settles its errand.
  return ids.map((id, at) => {
    const marked = found.get(id)
    return marked ? { ...marked, settled: marked.settled && ids.indexOf(id) === at } : null
  })
}

async function markAlone(store: Store, { id, agoMs }: Mark): Promise<Marked | null> {
  // Locks the row first: if another transaction is changing it, the statement's snapshot is older than the status it
  // finds.
  const marked = await write(store, (tx) =>
    sql<Marked>`
    with held as (
      select id, status, trigger, ${agoMs}::float8 as ago from executions where id = ${id} for no key update),
    started as (
      update executions set status = 'RUNNING', ${SINCE}, checked_at = now()
      from held where executions.id = held.id and held.status = 'PENDING' returning executions.status),
    done as (delete from outbox where subject_id = ${id} and kind = 'START' returning id)
    select coalesce((select status from started), status) as status, trigger, exists (select from done) as settled
    from held`.execute(tx),
  )
  return marked.rows[0] ?? null
}
