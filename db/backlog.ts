import { sql } from 'kysely'
import type { Store } from './scope.ts'

/** What waits, for whoever watches the service; `oldest` is in seconds. */
export type Backlog = { errands: { kind: string; waiting: number; oldest: number }[]; stuck: number }

/**
 * Counts the errands that wait for Temporal, by kind, and the runs that are stuck in their workflow code. A PENDING
 * run is one whose START waits. A cancel or delete that is done and only waits for its second pass is left out.
 */
export async function readBacklog(store: Store): Promise<Backlog> {
  const [errands, stuck] = await Promise.all([
    sql<Backlog['errands'][number]>`
      select kind, count(*) as waiting, extract(epoch from now() - min(created_at))::float8 as oldest from outbox
      where kind = 'START' or attempts > 1 or last_error is not null
        or due_at < created_at + interval '30 seconds'
      group by kind`.execute(store.db),
    sql<{ n: number }>`
      select count(*) as n from executions
      where status = 'RUNNING' and error_message is not null`.execute(store.db),
  ])
  return { errands: errands.rows, stuck: stuck.rows[0]?.n ?? 0 }
}
