import { createHmac } from 'node:crypto'
import { sql } from 'kysely'
import { write } from '../change.ts'
import type { Tx } from '../connection.ts'
import { Fault } from '../fault.ts'
import type { Store } from '../scope.ts'
import { type Keys, purposeKey } from '../seal.ts'

/**
 * Counts something that `who` has done with a widget today (UTC). Throws THROTTLED above `most`; it is not counted if
 * the transaction is rolled back.
 */
export async function countToday(tx: Tx, widgetId: string, who: string, most: number): Promise<void> {
  const { rows } = await sql<{ used: number | null; wait: number }>`
    with added as (
      insert into widget_counts as c (widget_id, day, who, used)
      values (${widgetId}, (now() at time zone 'UTC')::date, ${who}, 1)
      on conflict (widget_id, day, who) do update set used = c.used + 1 where c.used < ${most}
      returning used)
    select (select used from added) as used,
      ceil(extract(epoch from (date_trunc('day', now(), 'UTC') + interval '1 day' - now())))::int as wait`.execute(
    tx,
  )
  const { used, wait } = rows[0]!
  if (used === null)
    throw new Fault('THROTTLED', 'There were too many messages today. Try again tomorrow', {
      retryAfter: wait,
    })
}

/** The key of a network in the counts, from which its address cannot be read. */
export function hashAddress(keys: Keys, network: string): string {
  const key = purposeKey(keys, 'visitor-address')
  return `ip ${createHmac('sha256', key).update(network).digest('base64url').slice(0, 22)}`
}

/** Removes the counts of days that are over. */
export async function purgeWidgetCounts(store: Store): Promise<void> {
  await write(store, (tx) =>
    sql`delete from widget_counts where day < (now() at time zone 'UTC')::date`.execute(tx),
  )
}
