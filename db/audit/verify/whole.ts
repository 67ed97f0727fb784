import { sql } from 'kysely'
import { openDatabase, readSnapshot } from '../../connection.ts'
import type { Keys } from '../../seal.ts'
import { type AuditVerification, verifyChain } from './verify.ts'
import type { Checkpoint } from './walk.ts'

/** A chain as `snapshot` shows it. */
export type WholeChain = { teamId: string; checkpoint: Checkpoint | undefined; snapshot: string }

/** Verifies a whole chain, entry by entry, on a connection of its own. */
export async function walkWhole(
  url: string,
  keys: Keys,
  { teamId, checkpoint, snapshot }: WholeChain,
): Promise<AuditVerification> {
  const { db, close } = openDatabase(url, { max: 1, name: 'perdure audit' })
  try {
    return await readSnapshot(db).execute(async (read) => {
      await sql`set transaction snapshot ${sql.lit(snapshot)}`.execute(read)
      return (await verifyChain(read, { keys }, teamId, checkpoint)).verification
    })
  } finally {
    await close()
  }
}
