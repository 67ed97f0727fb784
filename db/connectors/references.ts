import { findInCatalog } from '../../workflows/connectors/catalog.ts'
import { findInputProblems } from '../../workflows/connectors/input.ts'
import type { Graph, GraphNode } from '../../workflows/graph/graph.ts'
import { type ConnectorReference, listNamedConnectors } from '../../workflows/graph/named.ts'
import { replaceSecret } from '../../workflows/graph/secrets.ts'
import { joinPath, type Path, type Problem } from '../../workflows/problem.ts'
import { askForSimilar } from '../../workflows/suggest.ts'
import type { Db } from '../connection.ts'
import type { Store } from '../scope.ts'
import { cleanText } from '../text.ts'
import { type FoundAction, findKeptAction } from './find.ts'
import { readKeptVersions, type Saved } from './kept.ts'

type Named = ConnectorReference & { at: number }

/**
 * Everything that nodes say of connectors and that is wrong: connectors and actions that there are not, and what of an
 * input can be told to be wrong before its expressions are computed. A workflow that is imported may name connectors that
 * the team does not have yet (`imported`).
 */
export async function findConnectorProblems(
  { db }: Store,
  saved: Saved,
  { nodes }: Pick<Graph, 'nodes'>,
  { imported = false } = {},
): Promise<Problem[]> {
  const kept = await readKeptVersions(db, saved, nodes)
  // Many nodes may carry out the same action.
  const actions = new Map<string, FoundAction | undefined>()
  const problems: Problem[] = []
  for (const one of listPlaced(nodes)) {
    const meant = kept.get(cleanText(one.named))
    const key = JSON.stringify([one.named, one.version, one.action])
    if (!actions.has(key)) actions.set(key, await findKeptAction(db, one, meant))
    problems.push(...checkReference(one, actions.get(key), { isKnown: meant !== undefined, imported }))
  }
  return problems
}

function checkReference(
  one: Named,
  found: FoundAction | undefined,
  { isKnown, imported }: { isKnown: boolean; imported: boolean },
): Problem[] {
  const within = (...keys: Path) => [...one.path, ...keys].reduce<string>(joinPath, `nodes[${one.at}].config`)
  const { named, action: id, version } = one
  if (found) {
    // An agent's tool may leave to the model what is required.
    const isTool = one.path.length > 0
    const problems = findInputProblems(found.action.input, one.input, { partial: isTool })
    return problems.map(({ path, message }) => ({ path: within('input', ...path), message }))
  }
  const builtIn = findInCatalog(named)
  if (builtIn) {
    const similar = askForSimilar(id, Object.keys(builtIn.actions))
    return [{ path: within('action'), message: `must be an action of ${builtIn.title}${similar}` }]
  }
  if (isKnown) {
    const message =
      version === undefined ? 'must be an action of this connector' : 'must be an action of this version'
    return [{ path: within('action'), message }]
  }
  return imported ? [] : [{ path: within('connector'), message: 'must be a connector of this team' }]
}

const listPlaced = (nodes: Graph['nodes']): Named[] =>
  nodes.flatMap((node, at) => listNamedConnectors(node).map((one) => ({ ...one, at })))

/** The connectors that nodes name and the team does not have, with the index of the node. */
export async function findMissingConnectors(db: Db, saved: Saved, nodes: GraphNode[]): Promise<Named[]> {
  const kept = await readKeptVersions(db, saved, nodes)
  return listPlaced(nodes).filter(({ named }) => !findInCatalog(named) && !kept.has(cleanText(named)))
}

/**
 * Copies of nodes that name the team's connectors by their names, and no version of them: a name may be the same in another
 * team, the numbers of versions are not.
 */
export async function nameConnectors(db: Db, saved: Saved, nodes: GraphNode[]): Promise<GraphNode[]> {
  const kept = await readKeptVersions(db, saved, nodes)
  return nodes.map((node) =>
    listNamedConnectors(node).reduce((copy, { named, path }) => {
      const name = kept.get(cleanText(named))?.name ?? named
      const renamed = replaceSecret(copy, [...path, 'connector'], name)
      return replaceSecret(renamed, [...path, 'version'], undefined)
    }, node),
  )
}
