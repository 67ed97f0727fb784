import { randomUUID } from 'node:crypto'
import type { Database } from '../../db/connection.ts'
import { type CredentialData, sealCredential } from '../../db/credentials/seal.ts'
import type { CredentialType } from '../../db/credentials/types.ts'
import type { Keys } from '../../db/seal.ts'

/** Adds a credential as it is stored, also with data that the API would refuse. Returns its id. */
export async function plantCredential(
  { db, keys }: { db: Database; keys: Keys },
  teamId: string,
  type: CredentialType,
  data: CredentialData,
): Promise<string> {
  const id = randomUUID()
  const sealed = sealCredential(keys, { teamId, id, type }, data)
  await db
    .insertInto('credentials')
    .values({ id, teamId, name: id, type, ...sealed, keys: Object.keys(data) })
    .execute()
  return id
}
