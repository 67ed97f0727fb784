import { Fault } from '../fault.ts'
import { LEAST_PARTIAL } from '../redaction/detect.ts'
import type { Store } from '../scope.ts'
import type { Keys } from '../seal.ts'
import { readCustomPairs } from './custom.ts'
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
  /** The instance's admin decided that requests through a proxy close nothing, or took that back. */
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
  return openSealed(store.keys, { teamId, id }, { ...row, type: row.type as CredentialType })
}

type SealedRow = Omit<OpenedCredential, 'id' | 'teamId' | 'data'> & { sealed: Buffer; wrapped: Buffer }

/** Opens what is stored of a credential. */
export function openSealed(
  keys: Keys,
  { teamId, id }: { teamId: string; id: string },
  { sealed, wrapped, ...rest }: SealedRow,
): OpenedCredential {
  const data = openCredential(keys, { teamId, id, type: rest.type }, { sealed, wrapped })
  return { ...rest, id, teamId, data }
}

/** Shorter names, and addresses of mail, are those of people. */
const KEY_AS_NAME = /^[^\s@]{12,}$/

/** The exact values of a credential that are secret. */
export function listSecretValues({ type, data }: Pick<OpenedCredential, 'type' | 'data'>): string[] {
  const texts = (keys: readonly string[]) =>
    keys.map((key) => data[key]).filter((value) => typeof value === 'string')
  if (type === 'HTTP_CUSTOM') {
    const { headers, query } = readCustomPairs(data)
    const own = Object.values(headers).flatMap((value) => [value, ...listHeaderSecrets(value)])
    return [...own, ...Object.values(query)]
  }
  const values = texts(credentialKind(type).secrets).filter((value) => value !== '')
  if (type === 'HTTP_HEADER') return values.flatMap((value) => [value, ...listHeaderSecrets(value)])
  // The last part of the address is the token, which may turn up alone.
  if (type === 'DISCORD_WEBHOOK')
    return values.flatMap((value) => [value, ...(/([^/?#]+)\/?(?:[?#].*)?$/s.exec(value)?.slice(1) ?? [])])
  if (type === 'HTTP_BASIC') return [...values, ...listKeys(String(data.username), String(data.password))]
  return values
}

/** Many services take a key as the user name, and no password or any short word. */
function listKeys(username: string, password: string): string[] {
  return password.length < LEAST_PARTIAL && KEY_AS_NAME.test(username) ? [username] : []
}

/**
 * The parts of a header that are secret by themselves: the token behind its scheme, the password in one of Basic, and
 * the longer values of cookies and parameters. Servers repeat them without the text around them.
 */
function listHeaderSecrets(header: string): string[] {
  const [, scheme = '', token = ''] = /^\s*([\w-]+)\s+(\S+)\s*$/.exec(header) ?? []
  const pair = /^basic$/i.test(scheme) ? Buffer.from(token, 'base64').toString() : ''
  const [username = '', ...password] = pair.split(':')
  const login = [password.join(':'), ...listKeys(username, password.join(':'))]
  const values = header.matchAll(/(?<![\w.-])[\w.-]+="?([^\s;,"]{12,})/g)
  const all = [token, ...login, ...[...values].map(([, value]) => value as string)]
  return all.filter((one) => one.length >= LEAST_PARTIAL)
}
