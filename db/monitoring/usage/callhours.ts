import { setImmediate as breathe } from 'node:timers/promises'
import { sql } from 'kysely'
import { write } from '../../change.ts'
import type { Db } from '../../connection.ts'
import { IS_WATCHED, NO_WORKFLOW } from './calls.ts'

/**
 * What the calls to models of a workflow were in an hour, or with NO_WORKFLOW those of the team, without what evaluations
 * and playbooks have begun.
 */
export type CallHour = {
  workflowId: string
  hour: Date
  /** All that have ended, also those that failed. */
  calls: number
  failed: number
  tokens: number
  /** How many of those that succeeded are in each bucket of DURATION_BOUNDS. */
  durations: number[]
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** How far back it is summed up the first time, and how long it is kept. */
const FIRST_MS = 28 * DAY_MS
const KEPT_MS = 35 * DAY_MS
const AT_ONCE = 2_000

/**
 * Sums up the calls of a team by hour up to a time, for the hours without sums. Calls that end or are told later do not
 * come into the sums: hours are compared with them.
 */
export async function sumCallHours(db: Db, teamId: string, to: Date, signal: AbortSignal): Promise<void> {
  const known = await db
    .selectFrom('alertCallFolds')
    .select('until')
    .where('teamId', '=', teamId)
    .executeTakeFirst()
  const end = to.getTime()
  for (let at = Math.max(known?.until.getTime() ?? 0, end - FIRST_MS); at < end && !signal.aborted; ) {
    const next = Math.min(at + DAY_MS, end)
    await sumSpan(db, teamId, new Date(at), new Date(next))
    at = next
    await breathe()
  }
  signal.throwIfAborted()
  await write({ db }, (tx) =>
    sql`delete from alert_call_hours where ctid = any(array(select ctid from alert_call_hours
      where team_id = ${teamId} and hour < ${new Date(end - KEPT_MS)} limit ${AT_ONCE}))`.execute(tx),
  )
}

/** In one statement, so that an hour is there as a whole or not at all. */
async function sumSpan(db: Db, teamId: string, from: Date, to: Date): Promise<void> {
  await write({ db }, (tx) =>
    sql`with sums as (
      select coalesce(case when grouping(workflow_id) = 0 then workflow_id end, ${NO_WORKFLOW}::uuid) as workflow_id, hour,
        count(*)::integer as calls, count(*) filter (where status <> 'SUCCESS')::integer as failed,
        coalesce(sum(tokens), 0)::bigint as tokens, count_durations(array_agg(bucket)) as durations
      from (
        select c.workflow_id, date_trunc('hour', c.created_at, 'UTC') as hour, c.status,
          coalesce(c.input_tokens, 0)::bigint + coalesce(c.output_tokens, 0) as tokens,
          case when c.status = 'SUCCESS' then width_bucket(c.latency_ms::bigint, duration_bounds()) end as bucket
        from model_calls c
        where c.team_id = ${teamId} and c.created_at >= ${from} and c.created_at < ${to} and c.status <> 'OPEN'
          and ${IS_WATCHED}) calls
      group by grouping sets ((hour), (hour, workflow_id))
      having grouping(workflow_id) = 1 or workflow_id <> ${NO_WORKFLOW}::uuid
    ), saved as (
      insert into alert_call_hours (team_id, workflow_id, hour, calls, failed, tokens, durations)
      select ${teamId}, workflow_id, hour, calls, failed, tokens, durations from sums on conflict do nothing
    )
    insert into alert_call_folds as f (team_id, until) values (${teamId}, ${to})
    on conflict (team_id) do update set until = greatest(f.until, excluded.until)`.execute(tx),
  )
}

/** The calls of each workflow in one hour, and with NO_WORKFLOW those of the team. The hour must have been summed up. */
export async function readCallsOfHour(db: Db, teamId: string, hour: Date): Promise<CallHour[]> {
  return selectHours(db, teamId).where('hour', '=', hour).execute()
}

/** The calls of a workflow, or with NO_WORKFLOW of the team, in a span of hours, in their order. */
export async function readCallHours(
  db: Db,
  teamId: string,
  { workflowId, from, to }: { workflowId: string; from: Date; to: Date },
): Promise<CallHour[]> {
  return selectHours(db, teamId)
    .where('workflowId', '=', workflowId)
    .where('hour', '>=', from)
    .where('hour', '<', to)
    .orderBy('hour')
    .execute()
}

function selectHours(db: Db, teamId: string) {
  return db
    .selectFrom('alertCallHours')
    .select(['workflowId', 'hour', 'calls', 'failed', 'tokens', 'durations'])
    .where('teamId', '=', teamId)
}
