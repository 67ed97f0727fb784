import { type RawBuilder, sql } from 'kysely'
import { findInCatalog } from '../../workflows/connectors/catalog.ts'
import type { GraphNode } from '../../workflows/graph/graph.ts'
import { listNamedConnectors } from '../../workflows/graph/named.ts'
import type { Db } from '../connection.ts'
import { cleanText } from '../text.ts'

/** A graph that is saved: its workflow, if it has one yet, and the version that it continues if that is known. */
export type Saved = { teamId: string; workflowId: string | undefined; from?: number | undefined }

/** A connector that nodes name, and the version of it that those have which name none. */
export type KeptVersion = { id: string; name: string; version: number }

/** The team's connectors that nodes name, by the id or name that they write. */
export async function readKeptVersions(
  db: Db,
  saved: Saved,
  nodes: GraphNode[],
): Promise<Map<string, KeptVersion>> {
  const names = listConnectorNames(nodes)
  if (names.length === 0) return new Map()
  const { rows } = await sql<KeptVersion & { named: string }>`
    select p.named, p.id, c.name, p.version from ${keptVersionsOf(saved, names)} as p join connectors as c on c.id = p.id`.execute(
    db,
  )
  return new Map(rows.map(({ named, ...kept }) => [named, kept]))
}

/** The names of connectors that nodes write, without those that every team has, as they are stored. */
export const listConnectorNames = (nodes: GraphNode[]): string[] => [
  ...new Set(
    nodes
      .flatMap(listNamedConnectors)
      .filter(({ named }) => !findInCatalog(named))
      .map(({ named }) => cleanText(named)),
  ),
]

/**
 * Rows `named`, `id`, `version`. A name means the connector that has it now, else the one that it meant in the workflow's
 * version before: connectors are renamed. Its version is the one that the workflow had before, by whatever name, else the
 * newest.
 */
export function keptVersionsOf({ teamId, workflowId, from }: Saved, names: string[]): RawBuilder<unknown> {
  const before = sql`from version_connectors as p where p.workflow_id = ${workflowId ?? null}::uuid`
  const nearest = sql`order by (p.version = ${from ?? null}::int) is true desc, p.version desc, p.named = n.named desc limit 1`
  return sql`(
    select n.named, found.id, found.version from unnest(${names}::text[]) as n (named)
    cross join lateral (
      select c.id, coalesce(
        (select p.connector_version ${before} and p.connector_id = c.id ${nearest}), c.version) as version
      from connectors as c
      where c.team_id = ${teamId} and (c.id::text = lower(n.named) or c.name = n.named
        or c.id = (select p.connector_id ${before} and p.named = n.named ${nearest}))
      order by c.id::text = lower(n.named) desc, c.name = n.named desc limit 1) as found)`
}
