import { sql } from 'kysely'
import { findInCatalog } from '../../workflows/connectors/catalog.ts'
import { findInputProblems } from '../../workflows/connectors/input.ts'
import type { Graph } from '../../workflows/graph/graph.ts'
import { type ConnectorReference, listNamedConnectors } from '../../workflows/graph/named.ts'
import { joinPath, type Path, type Problem } from '../../workflows/problem.ts'
import { askForSimilar } from '../../workflows/suggest.ts'
import type { Db } from '../connection.ts'
import type { Store } from '../scope.ts'
import { cleanText } from '../text.ts'
import { type FoundAction, findActionFor } from './find.ts'

type Named = ConnectorReference & { at: number }

/**
 * Everything that nodes say of connectors and that is wrong: connectors and actions that there are not, and what of an
 * input can be told to be wrong before its expressions are computed. A workflow that is imported may name connectors that
 * the team does not have yet (`imported`).
 */
export async function findConnectorProblems(
  { db }: Store,
  teamId: string,
  { nodes }: Pick<Graph, 'nodes'>,
  { imported = false } = {},
): Promise<Problem[]> {
  const named = listPlaced(nodes)
  const known = await readKnown(db, teamId, named)
  // Many nodes may carry out the same action.
  const actions = new Map<string, FoundAction | undefined>()
  const problems: Problem[] = []
  for (const one of named) {
    const key = JSON.stringify([one.named, one.version, one.action])
    if (!actions.has(key)) {
      const wanted = { connector: one.named, action: one.action, version: one.version }
      actions.set(key, await findActionFor(db, teamId, wanted))
    }
    problems.push(...checkReference(one, actions.get(key), { isKnown: known.has(one.named), imported }))
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

/** Those of the names, or ids, by which nodes name connectors that the team has. */
async function readKnown(db: Db, teamId: string, named: Named[]): Promise<Set<string>> {
  const names = [...new Set(named.map((one) => cleanText(one.named)))].filter((one) => !findInCatalog(one))
  if (names.length === 0) return new Set()
  const rows = await db
    .selectFrom('connectors')
    .select(['id', 'name'])
    .where('teamId', '=', teamId)
    .where(sql<boolean>`(id::text = any(${names}::text[]) or name = any(${names}::text[]))`)
    .execute()
  return new Set(rows.flatMap(({ id, name }) => [id, name]))
}

/** The connectors that nodes name and the team does not have, with the index of the node. */
export async function findMissingConnectors(db: Db, teamId: string, nodes: Graph['nodes']): Promise<Named[]> {
  const named = listPlaced(nodes)
  const known = await readKnown(db, teamId, named)
  return named.filter((one) => !findInCatalog(one.named) && !known.has(one.named))
}
