import { sql } from 'kysely'
import { demandTeam, type Scope } from '../../scope.ts'
import type { ShiftCheck } from './checks.ts'

/** A check as people see it: without the executions that it names. */
export type ShownCheck = Omit<ShiftCheck, 'finding'> & { workflowName: string }

/** How users' messages of a day (UTC) sounded, of all workflows together. `mean` is null if there are too few to tell. */
export type SentimentDay = { date: string; mean: number | null; count: number }

/** The mean of fewer messages would tell the mood of a single person, and chats are private. */
export const LEAST_TOLD = 5
const MOST_CHECKS = 1_000

/** How a team's workflows were when their inputs and outputs were last compared with those before (VIEWER). */
export async function readDrift(scope: Scope, teamId: string): Promise<ShownCheck[]> {
  await demandTeam(scope, teamId, 'VIEWER')
  return listChecks(scope, teamId, 'drift.%')
}

/** How users' messages to a team's agents sound, by days and for each workflow (VIEWER). */
export async function readSentiment(
  scope: Scope,
  teamId: string,
  { from, to }: { from: Date; to: Date },
): Promise<{ days: SentimentDay[]; checks: ShownCheck[] }> {
  await demandTeam(scope, teamId, 'VIEWER')
  const { rows } = await sql<SentimentDay>`
    select to_char(day, 'YYYY-MM-DD') as date, coalesce(n, 0)::integer as count,
      case when n >= ${LEAST_TOLD} then mean end as mean
    from generate_series(date_trunc('day', ${from}::timestamptz at time zone 'UTC'),
      (${to}::timestamptz at time zone 'UTC') - interval '1 microsecond', interval '1 day') day
    left join (select date_trunc('day', said_at at time zone 'UTC') as day, count(*) as n, avg(score::float8) as mean
      from sentiment_scores
      where team_id = ${teamId} and said_at >= ${from}::timestamptz and said_at < ${to}::timestamptz
      group by 1) found using (day)
    order by day`.execute(scope.store.db)
  return { days: rows, checks: await listChecks(scope, teamId, 'sentiment') }
}

async function listChecks({ store }: Scope, teamId: string, metric: string): Promise<ShownCheck[]> {
  const { rows } = await sql<ShownCheck>`
    select k.workflow_id, w.name as workflow_name, k.metric, k.window_to, k.state, k.reason, k.reference_count,
      k.current_count, k.statistic, k.threshold, k.observed, k.expected, k.hits
    from shift_checks k join workflows w on w.id = k.workflow_id
    where k.team_id = ${teamId} and k.metric like ${metric}
    order by k.state <> 'FIRING', w.name, k.workflow_id, k.metric limit ${MOST_CHECKS}`.execute(store.db)
  return rows
}
