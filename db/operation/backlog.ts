import { sql } from 'kysely'
import { countMissing } from '../executions/records/lost.ts'
import type { Store } from '../scope.ts'

/** What waits in the service, for monitoring. `oldest` is the age of the oldest one, in seconds. */
export type Backlog = {
  errands: { kind: string; waiting: number; oldest: number }[]
  mails: { waiting: number; oldest: number }
  callbacks: { waiting: number; oldest: number }
  stuck: number
  missing: number
}

/**
 * Counts the errands that wait for Temporal, by kind, the mails to be sent, the callbacks of ended executions, and
 * the executions whose run is stuck in its workflow code, or unknown to Temporal. A PENDING execution is one whose
 * START waits. Leaves out a cancel or delete that only waits for its next pass.
 */
export async function readBacklog(store: Store): Promise<Backlog> {
  const [errands, mails, callbacks, stuck, missing] = await Promise.all([
    sql<Backlog['errands'][number]>`
      select kind, count(*) as waiting, extract(epoch from now() - min(created_at))::float8 as oldest from outbox
      where kind = 'START' or attempts > case kind when 'CANCEL' then 2 else 1 end or last_error is not null
        or due_at < created_at + interval '30 seconds'
      group by kind`.execute(store.db),
    sql<Backlog['mails']>`
      select count(*) as waiting, coalesce(extract(epoch from now() - min(created_at)), 0)::float8 as oldest
      from mails where settled_at is null`.execute(store.db),
    sql<Backlog['callbacks']>`
      select count(*) as waiting, coalesce(extract(epoch from now() - min(ended_at)), 0)::float8 as oldest
      from callbacks where status = 'PENDING'`.execute(store.db),
    sql<{ n: number }>`
      select count(*) as n from executions
      where status = 'RUNNING' and error_message is not null`.execute(store.db),
    countMissing(store),
  ])
  return {
    errands: errands.rows,
    mails: mails.rows[0]!,
    callbacks: callbacks.rows[0]!,
    stuck: stuck.rows[0]?.n ?? 0,
    missing,
  }
}
