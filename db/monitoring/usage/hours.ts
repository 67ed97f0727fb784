import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { record } from '../../change.ts'
import type { Tx } from '../../connection.ts'
import { lockFold } from '../../locks.ts'
import type { Store } from '../../scope.ts'
import { IS_OF_RUN } from './calls.ts'
import { rollUpSome } from './rollups.ts'
import { IS_UNPRICED, SUMS } from './usage.ts'

/** How long an hour is over before it is folded. Calls that are younger may change without taking anything back. */
const REST_MINUTES = 15

/** The number of hours with calls that are folded in one transaction. */
const HOURS = 24
const PAUSE_MS = 20

/**
 * Folds what the calls to models of all teams took in the hours that are over, by which totals are read, and rolls them up
 * by nodes and days. Any number of
 * processes may do so. Stops early when `signal` is aborted. Returns how many hours with calls it folded.
 */
export async function foldModelCalls(store: Store, signal?: AbortSignal): Promise<number> {
  let folded = 0
  for (let team = await findTeam(store); team && !signal?.aborted; team = await findTeam(store, team)) {
    const teamId = team
    for (let hours = HOURS; hours === HOURS && !signal?.aborted; ) {
      hours = await record(store, (tx) => foldSome(tx, teamId))
      folded += hours
      await pause(PAUSE_MS)
    }
    while (!signal?.aborted && (await record(store, (tx) => rollUpSome(tx, teamId)))) await pause(PAUSE_MS)
  }
  return folded
}

/** The next team that has called a model. They are read from the index one by one, not with all their calls. */
async function findTeam({ db }: Store, after?: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('modelCalls')
    .select('teamId')
    .$if(after !== undefined, (query) => query.where('teamId', '>', after!))
    .orderBy('teamId')
    .limit(1)
    .executeTakeFirst()
  return row?.teamId
}

async function foldSome(tx: Tx, teamId: string): Promise<number> {
  await lockFold(tx, 'modelCalls', teamId)
  const { rows: hours } = await sql<{ hour: Date }>`
    with recursive hours as (
      select (select date_trunc('hour', min(c.created_at), 'UTC') from model_calls c where c.team_id = ${teamId}
        and c.created_at >= coalesce((select until from model_call_folds where team_id = ${teamId}), '-infinity')) as hour
      union all
      select (select date_trunc('hour', min(c.created_at), 'UTC') from model_calls c where c.team_id = ${teamId}
        and c.created_at >= hours.hour + interval '1 hour') from hours where hours.hour is not null
    )
    select hour from hours
    where hour + interval '1 hour' <= now() - ${REST_MINUTES} * interval '1 minute' limit ${HOURS}`.execute(
    tx,
  )
  const [first, last] = [hours[0]?.hour, hours.at(-1)?.hour]
  if (!first || !last) return 0
  await sql`
    with calls as (
      select date_trunc('hour', c.created_at, 'UTC') as hour, c.workflow_id, c.provider, c.model, c.execution_id, ${SUMS},
        bool_and(${IS_OF_RUN}) as is_run, count(*) filter (where c.cost is null and not ${IS_UNPRICED})::int as open
      from model_calls c
      where c.team_id = ${teamId} and c.created_at >= ${first} and c.created_at < ${last}::timestamptz + interval '1 hour'
      group by 1, 2, 3, 4, 5
    ), placed as (
      select calls.*,
        row_number() over (partition by hour, execution_id order by workflow_id, provider, model) = 1 as is_one,
        (select max(b.created_at) from model_calls b
          where calls.is_run and b.execution_id = calls.execution_id and b.created_at < calls.hour) as before,
        (select max(b.created_at) from model_calls b
          where calls.is_run and b.execution_id = calls.execution_id and b.created_at < calls.hour
            and b.provider = calls.provider and b.model = calls.model) as before_of_model
      from calls
    ), runs as (
      insert into model_call_hour_runs (team_id, hour, execution_id, workflow_id, provider, model, before,
        before_of_model, open)
      select ${teamId}, hour, execution_id, workflow_id, provider, model, case when is_one then before end,
        before_of_model, open
      from placed where open > 0 or before_of_model is not null or (is_one and before is not null)
    )
    insert into model_call_hours (team_id, hour, workflow_id, provider, model, calls, unpriced, priced, input, output,
      cached, reasoning, cost, starts, firsts)
    select ${teamId}, hour, workflow_id, provider, model, sum(calls), sum(unpriced), sum(priced), sum(input),
      sum(output), sum(cached), sum(reasoning), sum(cost), count(*) filter (where is_one and before is null and is_run),
      count(*) filter (where before_of_model is null and is_run)
    from placed group by hour, workflow_id, provider, model`.execute(tx)
  await sql`insert into model_call_folds (team_id, until)
    values (${teamId}, ${last}::timestamptz + interval '1 hour')
    on conflict (team_id) do update set until = excluded.until`.execute(tx)
  return hours.length
}
