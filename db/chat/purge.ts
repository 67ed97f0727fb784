import { setTimeout as pause } from 'node:timers/promises'
import { type RawBuilder, sql } from 'kysely'
import { record, write } from '../change.ts'
import type { Tx } from '../connection.ts'
import { errorRunId } from '../executions/starts/errorworkflow.ts'
import type { Store } from '../scope.ts'
import { cutTitlesAnew } from './titles.ts'

const BATCH = 200

/** Visitors of pages did not ask for an account: what they said is kept for so many days, whatever the team wants. */
const VISITOR_DAYS = 30

/** Temporal deletes histories that are older than this by itself. */
const HISTORY_DAYS = 31

/**
 * Removes all executions of a chat, with their values, files and records, and queues the removal of what Temporal knows
 * of them; those that are open are ended by that. Works in small transactions.
 */
export function purgeSessionRuns(store: Store, sessionId: string): Promise<void> {
  return purgeAll(() => record(store, (tx) => purgeBatch(tx, sessionId)))
}

/** Does the same within a transaction. */
export function purgeLastRuns(tx: Tx, sessionId: string): Promise<void> {
  return purgeAll(() => purgeBatch(tx, sessionId))
}

// An execution may start another one until it is locked here: that one is seen by the next statement.
async function purgeAll(next: () => Promise<number>): Promise<void> {
  while ((await next()) > 0);
}

function purgeBatch(tx: Tx, sessionId: string): Promise<number> {
  return purge(tx, sql`chat_session_id = ${sessionId} order by id limit ${BATCH}`)
}

async function purge(tx: Tx, which: RawBuilder<unknown>): Promise<number> {
  const { rows } = await sql<{ id: string }>`
    with chosen as materialized (select id, team_id, completed_at from executions where ${which} for update),
    dropped as (delete from outbox b using chosen c where b.subject_id = c.id and b.kind <> 'DELETE'),
    queued as (
      insert into outbox (kind, subject_id, team_id)
      select 'DELETE', id, team_id from chosen
      where completed_at is null or completed_at > now() - ${HISTORY_DAYS} * interval '1 day'
      on conflict do nothing)
    delete from executions e using chosen c where e.id = c.id returning e.id`.execute(tx)
  return rows.length
}

/**
 * Removes what the deletion of chats has left, and messages older than their teams keep, or than VISITOR_DAYS if they are
 * a visitor's, with their executions, in small transactions with pauses. Several processes may do so. Stops early when
 * `signal` is aborted. Returns how many messages it removed.
 */
export async function pruneChats(store: Store, signal?: AbortSignal): Promise<number> {
  await finishPurges(store, signal)
  const teams = await store.db
    .selectFrom('teams')
    .select(['id', 'chatRetentionDays as days'])
    .where('chatRetentionDays', 'is not', null)
    .orderBy('id')
    .execute()
  const pruneMessages = (which: RawBuilder<unknown>, days: number) =>
    pruneAll(() => record(store, (tx) => pruneBatch(tx, which, days)), signal)
  let pruned = 0
  for (const { id, days } of teams) pruned += await pruneMessages(sql`m.team_id = ${id}`, days!)
  pruned += await pruneMessages(BY_VISITORS, VISITOR_DAYS)
  await pruneAll(() => pruneVisitors(store), signal)
  return pruned
}

/** Repeats what removes up to BATCH things at once, with pauses, and returns how many it were. */
async function pruneAll(next: () => Promise<number>, signal: AbortSignal | undefined): Promise<number> {
  let pruned = 0
  for (let count = BATCH; count === BATCH && !signal?.aborted; ) {
    const began = performance.now()
    count = await next()
    pruned += count
    await pause(performance.now() - began)
  }
  return pruned
}

/** Sessions are at least as old as their messages, and there is an index for the old ones. */
const BY_VISITORS = sql<boolean>`m.session_id in (select s.id from agent_chat_sessions s
  where s.widget_id is not null and s.created_at < now() - ${sql.lit(VISITOR_DAYS)} * interval '1 day')`

