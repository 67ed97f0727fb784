import { sql } from 'kysely'
import type { Database } from '../../../db/connection.ts'

export const HOUR_MS = 3_600_000

/** What is planted for each hour of a span: so many, of which some fail, and how long they take. */
export type Planted = {
  teamId: string
  workflowId: string
  from: Date
  to: Date
  each: number
  failed?: number
  ms?: number
  tokens?: number
  trigger?: string
  /** Which execution has made the calls; each its own if it is not given. */
  executionId?: string
  /** Of calls: whether a judge was asked. */
  judging?: boolean
}

/** Writes executions that ended in each hour of a span, as they would be in the database by then. */
export async function plantExecutions(
  db: Database,
  { teamId, workflowId, from, to, each, failed = 0, ms = 5_000, trigger = 'API' }: Planted,
): Promise<void> {
  await withoutTriggers(db, (tx) =>
    sql`insert into executions (id, team_id, workflow_id, workflow_name, workflow_version, node_count, status, trigger,
        trigger_node_id, input_data, input_bytes, started_by_kind, created_at, started_at, completed_at)
      select gen_random_uuid(), ${teamId}, ${workflowId}, 'planted', 1, 1,
        case when n <= ${failed}::int then 'FAILED' else 'SUCCESS' end, ${trigger}, 'start', '{}', 2, 'USER',
        at - ${ms} * (0.5 + n / ${each}::float) * interval '1 millisecond',
        at - ${ms} * (0.5 + n / ${each}::float) * interval '1 millisecond', at
      from generate_series(${from}::timestamptz, ${to}::timestamptz - interval '1 hour', interval '1 hour') hour,
        generate_series(1, ${each}::int) n,
        lateral (select hour + n * interval '30 minutes' / ${each}::int as at) placed`.execute(tx),
  )
}

/** Writes calls to models that were made in each hour of a span. */
export async function plantCalls(
  db: Database,
  { teamId, workflowId, from, to, each, failed = 0, ms = 2_000, tokens = 1_000, ...more }: Planted,
): Promise<void> {
  const { executionId = null, judging = false } = more
  const [node, activity] = judging ? ['evaluation', 'evaluation relevance'] : ['llm', 'llm']
  await withoutTriggers(db, (tx) =>
    sql`insert into model_calls (execution_id, activity_id, attempt, caller, call, team_id, workflow_id, node_id, iteration,
        provider, model, status, input_tokens, output_tokens, latency_ms, created_at)
      select coalesce(${executionId}::uuid, gen_random_uuid()), ${activity}, 1, gen_random_uuid(), 1, ${teamId},
        ${workflowId}, ${node}, '', 'OPENAI', 'gpt-4o',
        case when n <= ${failed}::int then 'REFUSED' else 'SUCCESS' end,
        case when n > ${failed}::int then ${tokens}::int end, case when n > ${failed}::int then 10 end,
        (${ms} * (0.5 + n / ${each}::float))::int, hour + n * interval '30 minutes' / ${each}::int
      from generate_series(${from}::timestamptz, ${to}::timestamptz - interval '1 hour', interval '1 hour') hour,
        generate_series(1, ${each}::int) n`.execute(tx),
  )
}

/** Triggers would take minutes for so many rows, and are not what is tested. */
async function withoutTriggers(db: Database, work: (tx: Database) => Promise<unknown>): Promise<void> {
  await db.transaction().execute(async (tx) => {
    await sql`set local session_replication_role = replica`.execute(tx)
    await work(tx as unknown as Database)
  })
}
