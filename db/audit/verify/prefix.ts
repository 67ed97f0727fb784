import { sql } from 'kysely'
import { type Db, openDatabase, readSnapshot } from '../../connection.ts'
import type { Keys } from '../../seal.ts'
import { readEntries, readUnsigned } from '../entries.ts'
import { readErasures } from '../erasure/erasures.ts'
import { readProofs } from '../proofs/proofs.ts'
import { walkChain } from './walk.ts'

/** The beginning of a chain, up to an entry, as `snapshot` shows it. */
export type ChainPrefix = { teamId: string; upTo: number; snapshot: string }

/** How many entries a beginning has, and what was found first; null if it is intact. */
export type PrefixResult = { entries: number; fault: string | null }

/** Checks what of a chain lies between its base and entry `upTo`, as `db` sees it, page by page. */
export async function walkPrefix(
  db: Db,
  keys: Keys,
  { teamId, upTo }: Omit<ChainPrefix, 'snapshot'>,
): Promise<PrefixResult> {
  const { base, noted, head, vouched } = await readProofs(db, keys, teamId)
  const ranges = await readUnsigned(db, teamId)
  const within = noted.filter(({ seq }) => seq <= upTo)
  const isErased = await readErasures(db, teamId, base.seq)
  const walk = walkChain(keys, teamId, { ranges, base, isErased, noted: within })
  for await (const row of readEntries(db, teamId, base.seq, upTo)) walk.add(row)
  const { entries, findings } = walk.end(vouched && head?.seq === upTo)
  return { entries, fault: findings[0]?.message ?? null }
}

/** Does the same on a connection of its own. */
export async function walkPrefixOf(url: string, keys: Keys, prefix: ChainPrefix): Promise<PrefixResult> {
  const { db, close } = openDatabase(url, { max: 1, name: 'perdure audit' })
  try {
    return await readSnapshot(db).execute(async (read) => {
      await sql`set transaction snapshot ${sql.lit(prefix.snapshot)}`.execute(read)
      return walkPrefix(read, keys, prefix)
    })
  } finally {
    await close()
  }
}
