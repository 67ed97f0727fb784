import * as v from 'valibot'
import { replaceCredential } from '../../workflows/graph/credentials.ts'
import type { Graph, GraphNode } from '../../workflows/graph/graph.ts'
import { HIDDEN, listSecrets, moveSecret, valueAt } from '../../workflows/graph/secrets.ts'
import { nodeType } from '../../workflows/nodes/nodes.ts'
import { joinPath, type Path, type Problem } from '../../workflows/problem.ts'
import { findLiterals, nameLiteral, readConstant } from '../../workflows/secrets/literals.ts'
import type { Changed } from '../change.ts'
import type { Tx } from '../connection.ts'
import { readCredentialData } from '../credentials/data.ts'
import { insertCredential } from '../credentials/insert.ts'
import { openTeamCredential } from '../credentials/open.ts'
import type { CredentialData } from '../credentials/seal.ts'
import type { CredentialType } from '../credentials/types.ts'
import { Fault } from '../fault.ts'
import { holdTeam } from '../owned.ts'
import type { Store } from '../scope.ts'
import { planPass } from './passes.ts'

/** A secret of a graph that is in a credential now: at which paths it was. */
export type MovedSecret = { id: string; name: string; type: CredentialType; paths: string[] }

/** A graph without the secrets that were moved, the credentials that are new, and the secrets that are still in it. */
export type Moved = { graph: Graph; made: MovedSecret[]; left: Problem[] }

/** What a mover needs to know: `name` is the workflow's, `known` its nodes as they are stored. */
export type MoveOptions = {
  teamId: string
  name: string
  known?: GraphNode[] | undefined
  /** Whether to move the secrets in requests, too. Those that cannot be moved are then in `left`. */
  requests?: boolean
  /** The credentials that were made for other versions of the workflow, by their data: it gets those made for this one. */
  found?: Map<string, MovedSecret>
  /** Changes nothing: the ids of new credentials are empty. */
  dryRun?: boolean
}

/** A secret to be kept in a credential, and whose it is. */
type Wanted = { type: CredentialType; data: CredentialData; node: GraphNode; path: string }

/** How much of the names of a workflow and a node the name of a credential has. */
const MAX_PART = 90

/**
 * Moves the secrets of webhooks and of CRYPTO into credentials, and those of requests if that is wanted: equal ones
 * into one. A secret that the credential of the stored node has keeps that one; another one makes a new credential,
 * because earlier versions go on with theirs. `store` is that of the transaction. Throws CONFLICT if the team has too
 * many credentials.
 */
