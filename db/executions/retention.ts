import { setTimeout as pause } from 'node:timers/promises'
import { type RawBuilder, sql } from 'kysely'
import { record } from '../change.ts'
import type { Store } from '../scope.ts'
import { readSettings } from '../workflows/settings.ts'

const BATCH = 500

/** Temporal deletes histories that are older than this by itself. */
const HISTORY_DAYS = 31

/** The time between the removals of two histories, so that other errands do not queue behind thousands. */
const HISTORY_MS = 10
const FIRST_HISTORY_MS = 5_000

/**
 * Removes the ended executions that their workflows' settings no longer keep, in small transactions, after
 * each of which it pauses for as long as the transaction took. Several processes may do so at the same time:
 * they skip rows that another has locked. Stops early when `signal` is aborted. Returns how many executions
 * it removed.
 */
export async function pruneExecutions(store: Store, signal?: AbortSignal): Promise<number> {
  const workflows = await store.db
    .selectFrom('workflows')
    .select(['id', 'settings'])
    .where(sql<boolean>`settings->>'retention' is not null`)
    .orderBy('id')
    .execute()
  let pruned = 0
  for (const { id, settings } of workflows) {
    const { days, count } = readSettings(settings).retention ?? {}
    if (days) {
      const then = sql`now() - ${days} * interval '1 day'`
      pruned += await pruneAll(
        store,
        id,
        sql`created_at < ${then} and completed_at < ${then}`,
        pruned,
        signal,
      )
    }
    const behind = count ? await findBehind(store, id, count) : undefined
    if (behind) {
      const older = sql`(created_at, id) <= (${behind.createdAt}::timestamptz, ${behind.id}::uuid)`
      pruned += await pruneAll(store, id, older, pruned, signal)
    }
  }
  return pruned
}

/** A position among a workflow's executions by age. The time is a string, which keeps its microseconds. */
type ListPlace = { createdAt: string; id: string }

/**
 * The newest execution that is not among the newest `count` of its workflow; undefined if there are no more than that.
 */
async function findBehind(store: Store, workflowId: string, count: number): Promise<ListPlace | undefined> {
  const { rows } = await sql<ListPlace>`
    select created_at::text as created_at, id from executions where workflow_id = ${workflowId}
    order by created_at desc, id desc offset ${count} limit 1`.execute(store.db)
  return rows[0]
}

async function pruneAll(
  store: Store,
  workflowId: string,
  outlived: RawBuilder<unknown>,
  before: number,
  signal: AbortSignal | undefined,
): Promise<number> {
  let last: ListPlace = { createdAt: '-infinity', id: '00000000-0000-0000-0000-000000000000' }
  let pruned = 0
  while (!signal?.aborted) {
    const began = performance.now()
    const batch = await pruneBatch(store, workflowId, outlived, last, before + pruned)
    if (batch.length === 0) break
    pruned += batch.length
    last = batch[0]!
    await pause(performance.now() - began)
  }
  return pruned
}

/**
 * Removes up to BATCH executions that are younger than `last`, the oldest first, and queues the removal of
 * what Temporal may still know of them. Each batch begins where the last one ended, because removed rows
 * remain in the index, and would be scanned again, for as long as a reader may need them. Returns their
 * positions, the youngest first. It keeps an execution whose open parent may still read it, a failure
 * whose error workflow has yet to start, and one of which the reply in a chat has yet to be saved.
 */
function pruneBatch(
  store: Store,
  workflowId: string,
  outlived: RawBuilder<unknown>,
  last: ListPlace,
  before: number,
): Promise<ListPlace[]> {
  return record(store, async (tx) => {
    const { rows } = await sql<ListPlace>`
      with outlived as materialized (
        select id, created_at, completed_at from executions e
        where workflow_id = ${workflowId} and status in ('SUCCESS', 'FAILED', 'CANCELLED') and ${outlived}
          and (created_at, id) > (${last.createdAt}::timestamptz, ${last.id}::uuid)
          and not exists (select from executions p
            where p.id = e.parent_id and not e.detached and p.status in ('PENDING', 'RUNNING'))
          and not exists (select from outbox b where b.subject_id = e.id and b.kind = 'ERROR')
          and not exists (select from agent_chat_messages m where m.execution_id = e.id and m.status = 'STREAMING')
        order by created_at, id limit ${BATCH} for update of e skip locked),
      removed as (delete from executions e using outlived o where e.id = o.id),
      dropped as (delete from outbox b using outlived o where b.subject_id = o.id and b.kind <> 'DELETE'),
      queued as (
        insert into outbox (kind, subject_id, due_at)
        select 'DELETE', id, now() + interval '1 millisecond'
          * (${FIRST_HISTORY_MS}::int + ${HISTORY_MS}::int * (${before}::int + row_number() over ()))
        from outlived where completed_at > now() - ${HISTORY_DAYS} * interval '1 day'
        on conflict do nothing)
      select created_at::text as created_at, id from outlived o order by o.created_at desc, id desc`.execute(
      tx,
    )
    return rows
  })
}
