import { sql } from 'kysely'
import type { Graph, GraphNode } from '../../workflows/graph/graph.ts'
import { listNamedTables, replaceTable } from '../../workflows/graph/named.ts'
import type { Db, Tx } from '../connection.ts'
import { cleanText } from '../text.ts'

/** The active workflows whose published version names a data table, by its id or its name: in nodes, and in agents' tools. */
export async function listTableUsers(
  db: Db,
  { teamId, id, name }: { teamId: string; id: string; name: string },
): Promise<{ id: string; name: string }[]> {
  return db
    .selectFrom('versionTables as t')
    .innerJoin('workflows as w', (join) =>
      join.onRef('w.id', '=', 't.workflowId').onRef('w.version', '=', 't.version'),
    )
    .select(['w.id', 'w.name'])
    .where('w.teamId', '=', teamId)
    .where('w.active', '=', true)
    .where(sql<boolean>`t.named in (${id}, ${name})`)
    .distinct()
    .orderBy('w.name')
    .execute()
}

/** Notes which data tables a new version names. */
export async function noteTables(
  tx: Tx,
  workflowId: string,
  version: number,
  { nodes }: Pick<Graph, 'nodes'>,
): Promise<void> {
  const names = new Set(nodes.flatMap(listNamedTables).map(({ named }) => named))
  const rows = [...names].map((named) => ({ workflowId, version, named: cleanText(named) }))
  if (rows.length > 0)
    await tx
      .insertInto('versionTables')
      .values(rows)
      .onConflict((at) => at.doNothing())
      .execute()
}

/** The names of the team's data tables that nodes name, by what they are named. */
async function readNames(db: Db, teamId: string, nodes: GraphNode[]): Promise<Map<string, string>> {
  const named = [...new Set(nodes.flatMap(listNamedTables).map((one) => one.named))]
  if (named.length === 0) return new Map()
  const rows = await db
    .selectFrom('dataTables')
    .select(['id', 'name'])
    .where('teamId', '=', teamId)
    .where(sql<boolean>`(id::text = any(${named.map((one) => cleanText(one))}::text[])
      or name = any(${named.map((one) => cleanText(one))}::text[]))`)
    .execute()
  return new Map(rows.flatMap(({ id, name }) => [[name, name] as const, [id, name] as const]))
}

/** Copies of nodes that name data tables by their names: those are the same in another team. */
export async function nameTables(db: Db, teamId: string, nodes: GraphNode[]): Promise<GraphNode[]> {
  const names = await readNames(db, teamId, nodes)
  return nodes.map((node) =>
    listNamedTables(node).reduce(
      (copy, { named, path }) => replaceTable(copy, path, names.get(named) ?? named),
      node,
    ),
  )
}

/** The data tables that nodes name and the team does not have, with the index of the node. */
export async function findMissingTables(db: Db, teamId: string, nodes: GraphNode[]) {
  const names = await readNames(db, teamId, nodes)
  return nodes.flatMap((node, at) =>
    listNamedTables(node)
      .filter(({ named }) => !names.has(named))
      .map((reference) => ({ ...reference, at })),
  )
}
