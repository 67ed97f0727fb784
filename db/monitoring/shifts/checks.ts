import { sql } from 'kysely'
import { write } from '../../change.ts'
import type { Db } from '../../connection.ts'
import type { Store } from '../../scope.ts'

/** How a workflow was when it was last compared with what it was before. `finding` is JSON that its writer reads. */
export type ShiftCheck = {
  workflowId: string
  metric: string
  windowTo: Date
  state: 'FIRING' | 'QUIET' | 'INSUFFICIENT_DATA'
  reason: string | null
  referenceCount: number
  currentCount: number
  statistic: number | null
  threshold: number | null
  observed: number | null
  expected: number | null
  hits: number
  finding: unknown
}

/** The number of workflows of a team that are compared: those with the most samples in the last day. */
const MOST_WORKFLOWS = 100

/** The workflows of a team with samples in the days up to `to`. */
export async function listShifting(
  db: Db,
  teamId: string,
  what: 'DRIFT' | 'SENTIMENT',
  { to, days }: { to: Date; days: number },
): Promise<string[]> {
  const [table, time] =
    what === 'DRIFT' ? [sql`drift_samples`, sql`ended_at`] : [sql`sentiment_scores`, sql`said_at`]
  const { rows } = await sql<{ workflowId: string }>`
    select workflow_id from ${table}
    where team_id = ${teamId} and ${time} < ${to}::timestamptz
      and ${time} >= ${to}::timestamptz - (${days} + 1) * interval '1 day'
    group by 1
    order by count(*) filter (where ${time} >= ${to}::timestamptz - interval '1 day') desc, 1
    limit ${MOST_WORKFLOWS}`.execute(db)
  return rows.map(({ workflowId }) => workflowId)
}

/** The last checks of a workflow, by metric. */
export async function readShiftChecks(db: Db, workflowId: string): Promise<Map<string, ShiftCheck>> {
  const rows = await db.selectFrom('shiftChecks').selectAll().where('workflowId', '=', workflowId).execute()
  return new Map(rows.map(({ teamId: _, ...row }) => [row.metric, row as ShiftCheck]))
}

/** Keeps a check. Nothing if the workflow is deleted, or a later window's is kept already. */
export async function keepShiftCheck(
  store: Pick<Store, 'db'>,
  teamId: string,
  check: ShiftCheck,
): Promise<void> {
  const { workflowId, metric, windowTo, state, reason, referenceCount, currentCount, hits, finding } = check
  const { statistic, threshold, observed, expected } = check
  const json = finding == null ? null : JSON.stringify(finding)
  await write(store, (tx) =>
    sql`insert into shift_checks as k (workflow_id, metric, team_id, window_to, state, reason, reference_count,
        current_count, statistic, threshold, observed, expected, hits, finding)
      select id, ${metric}, ${teamId}, ${windowTo}, ${state}, ${reason}, ${referenceCount}::integer,
        ${currentCount}::integer, ${statistic}::float8, ${threshold}::float8, ${observed}::float8, ${expected}::float8,
        ${hits}::integer, ${json}::json
      from workflows where id = ${workflowId} and team_id = ${teamId} for key share
      on conflict (workflow_id, metric) do update set (window_to, state, reason, reference_count, current_count,
        statistic, threshold, observed, expected, hits, finding) = (excluded.window_to, excluded.state, excluded.reason,
        excluded.reference_count, excluded.current_count, excluded.statistic, excluded.threshold, excluded.observed,
        excluded.expected, excluded.hits, excluded.finding) where k.window_to <= excluded.window_to`.execute(
      tx,
    ),
  )
}
