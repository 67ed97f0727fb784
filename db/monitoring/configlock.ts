import { sql } from 'kysely'
import type { Tx } from '../connection.ts'

/** The second key of the advisory locks of teams whose config is changed. */
const CONFIG = 7_226_076

/** Makes changes of a team's config come one after the other, also where there is no row yet. Held until the commit. */
export async function lockConfig(tx: Tx, teamId: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${teamId}, ${CONFIG}))`.execute(tx)
}
