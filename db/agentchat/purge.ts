import { sql } from 'kysely'
import { record } from '../change.ts'
import type { Tx } from '../connection.ts'
import type { Store } from '../scope.ts'

const BATCH = 200

/** Temporal deletes histories that are older than this by itself. */
const HISTORY_DAYS = 31

/**
 * Removes all executions of a chat, with their values, files and records, and queues the removal of what Temporal knows
 * of them; those that are open are ended by that. Works in small transactions, or within the one that `store` is in.
 * Returns how many it removed.
 */
export async function purgeSessionRuns(store: Store, sessionId: string): Promise<number> {
  let removed = 0
  for (;;) {
    const count = await (isTransaction(store.db)
      ? purgeBatch(store.db, sessionId)
      : record(store, (tx) => purgeBatch(tx, sessionId)))
    removed += count
    if (count < BATCH) return removed
  }
}

function isTransaction(db: Store['db']): db is Tx {
  return (db as Tx).isTransaction
}

async function purgeBatch(tx: Tx, sessionId: string): Promise<number> {
  const { rows } = await sql<{ id: string }>`
    with chosen as materialized (
      select id, team_id, completed_at from executions where chat_session_id = ${sessionId}
      order by id limit ${BATCH} for update),
    dropped as (delete from outbox b using chosen c where b.subject_id = c.id and b.kind <> 'DELETE'),
    queued as (
      insert into outbox (kind, subject_id, team_id)
      select 'DELETE', id, team_id from chosen
      where completed_at is null or completed_at > now() - ${HISTORY_DAYS} * interval '1 day'
      on conflict do nothing)
    delete from executions e using chosen c where e.id = c.id returning e.id`.execute(tx)
  return rows.length
}
