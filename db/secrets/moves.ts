import * as v from 'valibot'
import type { Rules } from '../../workflows/expressions/rules.ts'
import { replaceCredential } from '../../workflows/graph/credentials.ts'
import type { Graph, GraphNode } from '../../workflows/graph/graph.ts'
import { HIDDEN, listSecrets, moveSecret, valueAt } from '../../workflows/graph/secrets.ts'
import { nodeType } from '../../workflows/nodes/nodes.ts'
import { joinPath, type Path, type Problem } from '../../workflows/problem.ts'
import { findLiterals, nameLiteral, readConstant } from '../../workflows/secrets/literals.ts'
import type { Tx } from '../connection.ts'
import { readCredentialData } from '../credentials/data.ts'
import type { Store } from '../scope.ts'
import { type Keeping, keepSecret, type MovedSecret } from './keeping.ts'
import { planPass } from './passes.ts'

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

/** What moving the secrets of one graph goes by, and what of them is left in it. */
type Moving = Keeping & { rules: Rules; known: Map<string, GraphNode>; left: Problem[] }

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
  const moving: Moving = {
    ...{ tx, store: { ...store, db: tx }, teamId, name, dryRun, found, opened: new Map() },
    rules: graph.expressions ?? 1,
    known: new Map(known.map((node) => [node.id, node])),
    left: [],
  }
  const nodes: GraphNode[] = []
  for (const [at, node] of graph.nodes.entries()) {
    const named = await moveNamed(moving, node, at)
    const moved = requests ? await moveRequest(moving, named, at) : named
    nodes.push(moved === node ? node : orderConfig(moved))
  }
  return { graph: { ...graph, nodes }, made: [...found.values()], left: moving.left }
}

/** Moves the secrets that the node's type names. */
async function moveNamed(moving: Moving, node: GraphNode, at: number): Promise<GraphNode> {
  let moved = node
  for (const place of listSecrets(node)) {
    const given = valueAt(node.config, place)
    const value = typeof given !== 'string' || given === HIDDEN ? undefined : readSecret(moving, node, given)
    const path = namePath(at, place)
    if (value === undefined || value.trim() === '') continue
    const { data, problems } = readCredentialData('SIGNATURE', { secret: value })
    if (problems.length > 0) {
      const message = `stays in the graph, since a credential cannot hold it: ${problems[0]!.message}`
      moving.left.push({ path, message })
      continue
    }
    const beside = [...place.slice(0, -1), 'credentialId']
    const stored = moving.known.get(node.id)
    const before = [
      valueAt(node.config, beside),
      stored?.type === node.type && valueAt(stored.config, beside),
    ]
    const id = await keepSecret(moving, { type: 'SIGNATURE', data, node, path }, before)
    moved = moveSecret(moved, place, id)
  }
  return moved
}

// A CRYPTO node renders its secret; a webhook compares the text literally.
function readSecret({ rules }: Moving, { type }: GraphNode, text: string): string | undefined {
  return type === 'CRYPTO' ? readConstant(text, rules) : text
}

/** Moves the first secret that is written into a request; a node has one credential, so the others stay. */
async function moveRequest(moving: Moving, node: GraphNode, at: number): Promise<GraphNode> {
  const { rules, known, left } = moving
  const [literal, ...others] = findLiterals(node, rules)
  if (!literal) return node
  const tell = (which: typeof literal, why: string) =>
    left.push({ path: namePath(at, which.path), message: `${nameLiteral(which)} stays in the graph: ${why}` })
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
  const stored = known.get(node.id)
  const { type, data, config } = plan
  const path = namePath(at, literal.path)
  const before = [stored && valueAt(stored.config, ['credentialId'])]
  const id = await keepSecret(moving, { type, data, node, path }, before)
  return replaceCredential({ ...node, config }, ['credentialId'], id)
}

function namePath(at: number, path: Path): string {
  return path.reduce<string>(joinPath, `nodes[${at}].config`)
}

/** A copy of the node whose config has its keys in the order of its schema, as one that is sent again will have. */
function orderConfig(node: GraphNode): GraphNode {
  const parsed = v.safeParse(nodeType(node.type)!.config, node.config)
  return parsed.success ? { ...node, config: parsed.output } : node
}
