import { sql } from 'kysely'
import type { Store } from '../scope.ts'

/** What waits in the service, for monitoring. `oldest` is the age of the oldest one, in seconds. */
export type Backlog = {
  errands: { kind: string; waiting: number; oldest: number }[]
  mails: { waiting: number; oldest: number }
  stuck: number
}

/**
 * Counts the errands that wait for Temporal, by kind, the mails to be sent, and the executions whose run is stuck in its workflow
 * code. A PENDING execution is one whose START waits. Leaves out a cancel or delete that only waits for its
 * second pass.
 */
export async function readBacklog(store: Store): Promise<Backlog> {
  const [errands, mails, stuck] = await Promise.all([
    sql<Backlog['errands'][number]>`
      select kind, count(*) as waiting, extract(epoch from now() - min(created_at))::float8 as oldest from outbox
      where kind = 'START' or attempts > 1 or last_error is not null
        or due_at < created_at + interval '30 seconds'
      group by kind`.execute(store.db),
    sql<Backlog['mails']>`
      select count(*) as waiting, coalesce(extract(epoch from now() - min(created_at)), 0)::float8 as oldest
      from mails where settled_at is null`.execute(store.db),
    sql<{ n: number }>`
      select count(*) as n from executions
      where status = 'RUNNING' and error_message is not null`.execute(store.db),
  ])
  return { errands: errands.rows, mails: mails.rows[0]!, stuck: stuck.rows[0]?.n ?? 0 }
}
