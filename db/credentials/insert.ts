import { v7 as uuid } from 'uuid'
import type { Tx } from '../connection.ts'
import { Fault } from '../fault.ts'
import { countRows } from '../page.ts'
import type { Keys } from '../seal.ts'
import { type CredentialData, sealCredential } from './seal.ts'
import type { CredentialType } from './types.ts'

const MAX_CREDENTIALS = 1_000

export type NewCredential = { teamId: string; name: string; type: CredentialType; data: CredentialData }

/**
 * Adds a credential with data that has been read. Throws CONFLICT if the team has 1,000 of them already; for the
 * name, the verb around it is `guardCredentialName`.
 */
export async function insertCredential(
  tx: Tx,
  keys: Keys,
  { teamId, name, type, data }: NewCredential,
): Promise<{ id: string; createdAt: Date }> {
  await demandRoom(tx, teamId)
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

/** Throws CONFLICT where `work` finds that the team has a credential of this name. */
export async function guardCredentialName<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if ((error as { constraint?: string }).constraint === 'credentials_team_id_name_key')
      throw new Fault('CONFLICT', `The team already has a credential named "${name}"`)
    throw error
  }
}

// The lock on the team's row makes others who count wait, but not inserts that only refer to the team.
async function demandRoom(tx: Tx, teamId: string): Promise<void> {
  await tx.selectFrom('teams').select('id').where('id', '=', teamId).forNoKeyUpdate().execute()
  const total = await countRows(tx.selectFrom('credentials').where('teamId', '=', teamId))
  if (total < MAX_CREDENTIALS) return
  throw new Fault('CONFLICT', `The team has ${MAX_CREDENTIALS} credentials already; more are not allowed`)
}
