import { sql } from 'kysely'
import { purge } from '../../queue.ts'
import type { Store } from '../../scope.ts'

/** Older samples are in no reference, so they are not needed. */
const KEPT_DAYS = 45
const BATCH = 500

/**
 * Removes samples and scores that are no longer compared, in small statements with pauses; several processes may do so.
 * Stops early when `signal` is aborted. Returns how many it removed.
 */
export async function purgeSamples(store: Store, signal: AbortSignal): Promise<number> {
  const remove = (table: string, column: string) => {
    const order = sql.ref(`q.${column}`)
    const which = sql`${order} < now() - ${KEPT_DAYS} * interval '1 day'`
    return purge(store, table, { which, order, piece: BATCH, signal })
  }
  return (await remove('drift_samples', 'ended_at')) + (await remove('sentiment_scores', 'said_at'))
}
