import { setTimeout as pause } from 'node:timers/promises'
import { type RawBuilder, sql } from 'kysely'
import { record, type Store } from './scope.ts'
import { readSettings } from './settings.ts'

const BATCH = 500
/** Temporal forgets by itself what is older than this. */
const HISTORY_DAYS = 31
/** Between the removals of two histories: errands that somebody waits for are not to stand behind thousands. */
const HISTORY_MS = 10
const FIRST_HISTORY_MS = 5_000

/**
 * Removes the ended runs that the settings of their workflows keep no longer, in small transactions with as much
 * rest between them as they took. Any number of processes may: what one has locked the others pass over. Ends early
 * when `signal` says so. Answers how many runs it removed.
 */
export async function pruneRuns(store: Store, signal?: AbortSignal): Promise<number> {
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

/** A place in a workflow's runs by age; the time as text, which keeps all its digits. */
type Place = { createdAt: string; id: string }

/** The newest run that has `count` younger ones of its workflow before it. */
async function findBehind(store: Store, workflowId: string, count: number): Promise<Place | undefined> {
  const { rows } = await sql<Place>`
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
  let last: Place = { createdAt: '-infinity', id: '00000000-0000-0000-0000-000000000000' }
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
 * Removes up to BATCH runs that come behind `last`, the oldest first, and queues the removal of what Temporal may
 * still know of them. (Each batch goes on where the last one ended: what that removed stands in the index until no
 * reader may need it.) Answers them, the youngest first. What a parent that is open may read stays, and so does a
 * failure that its error workflow has not been told of.
 */
function pruneBatch(
  store: Store,
  workflowId: string,
  outlived: RawBuilder<unknown>,
  last: Place,
  before: number,
): Promise<Place[]> {
  return record(store, async (tx) => {
    const { rows } = await sql<Place>`
      with outlived as materialized (
        select id, created_at, completed_at from executions e
        where workflow_id = ${workflowId} and status in ('SUCCESS', 'FAILED', 'CANCELLED') and ${outlived}
          and (created_at, id) > (${last.createdAt}::timestamptz, ${last.id}::uuid)
          and not exists (select from executions p
            where p.id = e.parent_id and not e.detached and p.status in ('PENDING', 'RUNNING'))
          and not exists (select from outbox b where b.subject_id = e.id and b.kind = 'ERROR')
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
