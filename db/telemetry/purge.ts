import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { write } from '../change.ts'
import type { Store } from '../scope.ts'

/** Spans are taken up to 30 days after their start, which may be an hour ahead of the clock: a day more is enough. */
const SPAN_DAYS = 31
const HOUR_DAYS = 400

/** So many rows are removed by one statement, and so many statements are made of each table in one round. */
const PURGED = 5_000
const ROUNDS = 400
const REST_MS = 20

/** Forgets the spans that are too old to come again, and the hours that nobody looks at any more. Any number may do so. */
export async function purgeTelemetry(store: Store, signal?: AbortSignal): Promise<void> {
  for (const [table, column, days] of [
    ['telemetry_spans', 'seen_at', SPAN_DAYS],
    ['telemetry_hours', 'hour', HOUR_DAYS],
  ] as const) {
    for (let round = 0; round < ROUNDS && !signal?.aborted; round++) {
      const { numAffectedRows = 0n } = await write(store, (tx) =>
        sql`delete from ${sql.table(table)} where ctid = any(array(
          select ctid from ${sql.table(table)} where ${sql.ref(column)} < now() - ${days} * interval '1 day'
          order by ${sql.ref(column)} limit ${PURGED} for update skip locked))`.execute(tx),
      )
      if (numAffectedRows < PURGED) break
      await pause(REST_MS)
    }
  }
}
