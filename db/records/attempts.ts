import { sql } from 'kysely'
import { write } from '../change.ts'
import type { Store } from '../scope.ts'
import { nodeExecutionId } from './projection.ts'

export type StartedAttempt = {
  executionId: string
  nodeId: string
  /** '' outside of loops. */
  iteration: string
  nodeName: string
  nodeType: string
  /** Counted from 1. */
  attempt: number
  at: Date
}

/**
 * Writes attempts as RUNNING records of executions that are open. A record that the projection has settled is
 * not changed, and an older attempt never replaces a newer one.
 */
export async function saveAttempts(store: Store, attempts: StartedAttempt[]): Promise<void> {
  const newest = new Map<string, StartedAttempt>()
  for (const attempt of attempts) {
    const key = `${attempt.executionId}/${attempt.nodeId}#${attempt.iteration}`
    if ((newest.get(key)?.attempt ?? 0) < attempt.attempt) newest.set(key, attempt)
  }
  const rows = [...newest.values()].map((attempt) => ({
    ...attempt,
    id: nodeExecutionId(attempt.executionId, attempt.nodeId, attempt.iteration),
  }))
  await write(store, (tx) =>
    sql`
    insert into node_executions as n
      (id, execution_id, node_id, iteration, node_name, node_type, status, started_at, retry_count)
    select r.id, r."executionId", r."nodeId", r.iteration, r."nodeName", r."nodeType", 'RUNNING', r.at, r.attempt - 1
    from json_to_recordset(${JSON.stringify(rows)}::json) as r(
      id uuid, "executionId" uuid, "nodeId" text, iteration text, "nodeName" text, "nodeType" text, at timestamptz, attempt int)
    join executions e on e.id = r."executionId" and e.status in ('PENDING', 'RUNNING')
    order by r.id
    on conflict (execution_id, node_id, iteration) do update
      set retry_count = greatest(n.retry_count, excluded.retry_count)
      where not n.settled`.execute(tx),
  )
}
