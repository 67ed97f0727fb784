import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { record } from '../change.ts'
import type { Tx } from '../connection.ts'
import { lockFold } from '../locks.ts'
import type { Store } from '../scope.ts'
import { countEnded } from './executionhours.ts'
import { NO_WORKFLOW } from './usage/calls.ts'

/** How long an hour is over before it is folded: migration 0077 relies on it. */
const REST_MINUTES = 15

/** One transaction folds so many hours at most, and no further one after so many executions. */
const HOURS = 168
const EXECUTIONS = 20_000
const PAUSE_MS = 20

/**
 * Folds how executions ended in the hours that are over: from then on they are read from there, and deleting executions
 * changes nothing. Any number of processes may do so. Stops early when `signal` is aborted. Returns how many hours it
 * folded.
 */
export async function foldExecutionHours(store: Store, signal?: AbortSignal): Promise<number> {
  let folded = 0
  for (let team = await findTeam(store); team && !signal?.aborted; team = await findTeam(store, team)) {
    const teamId = team
    for (let hours = 1; hours > 0 && !signal?.aborted; ) {
      hours = await record(store, (tx) => foldSome(tx, teamId))
      folded += hours
      await pause(PAUSE_MS)
    }
  }
  return folded
}

/** When the hours end that can be folded. */
const LIMIT = sql`date_trunc('hour', now() - ${REST_MINUTES} * interval '1 minute', 'UTC')`
const untilOf = (team: ReturnType<typeof sql>) =>
  sql`coalesce((select until from execution_hour_folds where team_id = ${team}), '-infinity')`

/** The next team that has something to fold. */
async function findTeam({ db }: Store, after = NO_WORKFLOW): Promise<string | undefined> {
  const { rows } = await sql<{ id: string }>`
    select id from teams t where id > ${after} and exists (
      select from executions e where e.team_id = t.id and e.completed_at >= ${untilOf(sql`t.id`)}
        and e.completed_at < ${LIMIT})
    order by id limit 1`.execute(db)
  return rows[0]?.id
}

async function foldSome(tx: Tx, teamId: string): Promise<number> {
  await lockFold(tx, 'executions', teamId)
  const { rows: hours } = await sql<{ hour: Date }>`
    with recursive hours as (
      select (select date_trunc('hour', min(e.completed_at), 'UTC') from executions e where e.team_id = ${teamId}
        and e.completed_at >= ${untilOf(sql`${teamId}`)} and e.completed_at < ${LIMIT}) as hour, 1 as number
      union all
      select (select date_trunc('hour', min(e.completed_at), 'UTC') from executions e where e.team_id = ${teamId}
        and e.completed_at >= hours.hour + interval '1 hour' and e.completed_at < ${LIMIT}), number + 1
      from hours where hours.hour is not null and number < ${HOURS}
    ), counted as (
      select hour, (select count(*) from executions e where e.team_id = ${teamId} and e.completed_at >= hour
        and e.completed_at < hour + interval '1 hour') as n
      from hours where hour is not null
    ), running as (select hour, sum(n) over (order by hour) - n as before from counted)
    select hour from running where before < ${EXECUTIONS} order by hour`.execute(tx)
  const [first, last] = [hours[0]?.hour, hours.at(-1)?.hour]
  if (!first || !last) return 0
  const ended = countEnded(
    sql`e.workflow_id`,
    sql`e.team_id = ${teamId} and e.completed_at >= ${first}
      and e.completed_at < ${last}::timestamptz + interval '1 hour'`,
  )
  // Executions that were deleted before are in the sums already.
  await sql`
    with ended as materialized (${ended}), together as (
      select workflow_id, hour, ended, failed, cancelled, retries, durations from ended
      union all
      select ${NO_WORKFLOW}::uuid, hour, sum(ended)::integer, sum(failed)::integer, sum(cancelled)::integer,
        sum(retries)::integer, (select array_agg(n order by place) from (
          select place, sum(n)::integer as n from ended one, unnest(one.durations) with ordinality as u(n, place)
          where one.hour = ended.hour group by place) places)
      from ended group by hour
    )
    insert into execution_hours as h (team_id, workflow_id, hour, ended, failed, cancelled, retries, durations)
    select ${teamId}, workflow_id, hour, ended, failed, cancelled, retries, durations from together order by 2, 3
    on conflict (team_id, workflow_id, hour) do update set ended = h.ended + excluded.ended,
      failed = h.failed + excluded.failed, cancelled = h.cancelled + excluded.cancelled,
      retries = h.retries + excluded.retries, durations = add_durations(h.durations, excluded.durations)`.execute(
    tx,
  )
  await sql`insert into execution_hour_folds (team_id, until)
    values (${teamId}, ${last}::timestamptz + interval '1 hour')
    on conflict (team_id) do update set until = excluded.until`.execute(tx)
  return hours.length
}
