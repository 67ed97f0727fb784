import { sql } from 'kysely'
import { record } from '../../change.ts'
import type { Store } from '../../scope.ts'

/** For how long a batch that has ended is kept, and how many of a workflow. */
export const BATCH_DAYS = 180
export const MOST_KEPT_BATCHES = 200

const CASES_AT_ONCE = 500
/** A round removes no more than so many batches; the next one goes on. */
const MOST_ROUNDS = 50

/** Removes batches that are past their time, the cases first, a few at once. Returns how many batches it has removed. */
export async function purgeBatches(store: Store, signal: AbortSignal): Promise<number> {
  const { rows } = await sql<{ id: string }>`
    select id from batch_runs where status not in ('PENDING', 'RUNNING')
      and created_at < now() - ${BATCH_DAYS} * interval '1 day'
    union
    select id from (
      select r.id, r.status, row_number() over (partition by r.workflow_id order by r.created_at desc, r.id desc) as nth
      from batch_runs r where r.workflow_id in (
        select workflow_id from batch_runs group by workflow_id having count(*) > ${MOST_KEPT_BATCHES})) ranked
    where nth > ${MOST_KEPT_BATCHES} and status not in ('PENDING', 'RUNNING')
    limit ${MOST_ROUNDS}`.execute(store.db)
  let removed = 0
  for (const { id } of rows) {
    let more = true
    while (more && !signal.aborted) more = await removeCases(store, id)
    if (signal.aborted) break
    await record(store, (tx) => tx.deleteFrom('batchRuns').where('id', '=', id).execute())
    removed++
  }
  return removed
}

async function removeCases(store: Store, runId: string): Promise<boolean> {
  return record(store, async (tx) => {
    const gone = await sql`delete from batch_cases where id in (
      select id from batch_cases where run_id = ${runId} limit ${CASES_AT_ONCE})`.execute(tx)
    return Number(gone.numAffectedRows ?? 0) === CASES_AT_ONCE
  })
}
