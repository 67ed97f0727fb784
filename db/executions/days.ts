import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { record, write } from '../change.ts'
import { selectFree } from '../queue.ts'
import type { Store } from '../scope.ts'

/** How long to wait for the transactions that do not note their changes yet; if they take longer, the next round counts. */
const WAIT_MS = 10_000
const POLL_MS = 100

/**
 * Counts the executions of the days (UTC) that are over and not counted yet, for the totals of spans of time, and folds
 * what has changed in earlier days. Any number of processes may do so. Returns the number of days it counted.
 */
export async function countDays(store: Store, signal?: AbortSignal): Promise<number> {
  await foldChanges(store)
  await noteChanges(store)
  const until = performance.now() + WAIT_MS
  while (!(await allNote(store))) {
    if (signal?.aborted || performance.now() > until) return 0
    await pause(POLL_MS)
  }
  let days = 0
  while (!signal?.aborted && (await countDay(store))) days++
  return days
}

/**
 * From now on triggers note what changes in the days that are over. A transaction under way may have missed that:
 * `noted_since` is the first one that is sure to have begun later, read after this has been committed.
 */
async function noteChanges(store: Store): Promise<void> {
  await write(store, (tx) =>
    sql`
    update execution_days_kept k set noted_until = date_trunc('day', now(), 'UTC'), noted_since = null,
      counted_until = case when k.counted_until > '-infinity' then k.counted_until else least(
        date_trunc('day', now(), 'UTC'), date_trunc('day', (select min(oldest.created_at) from teams t,
          lateral (select created_at from executions where team_id = t.id order by created_at limit 1) oldest), 'UTC')) end
    where noted_until = counted_until and noted_until < date_trunc('day', now(), 'UTC')`.execute(tx),
  )
  await write(store, (tx) =>
    sql`update execution_days_kept set noted_since = pg_snapshot_xmax(pg_current_snapshot())
    where noted_since is null and counted_until < noted_until`.execute(tx),
  )
}

/** Whether every transaction that is under way notes its changes. */
async function allNote({ db }: Store): Promise<boolean> {
  const { rows } = await sql<{ all: boolean }>`
    select pg_snapshot_xmin(pg_current_snapshot()) >= noted_since or counted_until = noted_until as all
    from execution_days_kept`.execute(db)
  return rows[0]?.all ?? false
}

/**
 * Counts the next day, unless no day is due or another process counts it. The rows include the changes that the
 * triggers have noted, so those are subtracted: one statement reads both, as they are at the same moment.
 */
async function countDay(store: Store): Promise<boolean> {
  return record(store, async (tx) => {
    const { rows } = await sql<{ day: string }>`
      ${selectFree('execution_days_kept', {
        columns: sql`(q.counted_until at time zone 'UTC')::date::text as day`,
        which: sql`q.counted_until < q.noted_until`,
      })}`.execute(tx)
    const day = rows[0]?.day
    if (day === undefined) return false
    await sql`
      with found as materialized (
        select t.id as team_id, e.workflow_id, e.status, e.n from teams t cross join lateral (
          select workflow_id, status, count(*) as n from executions
          where team_id = t.id and created_at >= ${day}::date::timestamp at time zone 'UTC'
            and created_at < (${day}::date + 1)::timestamp at time zone 'UTC'
          group by 1, 2) e)
      insert into execution_days (owner_id, day, status, slot, n)
      select owner, ${day}::date, status, -1, sum(n) from (
        select team_id as owner, status, n from found
        union all select workflow_id, status, n from found
        union all select owner_id, status, -n from execution_days where day = ${day}::date
      ) counted group by 1, 2, 3 having sum(n) <> 0`.execute(tx)
    await sql`update execution_days_kept set counted_until = counted_until + interval '1 day'`.execute(tx)
    return true
  })
}

/** Adds what the triggers noted to the counted days, and removes days of which nothing is left. */
async function foldChanges(store: Store): Promise<void> {
  await write(store, (tx) =>
    sql`
    with taken as (
      delete from execution_days where slot >= 0 and day < (
        select (counted_until at time zone 'UTC')::date from execution_days_kept)
      returning owner_id, day, status, n)
    insert into execution_days as c (owner_id, day, status, slot, n)
    select owner_id, day, status, -1, sum(n) from taken group by 1, 2, 3 order by 1, 2, 3
    on conflict (owner_id, day, status, slot) do update set n = c.n + excluded.n`.execute(tx),
  )
  await write(store, (tx) => sql`delete from execution_days where slot = -1 and n = 0`.execute(tx))
}
