import { sql } from 'kysely'
import type { Db } from '../../connection.ts'
import { IS_WATCHED, NO_WORKFLOW } from '../usage/calls.ts'

/** What executions are looked for, as samples of an alert. */
export type SampleKind = 'FAILED' | 'LONGEST' | 'MOST_TOKENS' | 'FAILED_CALLS' | 'LONGEST_CALLS'

const MOST = 5

/** The ids of executions of an hour that show what an alert is about, the clearest ones first. */
export async function findSamples(
  db: Db,
  kind: SampleKind,
  { teamId, workflowId, from, to }: { teamId: string; workflowId: string | null; from: Date; to: Date },
): Promise<string[]> {
  const ofWorkflow = workflowId === null ? sql`true` : sql`workflow_id = ${workflowId}`
  const ended = sql`select id from executions e where team_id = ${teamId} and completed_at >= ${from}
    and completed_at < ${to} and is_counted(e) and ${ofWorkflow}`
  const calls = sql`select execution_id as id from model_calls c where team_id = ${teamId} and created_at >= ${from}
    and created_at < ${to} and workflow_id <> ${NO_WORKFLOW} and ${IS_WATCHED} and ${ofWorkflow}`
  const queries = {
    FAILED: sql<{ id: string }>`${ended} and status = 'FAILED' order by completed_at desc limit ${MOST}`,
    LONGEST: sql<{
      id: string
    }>`${ended} and started_at is not null order by completed_at - started_at desc limit ${MOST}`,
    MOST_TOKENS: sql<{ id: string }>`${calls} group by execution_id
      order by sum(coalesce(input_tokens, 0)::bigint + coalesce(output_tokens, 0)) desc limit ${MOST}`,
    FAILED_CALLS: sql<{ id: string }>`${calls} and status in ('REFUSED', 'LOST') group by execution_id
      order by count(*) desc limit ${MOST}`,
    LONGEST_CALLS: sql<{ id: string }>`${calls} and status = 'SUCCESS' group by execution_id
      order by max(latency_ms) desc limit ${MOST}`,
  }
  const { rows } = await queries[kind].execute(db)
  return rows.map(({ id }) => id)
}

/** The workflows that have an alert of some metrics that is not resolved. */
export async function listAlerted(db: Db, teamId: string, metrics: string[]): Promise<string[]> {
  const rows = await db
    .selectFrom('alerts')
    .select('workflowId')
    .distinct()
    .where('teamId', '=', teamId)
    .where('status', '<>', 'RESOLVED')
    .where('metric', 'in', metrics)
    .where('workflowId', 'is not', null)
    .limit(1_000)
    .execute()
  return rows.map(({ workflowId }) => workflowId!)
}
