import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import type { Db } from '../../connection.ts'
import { type CheckpointRow, streamCheckpoints } from '../checkpoints.ts'

/** A row of the checkpoints as it is stored. */
type StoredCheckpoint = CheckpointRow & { seqText: string; entryHash: Buffer | null }

/** The digest that represents a forged checkpoint in the entry that has reopened the chain: SHA-256, hexadecimal. */
export function digestCheckpoint({ seqText, hash, at, keyId, signature }: StoredCheckpoint): string {
  const parts = [seqText, hash.toString('hex'), at, keyId, signature.toString('hex')]
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}

/**
 * The forged checkpoints that are named by the entries which have reopened the chain: they cannot be removed, and their
 * digests were signed with the break. A caller must verify those entries too.
 */
async function readNamedForgeries(db: Db, teamId: string): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ forged: unknown }>`
    select details->'forged' as forged from audit_entries
    where team_id = ${teamId} and action = 'AUDIT_REOPENED'`.execute(db)
  return new Set(rows.flatMap(({ forged }) => (Array.isArray(forged) ? forged.map(String) : [])))
}

/** The checkpoints as streamCheckpoints reads them, without the forged ones that belong to a break. */
export async function* streamStandingCheckpoints(db: Db, teamId: string): AsyncGenerator<StoredCheckpoint> {
  const named = await readNamedForgeries(db, teamId)
  for await (const row of streamCheckpoints(db, teamId))
    if (named.size === 0 || !named.has(digestCheckpoint(row))) yield row
}
