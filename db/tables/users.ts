import { sql } from 'kysely'
import type { Graph } from '../../workflows/graph/graph.ts'
import { listNamedTables } from '../../workflows/graph/tables.ts'
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
