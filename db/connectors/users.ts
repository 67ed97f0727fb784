import { sql } from 'kysely'
import type { Graph } from '../../workflows/graph/graph.ts'
import { listNamedConnectors } from '../../workflows/graph/named.ts'
import type { Db, Tx } from '../connection.ts'
import { cleanText } from '../text.ts'
import { keptVersionsOf, listConnectorNames, type Saved } from './kept.ts'

/** A workflow whose published version names a connector, and which version of it that has. */
export type ConnectorUser = { id: string; name: string; active: boolean; connectorVersion: number }

/** The workflows whose published version names a connector, by name. */
export async function listConnectorUsers(db: Db, id: string): Promise<ConnectorUser[]> {
  return db
    .selectFrom('versionConnectors as v')
    .innerJoin('workflows as w', (join) =>
      join.onRef('w.id', '=', 'v.workflowId').onRef('w.version', '=', 'v.version'),
    )
    .select(['w.id', 'w.name', 'w.active'])
    .select((eb) => eb.fn.min<number>('v.connectorVersion').as('connectorVersion'))
    .where('v.connectorId', '=', id)
    .groupBy(['w.id', 'w.name', 'w.active'])
    .orderBy('w.name')
    .execute()
}

/**
 * Notes which connectors a new version of a workflow names, and which version of each its nodes have that name none: see
 * keptVersionsOf. If all name one, it is the newest of theirs.
 */
export async function noteConnectors(
  tx: Tx,
  version: number,
  saved: Saved & { workflowId: string },
  { nodes }: Pick<Graph, 'nodes'>,
): Promise<void> {
  const names = listConnectorNames(nodes)
  if (names.length === 0) return
  const wanted = nodes
    .flatMap(listNamedConnectors)
    .map((one) => ({ named: cleanText(one.named), version: one.version ?? null }))
  await sql`
    insert into version_connectors (workflow_id, version, named, connector_id, connector_version)
    select ${saved.workflowId}, ${version}, p.named, p.id,
      case when w.every then w.version else p.version end
    from ${keptVersionsOf(saved, names)} as p
    join (select named, max(version) as version, bool_and(version is not null) as every
      from json_to_recordset(${JSON.stringify(wanted)}::json) as n (named text, version int)
      group by named) as w on w.named = p.named`.execute(tx)
}
