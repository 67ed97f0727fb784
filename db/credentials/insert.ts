import { v7 as uuid } from 'uuid'
import type { Tx } from '../connection.ts'
import { demandRoom } from '../owned.ts'
import type { Keys } from '../seal.ts'
import { type CredentialData, sealCredential } from './seal.ts'
import type { CredentialType } from './types.ts'

const MAX_CREDENTIALS = 1_000

export type NewCredential = { teamId: string; name: string; type: CredentialType; data: CredentialData }

/**
 * Adds a credential with data that has been read. Throws CONFLICT if the team has 1,000 of them already; for the
 * name, the verb around it is in `guardName`.
 */
export async function insertCredential(
  tx: Tx,
  keys: Keys,
  { teamId, name, type, data }: NewCredential,
): Promise<{ id: string; createdAt: Date }> {
  await demandRoom(tx, 'credentials', teamId, MAX_CREDENTIALS)
  const id = uuid()
  return tx
    .insertInto('credentials')
    .values({
      id,
      teamId,
      name,
      type,
      ...sealCredential(keys, { teamId, id, type }, data),
      ...describeData(data),
    })
    .returning(['id', 'createdAt'])
    .executeTakeFirstOrThrow()
}

/** What a credential's row says of its data in the open. */
export function describeData(data: CredentialData): { keys: string[]; allowedHosts: string[] | null } {
  const { allowedHosts } = data
  return { keys: Object.keys(data), allowedHosts: Array.isArray(allowedHosts) ? allowedHosts : null }
}
