import { sql } from 'kysely'
import type { Db, Tx } from '../../connection.ts'
import type { Keys } from '../../seal.ts'
import type { Verdict } from '../verify/walk.ts'
import {
  ensurePublicKey,
  type PublicKeys,
  readPublicKeys,
  signPublicly,
  verifyPublicly,
} from './publickeys.ts'

/** How many checkpoints of a chain were signed, so that one that is gone is missed. */
export type CheckpointCount = { count: number; keyId: string; signature: Buffer }

/** Counts a checkpoint that the transaction has just added. The caller lets one after the other do so. */
export async function countCheckpoint(tx: Tx, keys: Keys, teamId: string): Promise<void> {
  const known = await readCheckpointCount(tx, teamId)
  // A wrong count stays wrong: only the operator can have it signed anew.
  if (known && !isCounted(await readPublicKeys(tx, keys), teamId, known)) return
  if (!known && (await hasOthers(tx, teamId))) return
  await signCheckpointCount(tx, keys, teamId, (known?.count ?? 0) + 1)
}

/** Signs how many checkpoints there are. */
export async function signCheckpointCount(tx: Tx, keys: Keys, teamId: string, count: number): Promise<void> {
  await ensurePublicKey(tx, keys)
  const keyId = keys.current
  const signature = signPublicly(keys, keyId, countText(teamId, count))
  await sql`insert into audit_checkpoint_counts (team_id, count, key_id, signature)
    values (${teamId}, ${count}, ${keyId}, ${signature})
    on conflict (team_id) do update set count = excluded.count, key_id = excluded.key_id,
      signature = excluded.signature`.execute(tx)
}

export async function readCheckpointCount(db: Db, teamId: string): Promise<CheckpointCount | undefined> {
  const { rows } = await sql<CheckpointCount>`
    select count, key_id, signature from audit_checkpoint_counts where team_id = ${teamId}`.execute(db)
  return rows[0]
}

/** The fault in the number of checkpoints, of which `found` are present and signed. */
export function findCountFault(
  known: CheckpointCount | undefined,
  publicKeys: PublicKeys,
  teamId: string,
  found: number,
): { verdict: Verdict; message: string } | undefined {
  const missing = (message: string) => ({ verdict: 'checkpoint_missing' as const, message })
  if (!known) return found === 0 ? undefined : missing('What was signed of the number of checkpoints is gone')
  if (!isCounted(publicKeys, teamId, known))
    return {
      verdict: 'checkpoint_invalid',
      message: 'The number of checkpoints is not signed by this installation',
    }
  if (known.count === found) return undefined
  return missing(`There are ${found} checkpoints, but ${known.count} is what was signed of their number`)
}

function isCounted(
  publicKeys: PublicKeys,
  teamId: string,
  { count, keyId, signature }: CheckpointCount,
): boolean {
  return verifyPublicly(publicKeys, keyId, countText(teamId, count), signature)
}

async function hasOthers(db: Db, teamId: string): Promise<boolean> {
  const { rows } = await sql`select from audit_checkpoints where team_id = ${teamId} limit 2`.execute(db)
  return rows.length > 1
}

function countText(teamId: string, count: number): string {
  return `perdure-audit-checkpoint-count-v1\n${teamId}\n${count}\n`
}
