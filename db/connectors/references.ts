import { sql } from 'kysely'
import { findInCatalog } from '../../workflows/connectors/catalog.ts'
import { findInputProblems } from '../../workflows/connectors/input.ts'
import { type ConnectorReference, listNamedConnectors } from '../../workflows/graph/connectors.ts'
import type { Graph } from '../../workflows/graph/graph.ts'
import { joinPath, type Path, type Problem } from '../../workflows/problem.ts'
import { askForSimilar } from '../../workflows/suggest.ts'
import type { Db } from '../connection.ts'
import type { Store } from '../scope.ts'
import { cleanText } from '../text.ts'
import { findActionFor } from './find.ts'

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
  const named = nodes.flatMap((node, at) => listNamedConnectors(node).map((one) => ({ ...one, at })))
  const problems: Problem[] = []
  for (const one of named) problems.push(...(await checkReference(db, teamId, one, imported)))
  return problems
}

async function checkReference(db: Db, teamId: string, one: Named, imported: boolean): Promise<Problem[]> {
  const within = (...keys: Path) => [...one.path, ...keys].reduce<string>(joinPath, `nodes[${one.at}].config`)
  const { named, action: id, version } = one
  const found = await findActionFor(db, teamId, { connector: named, action: id, version })
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
  if (await hasConnector(db, teamId, named)) {
    const message =
      version === undefined ? 'must be an action of this connector' : 'must be an action of this version'
    return [{ path: within('action'), message }]
  }
  return imported ? [] : [{ path: within('connector'), message: 'must be a connector of this team' }]
}

async function hasConnector(db: Db, teamId: string, named: string): Promise<boolean> {
  const row = await db
    .selectFrom('connectors')
    .select('id')
    .where('teamId', '=', teamId)
    .where(sql<boolean>`${cleanText(named)} in (id::text, name)`)
    .executeTakeFirst()
  return row !== undefined
}

/** The connectors that nodes name and the team does not have, with the index of the node. */
export async function findMissingConnectors(
  db: Db,
  teamId: string,
  nodes: Graph['nodes'],
): Promise<(ConnectorReference & { at: number })[]> {
  const named = nodes.flatMap((node, at) => listNamedConnectors(node).map((one) => ({ ...one, at })))
  const missing: Named[] = []
  for (const one of named)
    if (!findInCatalog(one.named) && !(await hasConnector(db, teamId, one.named))) missing.push(one)
  return missing
}
