import { Fault } from '../fault.ts'
import { LEAST_PARTIAL } from '../redaction/detect.ts'
import type { Store } from '../scope.ts'
import { type CredentialData, openCredential } from './seal.ts'
import { type CredentialType, credentialKind } from './types.ts'

/** A credential with its secrets, for the call that uses it and for no longer. */
export type OpenedCredential = {
  id: string
  teamId: string
  name: string
  type: CredentialType
  data: CredentialData
  revision: number
  expiresAt: Date | null
  /** Why it cannot be used any more, if it cannot be. */
  broken: string | null
}

/** Opens a credential of the team. Throws NOT_FOUND if the team has none of this id. */
export async function openTeamCredential(
  store: Store,
  teamId: string,
  id: string,
): Promise<OpenedCredential> {
  const row = await store.db
    .selectFrom('credentials')
    .select(['name', 'type', 'sealed', 'wrapped', 'revision', 'expiresAt', 'broken'])
    .where('id', '=', id)
    .where('teamId', '=', teamId)
    .executeTakeFirst()
  if (!row) throw new Fault('NOT_FOUND', 'The credential no longer exists')
  const { sealed, wrapped, ...rest } = row
  const type = row.type as CredentialType
  const data = openCredential(store.keys, { teamId, id, type }, { sealed, wrapped })
  return { ...rest, id, teamId, type, data }
}

/** The exact values of a credential that are secret. */
export function listSecretValues({ type, data }: Pick<OpenedCredential, 'type' | 'data'>): string[] {
  return credentialKind(type).secrets.flatMap((key) => {
    const value = data[key]
    if (typeof value !== 'string' || value === '') return []
    return type === 'HTTP_HEADER' ? [value, ...listHeaderSecrets(value)] : [value]
  })
}

/**
 * What is secret by itself in a header: the token behind its scheme, the password in one of Basic, and the longer values
 * of cookies and parameters. Servers tell it without what stands around it.
 */
function listHeaderSecrets(header: string): string[] {
  const [, scheme = '', token = ''] = /^\s*([\w-]+)\s+(\S+)\s*$/.exec(header) ?? []
  const pair = /^basic$/i.test(scheme) ? Buffer.from(token, 'base64').toString() : ''
  const values = header.matchAll(/(?<![\w.-])[\w.-]+="?([^\s;,"]{12,})/g)
  const all = [token, pair.slice(pair.indexOf(':') + 1), ...[...values].map(([, value]) => value as string)]
  return all.filter((one) => one.length >= LEAST_PARTIAL)
}
