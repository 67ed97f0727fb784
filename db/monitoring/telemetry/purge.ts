import { sql } from 'kysely'
import { purge } from '../../queue.ts'
import type { Store } from '../../scope.ts'

/** Spans are taken up to 30 days after their start, which may be an hour ahead of the clock: a day more is enough. */
const SPAN_DAYS = 31
const HOUR_DAYS = 400

/** The number of rows that one statement removes, and of statements for each table in one round. */
const PURGED = 5_000
const ROUNDS = 400

/**
 * Forgets the spans that are too old to come again, and the hours that are too old to be shown. Any number of processes
 * may do so.
 */
export async function purgeTelemetry(store: Store, signal?: AbortSignal): Promise<void> {
  for (const [table, column, days] of [
    ['telemetry_spans', 'seen_at', SPAN_DAYS],
    ['telemetry_hours', 'hour', HOUR_DAYS],
  ] as const) {
    const order = sql.ref(`q.${column}`)
    const which = sql`${order} < now() - ${days} * interval '1 day'`
    await purge(store, table, { which, order, piece: PURGED, pieces: ROUNDS, signal })
  }
}
