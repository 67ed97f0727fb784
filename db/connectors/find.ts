import { sql } from 'kysely'
import { validate as isUuid } from 'uuid'
import { findInCatalog } from '../../workflows/connectors/catalog.ts'
import type { Connector, ConnectorAction } from '../../workflows/connectors/connector.ts'
import type { ConnectorReference } from '../../workflows/graph/named.ts'
import { getOwn } from '../../workflows/json.ts'
import type { Db } from '../connection.ts'
import type { Store } from '../scope.ts'
import { cleanText } from '../text.ts'
import type { KeptVersion } from './kept.ts'

/** What a node names of a connector. */
export type NamedAction = { connector: string; action: string; version?: number | undefined }

/** An action with what all actions of its connector have. */
export type FoundAction = {
  connector: Pick<Connector, 'title' | 'server' | 'signIn' | 'setup' | 'options' | 'version'>
  action: ConnectorAction
}

/** What all actions of a version have in common, as it is stored. `source` is the address of the document, if it has one. */
export type ConnectorHead = Pick<Connector, 'server' | 'signIn' | 'setup'> & {
  source: string | null
  repeatable: string[]
  paging: 'link' | null
  problems: string[]
}

/**
 * The action that a node of an execution names. A node that names no version has the one that held when the workflow's
 * version was saved, whatever came after. Undefined if there is no such connector, version or action.
 */
export async function findActionOf(
  { db }: Store,
  executionId: string,
  { connector: named, action, version }: NamedAction,
): Promise<FoundAction | undefined> {
  const builtIn = lookUp(named, action)
  if (builtIn !== undefined) return builtIn ?? undefined
  const row = await db
    .selectFrom('executions as e')
    .innerJoin('connectors as c', 'c.teamId', 'e.teamId')
    .leftJoin('versionConnectors as v', (join) =>
      join
        .onRef('v.workflowId', '=', 'e.workflowId')
        .onRef('v.version', '=', 'e.workflowVersion')
        .onRef('v.connectorId', '=', 'c.id')
        .on('v.named', '=', cleanText(named)),
    )
    .select(['c.id', 'c.version', 'v.connectorVersion'])
    .where('e.id', '=', executionId)
    // The one that was meant when the version was saved, whatever it is called since.
    .where(sql<boolean>`(v.named is not null or ${isNamed(named)})`)
    .orderBy(sql`v.named is null`)
    .limit(1)
    .executeTakeFirst()
  return row && readAction(db, row.id, version ?? row.connectorVersion ?? row.version, action)
}

/** The action that a caller of the team names, of the newest version unless it is named. */
export async function findActionFor(
  db: Db,
  teamId: string,
  { connector: named, action, version }: NamedAction,
): Promise<FoundAction | undefined> {
  const builtIn = lookUp(named, action)
  if (builtIn !== undefined) return builtIn ?? undefined
  const row = await db
    .selectFrom('connectors as c')
    .select(['c.id', 'c.version'])
    .where('c.teamId', '=', teamId)
    .where(isNamed(named))
    .executeTakeFirst()
  return row && readAction(db, row.id, version ?? row.version, action)
}

/** The action that a node of a graph names, of the version that it names, else of the one that its workflow keeps. */
export async function findKeptAction(
  db: Db,
  { named, action, version }: ConnectorReference,
  kept: KeptVersion | undefined,
): Promise<FoundAction | undefined> {
  const builtIn = lookUp(named, action)
  if (builtIn !== undefined) return builtIn ?? undefined
  return kept && readAction(db, kept.id, version ?? kept.version, action)
}

/** Undefined for a name that is not in the catalog, null for one that has no such action. */
function lookUp(named: string, id: string): FoundAction | null | undefined {
  const connector = findInCatalog(named)
  if (!connector) return undefined
  const action = getOwn<ConnectorAction>(connector.actions, id)
  return action ? { connector, action } : null
}

/** Whether a connector `c` is the one of this id or name. */
function isNamed(named: string) {
  const text = cleanText(named)
  return isUuid(text)
    ? sql<boolean>`(c.id = ${text}::uuid or c.name = ${text})`
    : sql<boolean>`c.name = ${text}`
}

async function readAction(
  db: Db,
  id: string,
  version: number,
  action: string,
): Promise<FoundAction | undefined> {
  const row = await db
    .selectFrom('connectorActions as a')
    .innerJoin('connectorVersions as v', (join) =>
      join.onRef('v.connectorId', '=', 'a.connectorId').onRef('v.version', '=', 'a.version'),
    )
    .innerJoin('connectors as c', 'c.id', 'a.connectorId')
    .select(['c.title', 'v.head', 'a.action'])
    .where('a.connectorId', '=', id)
    .where('a.version', '=', version)
    .where('a.id', '=', cleanText(action))
    .executeTakeFirst()
  if (!row) return undefined
  const { server, signIn, setup } = row.head as unknown as ConnectorHead
  return {
    connector: {
      ...{ title: row.title, version, signIn },
      ...(server === undefined ? {} : { server }),
      ...(setup === undefined ? {} : { setup }),
    },
    action: row.action as unknown as ConnectorAction,
  }
}