/** Removes up to BATCH sessions of visitors who have said nothing for so long, with the addresses that they gave. */
async function pruneVisitors(store: Store): Promise<number> {
  const { rows } = await write(store, (tx) =>
    sql<{ id: string }>`
    with old as materialized (
      select id from agent_chat_sessions where widget_id is not null
        and created_at < now() - ${VISITOR_DAYS} * interval '1 day'
        and active_at < now() - ${VISITOR_DAYS} * interval '1 day'
        and not exists (select from agent_chat_messages m where m.session_id = agent_chat_sessions.id)
      order by created_at limit ${BATCH} for update skip locked)
    delete from agent_chat_sessions s using old where s.id = old.id returning s.id`.execute(tx),
  )
  return rows.length
}

async function finishPurges(store: Store, signal: AbortSignal | undefined): Promise<void> {
  const gone = await store.db.selectFrom('agentChatPurges').select('sessionId').limit(10_000).execute()
  for (const { sessionId } of gone) {
    if (signal?.aborted) return
    await purgeSessionRuns(store, sessionId)
    // A message that was being posted as the session went has failed: nothing comes after this.
    await write(store, (tx) => tx.deleteFrom('agentChatPurges').where('sessionId', '=', sessionId).execute())
  }
}

/**
 * Removes up to BATCH old messages of those that are asked for, the oldest first, with their executions. One whose reply
 * is being written stays. Sessions stay, without them; a summary goes once one of the messages that it covers does, and a
 * title that was cut from one.
 */
async function pruneBatch(tx: Tx, which: RawBuilder<unknown>, days: number): Promise<number> {
  const { rows } = await sql<{ sessionId: string; executionId: string; shown: boolean }>`
    with old as materialized (
      select m.id from agent_chat_messages m
      where (${which}) and m.created_at < now() - ${days} * interval '1 day'
        and not exists (select from agent_chat_messages r
          where r.execution_id = m.execution_id and r.status = 'STREAMING')
      order by created_at limit ${BATCH} for update of m skip locked)
    delete from agent_chat_messages m using old where m.id = old.id
    returning m.session_id, m.execution_id, 
      not (m.role = 'assistant' and m.status = 'FAILED' and m.content = '') as shown`.execute(tx)
  const runs = [...new Set(rows.map(({ executionId }) => executionId))]
  const counts = Map.groupBy(
    rows.filter(({ shown }) => shown),
    ({ sessionId }) => sessionId,
  )
  const sessions = [...new Set(rows.map(({ sessionId }) => sessionId))].sort()
  for (const sessionId of sessions) {
    const count = counts.get(sessionId)?.length ?? 0
    await sql`update agent_chat_sessions set message_count = greatest(0, message_count - ${count}),
      last_message_at = (select max(created_at) from agent_chat_messages where session_id = ${sessionId}),
      summary = null, summary_until = 0 where id = ${sessionId}`.execute(tx)
  }
  await cutTitlesAnew(tx, sessions)
  await purgeFamilies(tx, runs)
  return rows.length
}

/** Removes executions with all that they have started, also because they failed, as purgeBatch does. */
async function purgeFamilies(tx: Tx, ids: string[]): Promise<void> {
  const family = new Set(ids)
  for (let latest = ids; latest.length > 0; ) {
    // From now on they start no others.
    await sql`select from executions where id = any(${latest}::uuid[]) order by id for update`.execute(tx)
    const { rows } = await sql<{ id: string }>`
      select id from executions where parent_id = any(${latest}::uuid[])
      union select id from executions where retried_from = any(${latest}::uuid[])
      union select id from executions where id = any(${latest.map(errorRunId)}::uuid[])`.execute(tx)
    latest = rows.map(({ id }) => id).filter((id) => !family.has(id))
    for (const id of latest) family.add(id)
  }
  await purge(tx, sql`id = any(${[...family]}::uuid[])`)
}
