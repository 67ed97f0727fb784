import { sql } from 'kysely'
import type { Db } from '../../connection.ts'
import type { Keys } from '../../seal.ts'
import { type ChainPrefix, type PrefixResult, walkPrefix } from './prefix.ts'
import { createTurns, runThread } from './turns.ts'

/** Checks what of a chain lies behind `base` up to entry `upTo`, as the snapshot `db` sees it. */
export type PrefixChecker = (
  db: Db,
  keys: Keys,
  part: Omit<ChainPrefix, 'snapshot'> & { base: number },
) => Promise<PrefixResult>

/**
 * Checks beginnings of chains beside the thread that serves all requests, one long one at a time: others wait, and
 * THROTTLED is thrown if too many do. `url` is the database, for a connection of the thread's own; a beginning of fewer
 * than `least` entries is checked without one, whose start takes longer.
 */
export function createPrefixChecker({ url, least = 1_000 }: { url: string; least?: number }): PrefixChecker {
  const inTurn = createTurns()
  return async (db, keys, { base, ...part }) => {
    if (part.upTo - base < least) return walkPrefix(db, keys, part)
    const { rows } = await sql<{ snapshot: string }>`select pg_export_snapshot() as snapshot`.execute(db)
    const prefix = { ...part, ...rows[0]! }
    return inTurn(part.teamId, async () => {
      const answer = await runThread({ url, keys, prefix })
      return (answer as { prefix: PrefixResult }).prefix
    })
  }
}
