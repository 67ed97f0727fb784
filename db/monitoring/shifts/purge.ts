import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { write } from '../../change.ts'
import type { Store } from '../../scope.ts'

/** What is older is in no reference any more. */
const KEPT_DAYS = 45
const BATCH = 500
const PAUSE_MS = 20

/**
 * Removes samples and scores that are no longer compared, in small statements with pauses; several processes may do so.
 * Stops early when `signal` is aborted. Returns how many it removed.
 */
export async function purgeSamples(store: Store, signal: AbortSignal): Promise<number> {
  let removed = 0
  for (const purge of [purgeDrift, purgeSentiment])
    for (let rows = BATCH; rows === BATCH && !signal.aborted; ) {
      rows = await purge(store)
      removed += rows
      await pause(PAUSE_MS)
    }
  return removed
}

async function purgeDrift(store: Store): Promise<number> {
  const { numAffectedRows } = await write(store, (tx) =>
    sql`delete from drift_samples where (execution_id, side) in (
      select execution_id, side from drift_samples where ended_at < now() - ${KEPT_DAYS} * interval '1 day'
      order by ended_at limit ${BATCH} for update skip locked)`.execute(tx),
  )
  return Number(numAffectedRows ?? 0)
}

async function purgeSentiment(store: Store): Promise<number> {
  const { numAffectedRows } = await write(store, (tx) =>
    sql`delete from sentiment_scores where message_id in (
      select message_id from sentiment_scores where said_at < now() - ${KEPT_DAYS} * interval '1 day'
      order by said_at limit ${BATCH} for update skip locked)`.execute(tx),
  )
  return Number(numAffectedRows ?? 0)
}
