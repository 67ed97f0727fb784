import { sql } from 'kysely'
import { findInCatalog } from '../../workflows/connectors/catalog.ts'
import type { Graph } from '../../workflows/graph/graph.ts'
import { listNamedConnectors } from '../../workflows/graph/named.ts'
import type { Db, Tx } from '../connection.ts'
import { cleanText } from '../text.ts'

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
 * Notes which connectors a new version of a workflow names, and which version of each it has: the one that its nodes name,
 * else that of the workflow's version before, else the newest.
 */
export async function noteConnectors(
  tx: Tx,
  workflowId: string,
  version: number,
  { nodes }: Pick<Graph, 'nodes'>,
): Promise<void> {
  const named = nodes.flatMap(listNamedConnectors).filter((one) => !findInCatalog(one.named))
  if (named.length === 0) return
  const names = JSON.stringify(
    named.map((one) => ({ named: cleanText(one.named), wanted: one.version ?? null })),
  )
  await sql`
    insert into version_connectors (workflow_id, version, named, connector_id, connector_version)
    select ${workflowId}, ${version}, n.named, c.id, coalesce(n.wanted, b.connector_version, c.version)
    from (select named, max(wanted) as wanted from json_to_recordset(${names}::json) as n (named text, wanted int)
      group by named) as n
    join workflows as w on w.id = ${workflowId}
    join connectors as c on c.team_id = w.team_id and (c.id::text = n.named or c.name = n.named)
    left join lateral (select connector_version from version_connectors as p
      where p.workflow_id = ${workflowId} and p.version < ${version} and p.named = n.named and p.connector_id = c.id
      order by p.version desc limit 1) as b on true
    on conflict do nothing`.execute(tx)
}
