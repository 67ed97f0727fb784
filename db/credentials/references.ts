import { sql } from 'kysely'
import { validate as isUuid } from 'uuid'
import { listCredentials } from '../../workflows/graph/credentials.ts'
import type { Graph } from '../../workflows/graph/graph.ts'
import { joinPath, type Path, type Problem } from '../../workflows/problem.ts'
import type { CredentialUse } from '../../workflows/secrets/uses.ts'
import type { Tx } from '../connection.ts'
import { Fault, invalid } from '../fault.ts'
import type { Store } from '../scope.ts'
import { findRequestFaults } from './requests.ts'
import { CREDENTIAL_TYPE_NAMES, type CredentialType, credentialKind } from './types.ts'

/** Something wrong with a credential that a node names: `at` is the node's index, `key` the path within its config. */
export type ReferenceProblem = Problem & {
  at: number
  key: Path
  id: string
  /** The credential fits, but not what the node does with it: where in its config that is. */
  ofRequest?: Path
}

/**
 * Finds the credentials of a graph that are not of the team, or of a type that their node does not take. The others are
 * held until the transaction ends: a deletion waits for it.
 */
export async function findCredentialProblems(
  store: Store,
  teamId: string,
  { nodes }: Pick<Graph, 'nodes'>,
): Promise<ReferenceProblem[]> {
  const named = nodes.flatMap((node, at) => listCredentials(node).map((reference) => ({ ...reference, at })))
  if (named.length === 0) return []
  const ids = [...new Set(named.map(({ id }) => id))].filter((id) => isUuid(id)).sort()
  const rows = await store.db
    .selectFrom('credentials')
    .select(['id', 'name', 'type', 'allowedHosts'])
    .where('teamId', '=', teamId)
    .where(sql<boolean>`id = any(${ids}::uuid[])`)
    .orderBy('id')
    .forKeyShare()
    .execute()
  const byId = new Map(rows.map((row) => [row.id, row]))
  return named.flatMap(({ id, at, path: key, uses }) => {
    const found = byId.get(id)
    const fits = (type: string) =>
      credentialKind(type as CredentialType).uses.some((use) => uses.includes(use))
    const within = (keys: Path) => keys.reduce<string>(joinPath, `nodes[${at}].config`)
    if (found && fits(found.type)) {
      const type = found.type as CredentialType
      const faults = findRequestFaults(nodes[at]!, key, { type, allowedHosts: found.allowedHosts })
      return faults.map(({ path, message }) => ({
        path: within(path),
        message,
        at,
        key,
        id,
        ofRequest: path,
      }))
    }
    const path = within(key)
    const types = CREDENTIAL_TYPE_NAMES.filter(fits).join(', ')
    const message = found
      ? `must be a credential of the type ${types}; "${found.name}" is of the type ${found.type}`
      : 'must be a credential of this team'
    return [{ path, message, at, key, id }]
  })
}

/** The problems of a graph's credentials that cannot be used until they are changed or connected again. */
export async function findBrokenCredentials(
  store: Store,
  teamId: string,
  { nodes }: Pick<Graph, 'nodes'>,
): Promise<Problem[]> {
  const named = nodes.flatMap((node, at) => listCredentials(node).map((reference) => ({ ...reference, at })))
  const ids = [...new Set(named.map(({ id }) => id))].filter((id) => isUuid(id))
  if (ids.length === 0) return []
  const rows = await store.db
    .selectFrom('credentials')
    .select(['id', 'broken'])
    .where('teamId', '=', teamId)
    .where(sql<boolean>`id = any(${ids}::uuid[])`)
    .where('broken', 'is not', null)
    .execute()
  const broken = new Map(rows.map((row) => [row.id, row.broken]))
  return named.flatMap(({ id, at, path }) => {
    const why = broken.get(id)
    if (!why) return []
    const within = path.reduce<string>(joinPath, `nodes[${at}].config`)
    return [{ path: within, message: `names a credential that cannot be used: ${why}` }]
  })
}

/** Notes which credentials a new version names. */
export async function noteCredentials(
  tx: Tx,
  workflowId: string,
  version: number,
  { nodes }: Pick<Graph, 'nodes'>,
): Promise<void> {
  const ids = new Set(nodes.flatMap(listCredentials).map(({ id }) => id))
  const rows = [...ids]
    .filter((id) => isUuid(id))
    .map((credentialId) => ({ workflowId, version, credentialId }))
  if (rows.length > 0) await tx.insertInto('versionCredentials').values(rows).execute()
}

/**
 * The name and type of a team's credential that is used outside of nodes. It is held until the commit: a deletion
 * waits. Throws INVALID for `credentialId` if it is not a credential of the team, or not for that use, which `purpose`
 * says in words.
 */
export async function demandCredential(
  tx: Tx,
  query: { teamId: string; credentialId: string; use: CredentialUse; purpose: string },
): Promise<{ name: string; type: CredentialType }> {
  const found = await tx
    .selectFrom('credentials')
    .select(['name', 'type'])
    .where('id', '=', query.credentialId)
    .where('teamId', '=', query.teamId)
    .forKeyShare()
    .executeTakeFirst()
  const fault = (message: string) => invalid([{ path: 'credentialId', message }])
  if (!found) throw fault('must be a credential of this team')
  const type = found.type as CredentialType
  if (!credentialKind(type).uses.includes(query.use))
    throw fault(`must be a credential for ${query.purpose}; "${found.name}" is of the type ${type}`)
  return { name: found.name, type }
}

/** Holds the credential by which a team's own mails go; null: they go by the service's server. Throws INVALID at `path`. */
export async function demandMailCredential(
  tx: Tx,
  teamId: string,
  credentialId: string | null,
  path: string,
): Promise<void> {
  if (credentialId === null) return
  await demandCredential(tx, { teamId, credentialId, use: 'MAIL', purpose: 'mail' }).catch((error) => {
    if (!(error instanceof Fault) || error.code !== 'INVALID') throw error
    throw invalid(error.problems.map(({ message }) => ({ path, message })))
  })
}