export async function moveSecrets(
  tx: Tx,
  store: Store,
  graph: Graph,
  { teamId, name, known = [], requests = false, dryRun = false, found = new Map() }: MoveOptions,
): Promise<Moved> {
  const rules = graph.expressions ?? 1
  const knownById = new Map(known.map((node) => [node.id, node]))
  const opened = new Map<string, CredentialData | undefined>()
  const left: Problem[] = []

  /** The id of the credential that holds the secret from now on. */
  async function keep({ type, data, node, path }: Wanted, before: unknown[]): Promise<string | undefined> {
    for (const id of before) {
      if (typeof id !== 'string') continue
      const key = `${type} ${id}`
      if (!opened.has(key)) opened.set(key, await open({ ...store, db: tx }, teamId, id, type))
      if (isSame(opened.get(key), data)) return id
    }
    const key = JSON.stringify([type, data])
    const shared = found.get(key)
    if (shared) {
      shared.paths.push(path)
      return shared.id
    }
    // Others who add credentials wait from here on.
    if (!dryRun) await holdTeam(tx, teamId)
    const wanted = [name, node.name].map((part) => part.slice(0, MAX_PART).trim().toWellFormed()).join(': ')
    const free = await findFreeName(
      tx,
      teamId,
      wanted,
      [...found.values()].map((one) => one.name),
    )
    const id = dryRun ? '' : (await insertCredential(tx, store.keys, { teamId, name: free, type, data })).id
    found.set(key, { id, name: free, type, paths: [path] })
    return id
  }

  async function moveNamed(node: GraphNode, at: number): Promise<GraphNode> {
    let moved = node
    for (const place of listSecrets(node)) {
      const given = valueAt(node.config, place)
      const value = typeof given !== 'string' || given === HIDDEN ? undefined : readSecret(node, given)
      const path = namePath(at, place)
      if (value === undefined || value.trim() === '') continue
      const { data, problems } = readCredentialData('SIGNATURE', { secret: value })
      if (problems.length > 0) {
        left.push({
          path,
          message: `stays in the graph, since a credential cannot hold it: ${problems[0]!.message}`,
        })
        continue
      }
      const beside = [...place.slice(0, -1), 'credentialId']
      const stored = knownById.get(node.id)
      const before = [
        valueAt(node.config, beside),
        stored?.type === node.type && valueAt(stored.config, beside),
      ]
      const id = await keep({ type: 'SIGNATURE', data, node, path }, before)
      moved = moveSecret(moved, place, id)
    }
    return moved
  }

  // A CRYPTO node renders its secret; a webhook compares the text literally.
  function readSecret({ type }: GraphNode, text: string): string | undefined {
    return type === 'CRYPTO' ? readConstant(text, rules) : text
  }

  async function moveRequest(node: GraphNode, at: number): Promise<GraphNode> {
    const [literal, ...others] = findLiterals(node, rules)
    if (!literal) return node
    const tell = (which: typeof literal, why: string) =>
      left.push({
        path: namePath(at, which.path),
        message: `${nameLiteral(which)} stays in the graph: ${why}`,
      })
    const plan =
      node.type === 'HTTP_REQUEST'
        ? planPass(node, literal, rules)
        : { why: 'it is one of a tool, which needs a credential of its own' }
    if ('why' in plan) {
      for (const each of [literal, ...others]) tell(each, plan.why)
      return node
    }
    for (const each of others)
      tell(each, 'a node has one credential, and this one has got it for another secret')
    const stored = knownById.get(node.id)
    const { type, data, config } = plan
    const path = namePath(at, literal.path)
    const id = await keep({ type, data, node, path }, [stored && valueAt(stored.config, ['credentialId'])])
    return replaceCredential({ ...node, config }, ['credentialId'], id)
  }

  const nodes: GraphNode[] = []
  for (const [at, node] of graph.nodes.entries()) {
    const named = await moveNamed(node, at)
    const moved = requests ? await moveRequest(named, at) : named
    nodes.push(moved === node ? node : orderConfig(moved))
  }
  return { graph: { ...graph, nodes }, made: [...found.values()], left }
}

/** The audit entries of credentials that a verb has made beside what it did. */
export function auditMoved(made: MovedSecret[], workflowId: string): NonNullable<Changed<unknown>['also']> {
  return made.map(({ id, name, type }) => ({
    act: 'CREDENTIAL_CREATED',
    resourceId: id,
    details: { name, type, movedFrom: workflowId },
  }))
}

function namePath(at: number, path: Path): string {
  return path.reduce<string>(joinPath, `nodes[${at}].config`)
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

/** A copy of the node whose config has its keys in the order of its schema, as one that is sent again will have. */
function orderConfig(node: GraphNode): GraphNode {
  const parsed = v.safeParse(nodeType(node.type)!.config, node.config)
  return parsed.success ? { ...node, config: parsed.output } : node
}

/** The wanted name, or with the first number that is free. */
async function findFreeName(tx: Tx, teamId: string, wanted: string, taken: string[]): Promise<string> {
  const rows = await tx
    .selectFrom('credentials')
    .select('name')
    .where('teamId', '=', teamId)
    .where('name', '>=', wanted)
    .execute()
  const all = new Set([...rows.map(({ name }) => name), ...taken])
  for (let number = 1; ; number++) {
    const name = number === 1 ? wanted : `${wanted} ${number}`
    if (!all.has(name)) return name
  }
}
