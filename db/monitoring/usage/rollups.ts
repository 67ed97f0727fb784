import { sql } from 'kysely'
import type { Tx } from '../../connection.ts'
import { lockFold } from '../../locks.ts'
import { IS_UNPRICED, SUMS, SUMS_OF_SUMS } from './usage.ts'

/** The number of hours with calls, or of days, that are rolled up in one transaction. */
const HOURS = 24
const DAYS = 31

type Folds = { until: Date; nodesUntil: Date | null; nodesDone: boolean; daysDone: boolean }

/**
 * Rolls up some of what a team's calls took in hours that are folded: by the nodes that made them; and when that is done,
 * the hours of days that are over into days. Returns whether there was anything to do.
 */
export async function rollUpSome(tx: Tx, teamId: string): Promise<boolean> {
  await lockFold(tx, 'modelCalls', teamId)
  const { rows } = await sql<Folds>`
    select until, nodes_until, coalesce(nodes_until >= until, false) as nodes_done,
      coalesce(days_until >= date_trunc('day', until, 'UTC'), false) as days_done
    from model_call_folds where team_id = ${teamId}`.execute(tx)
  const folds = rows[0]
  if (!folds) return false
  if (!folds.nodesDone) await rollUpNodes(tx, teamId)
  else if (!folds.daysDone) await rollUpDays(tx, teamId)
  return !folds.nodesDone || !folds.daysDone
}

async function rollUpNodes(tx: Tx, teamId: string): Promise<void> {
  const { rows: hours } = await sql<{ hour: Date }>`
    select distinct h.hour from model_call_hours h, model_call_folds f
    where f.team_id = ${teamId} and h.team_id = ${teamId} and h.hour >= coalesce(f.nodes_until, '-infinity')
      and h.hour < f.until order by h.hour limit ${HOURS}`.execute(tx)
  const [first, last] = [hours[0]?.hour, hours.at(-1)?.hour]
  if (first && last) {
    // There are no such rows, unless all hours are being folded anew.
    await sql`delete from model_call_node_hours where team_id = ${teamId} and hour >= ${first}`.execute(tx)
    await sql`
      insert into model_call_node_hours (team_id, hour, workflow_id, node_id, provider, model, calls, unpriced, priced,
        input, output, cached, reasoning, cost, open)
      select ${teamId}, date_trunc('hour', c.created_at, 'UTC'), c.workflow_id, c.node_id, c.provider, c.model, ${SUMS},
        count(*) filter (where c.cost is null and not ${IS_UNPRICED})
      from model_calls c
      where c.team_id = ${teamId} and c.created_at >= ${first} and c.created_at < ${last}::timestamptz + interval '1 hour'
      group by 2, 3, 4, 5, 6`.execute(tx)
  }
  const all = hours.length < HOURS
  await sql`update model_call_folds
    set nodes_until = ${all ? sql`until` : sql`${last}::timestamptz + interval '1 hour'`}
    where team_id = ${teamId}`.execute(tx)
}

async function rollUpDays(tx: Tx, teamId: string): Promise<void> {
  const { rows } = await sql<{ first: Date | null; end: Date }>`
    select date_trunc('day', first, 'UTC') as first,
      least(date_trunc('day', until, 'UTC'),
        date_trunc('day', coalesce(first, until), 'UTC') + ${DAYS} * interval '1 day') as end
    from model_call_folds f, lateral (select min(h.hour) as first from model_call_hours h
      where h.team_id = ${teamId} and h.hour >= coalesce(f.days_until, '-infinity') and h.hour < f.until) hours
    where f.team_id = ${teamId}`.execute(tx)
  const { first, end } = rows[0]!
  if (first) {
    for (const table of ['model_call_days', 'model_call_node_days'])
      await sql`delete from ${sql.table(table)} where team_id = ${teamId} and day >= ${first}`.execute(tx)
    const within = sql`team_id = ${teamId} and hour >= ${first} and hour < ${end}`
    await sql`
      insert into model_call_days (team_id, day, workflow_id, provider, model, calls, unpriced, priced, input, output,
        cached, reasoning, cost, starts, firsts)
      select team_id, date_trunc('day', hour, 'UTC'), workflow_id, provider, model, ${SUMS_OF_SUMS}, sum(starts), sum(firsts)
      from model_call_hours where ${within} group by 1, 2, 3, 4, 5`.execute(tx)
    await sql`
      insert into model_call_node_days (team_id, day, workflow_id, node_id, provider, model, calls, unpriced, priced,
        input, output, cached, reasoning, cost)
      select team_id, date_trunc('day', hour, 'UTC'), workflow_id, node_id, provider, model, ${SUMS_OF_SUMS}
      from model_call_node_hours where ${within} group by 1, 2, 3, 4, 5, 6`.execute(tx)
  }
  await sql`update model_call_folds set days_until = ${end} where team_id = ${teamId}`.execute(tx)
}
