import type { GraphNode } from '../../workflows/graph/graph.ts'
import type { Changed } from '../change.ts'
import type { Tx } from '../connection.ts'
import { insertCredential } from '../credentials/insert.ts'
import { openTeamCredential } from '../credentials/open.ts'
import type { CredentialData } from '../credentials/seal.ts'
import type { CredentialType } from '../credentials/types.ts'
import { Fault } from '../fault.ts'
import { holdTeam } from '../owned.ts'
import type { Store } from '../scope.ts'

/** A secret of a graph that is in a credential now: at which paths it was. */
export type MovedSecret = { id: string; name: string; type: CredentialType; paths: string[] }

/** A secret to be kept in a credential, and whose it is. */
type FoundSecret = { type: CredentialType; data: CredentialData; node: GraphNode; path: string }

/** Where secrets of one workflow are kept from now on. */
export type Keeping = {
  tx: Tx
  /** That of the transaction. */
  store: Store
  teamId: string
  /** The workflow's name. */
  name: string
  dryRun: boolean
  /** The credentials that were made so far, by their type and data. */
  found: Map<string, MovedSecret>
  /** The data of credentials that the graph had, by type and id; undefined if they are not to be had. */
  opened: Map<string, CredentialData | undefined>
}

/** How much of the names of a workflow and a node the name of a credential has. */
const MAX_PART = 90

/**
 * The id of the credential that holds the secret from now on: one of `before` that has it already, one that was made
 * for an equal secret, or a new one. Throws CONFLICT if the team has too many credentials.
 */
export async function keepSecret(keeping: Keeping, wanted: FoundSecret, before: unknown[]): Promise<string> {
  const { tx, store, teamId, dryRun, found } = keeping
  const { type, data, node, path } = wanted
  for (const id of before) {
    if (typeof id === 'string' && isSame(await openOnce(keeping, id, type), data)) return id
  }
  const key = JSON.stringify([type, data])
  const shared = found.get(key)
  if (shared) {
    shared.paths.push(path)
    return shared.id
  }
  // Others who add credentials wait from here on.
  if (!dryRun) await holdTeam(tx, teamId)
  const name = await findFreeName(keeping, node)
  const id = dryRun ? '' : (await insertCredential(tx, store.keys, { teamId, name, type, data })).id
  found.set(key, { id, name, type, paths: [path] })
  return id
}

/** The audit entries of credentials that a verb has made beside what it did. */
export function auditMoved(made: MovedSecret[], workflowId: string): NonNullable<Changed<unknown>['also']> {
  return made.map(({ id, name, type }) => ({
    act: 'CREDENTIAL_CREATED',
    resourceId: id,
    details: { name, type, movedFrom: workflowId },
  }))
}

async function openOnce(
  { store, teamId, opened }: Keeping,
  id: string,
  type: CredentialType,
): Promise<CredentialData | undefined> {
  const key = `${type} ${id}`
  if (!opened.has(key)) opened.set(key, await open(store, teamId, id, type))
  return opened.get(key)
}

async function open(
  store: Store,
  teamId: string,
  id: string,
  type: CredentialType,
): Promise<CredentialData | undefined> {
  try {
    const opened = await openTeamCredential(store, teamId, id)
    return opened.type === type ? opened.data : undefined
  } catch (error) {
    if (error instanceof Fault && error.code === 'NOT_FOUND') return undefined
    throw error
  }
}

function isSame(a: CredentialData | undefined, b: CredentialData): boolean {
  const sorted = (data: CredentialData) =>
    JSON.stringify(Object.entries(data).sort(([x], [y]) => (x < y ? -1 : 1)))
  return a !== undefined && sorted(a) === sorted(b)
}

/** A name for the credential of a node's secret, if need be with the first number that is free. */
async function findFreeName(keeping: Keeping, node: GraphNode): Promise<string> {
  const { tx, teamId, found } = keeping
  const parts = [keeping.name, node.name]
  const wanted = parts.map((part) => part.slice(0, MAX_PART).trim().toWellFormed()).join(': ')
  const rows = await tx
    .selectFrom('credentials')
    .select('name')
    .where('teamId', '=', teamId)
    .where('name', '>=', wanted)
    .execute()
  const all = new Set([...rows.map(({ name }) => name), ...[...found.values()].map(({ name }) => name)])
  for (let number = 1; ; number++) {
    const name = number === 1 ? wanted : `${wanted} ${number}`
    if (!all.has(name)) return name
  }
}
