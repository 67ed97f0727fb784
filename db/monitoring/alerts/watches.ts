import { sql } from 'kysely'
import { write } from '../../change.ts'
import { claim, isDue, postpone, type Queue, selectFree } from '../../queue.ts'
import type { Store } from '../../scope.ts'

/** An hour of a team that this process evaluates: `claim` is the number by which it does. */
export type ClaimedWindow = {
  teamId: string
  claim: string
  from: Date
  to: Date
  /** How often it was begun, this time included. */
  attempts: number
}

/** The number of past hours that are evaluated if no process has done so for a while; older ones are left out. */
const MOST_WINDOWS = 24
/** How many teams begin or end to be watched in one statement. */
const AT_ONCE = 1_000

const IS_WATCHED = sql`(c.anomaly_detection_enabled or c.drift_alert_enabled or c.sentiment_tracking_enabled)`

/** As SQL: the time; by the database's clock, if none is given. */
const timeOf = (now: Date | undefined) => sql`coalesce(${now ?? null}::timestamptz, now())`

/** As SQL: the begin of the newest hour that has been over for a minute. */
const lastDue = (now: Date | undefined) =>
  sql`date_trunc('hour', ${timeOf(now)} - interval '1 minute', 'UTC') - interval '1 hour'`

/** Begins to watch the teams that want alerts, with the hour that ended last, and ends it for those that no longer do. */
export async function arrangeWatches(store: Store, now?: Date): Promise<void> {
  await write(store, (tx) =>
    sql`insert into alert_watches (team_id, next_from)
      select c.team_id, ${lastDue(now)} from monitoring_configs c where ${IS_WATCHED}
        and not exists (select from alert_watches w where w.team_id = c.team_id) limit ${AT_ONCE}
      on conflict do nothing`.execute(tx),
  )
  await write(store, (tx) =>
    sql`with ended as (
        ${selectFree('alert_watches', {
          columns: sql`q.team_id`,
          which: sql`not exists (select from monitoring_configs c where c.team_id = q.team_id and ${IS_WATCHED})`,
          limit: AT_ONCE,
        })}
      ), forgotten as (delete from alert_states where team_id in (select team_id from ended))
      delete from alert_watches where team_id in (select team_id from ended)`.execute(tx),
  )
}

/** Each claim is an attempt to evaluate one hour: they are counted anew for the next one. */
export const WATCHES: Queue = {
  table: 'alert_watches',
  id: 'team_id',
  open: sql`true`,
  due: 'due_at',
  until: 'claimed_until',
  token: 'claim',
}

/**
 * Takes the next hour of a team that is due: a minute after its end, for `leaseMs`. Undefined if no hour is due. If the
 * process dies, others take it when the lease ends. Those that were looked at longest ago come first.
 */
export async function claimWindow(
  store: Store,
  leaseMs: number,
  now?: Date,
): Promise<ClaimedWindow | undefined> {
  const oldest = sql`(${lastDue(now)} - ${MOST_WINDOWS - 1} * interval '1 hour')`
  const chosen = selectFree('alert_watches', {
    columns: sql`q.team_id`,
    join: sql`join monitoring_configs c on c.team_id = q.team_id`,
    which: sql`${IS_WATCHED} and q.next_from <= ${lastDue(now)} and ${isDue(sql`q.due_at`)}
      and (q.claimed_until is null or q.claimed_until < now())`,
    order: sql`q.due_at, q.team_id`,
    limit: 1,
  })
  const set = sql`attempts = case when q.next_from < ${oldest} then 1 else q.attempts + 1 end,
    skipped_from = case when q.next_from < ${oldest} then q.next_from else q.skipped_from end,
    skipped_to = case when q.next_from < ${oldest} then ${oldest} else q.skipped_to end,
    next_from = greatest(q.next_from, ${oldest})`
  const returning = sql`team_id, claim, next_from as "from", attempts`
  const rows = await write(store, (tx) =>
    claim<Omit<ClaimedWindow, 'to'>>(tx, WATCHES, { chosen, leaseMs, set, returning }),
  )
  const row = rows[0]
  return row && { ...row, to: new Date(row.from.getTime() + 3_600_000) }
}

/** Gives an hour back that could not be evaluated, to be tried again after a time. `counts`: it was tried in earnest. */
export async function releaseWindow(
  store: Store,
  { teamId, claim }: ClaimedWindow,
  { restMs, counts }: { restMs: number; counts: boolean },
): Promise<void> {
  const set = sql`attempts = attempts - ${counts ? 0 : 1}`
  await write(store, (tx) => postpone(tx, WATCHES, { id: teamId, claim }, restMs, set))
}
