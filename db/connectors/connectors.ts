import { sql } from 'kysely'
import { validate as isUuid, v7 as uuid } from 'uuid'
import { BUILT_IN, findInCatalog } from '../../workflows/connectors/catalog.ts'
import type { Connector, ConnectorAction } from '../../workflows/connectors/connector.ts'
import { change } from '../change.ts'
import type { Db } from '../connection.ts'
import { Fault, invalid, missing } from '../fault.ts'
import { demandRoom, findOwned, guardName, tellUse } from '../owned.ts'
import { rememberOwner } from '../owners.ts'
import { cutPage, type Page, type PageRequest } from '../page.ts'
import { describeChange } from '../redaction/difference.ts'
import { demand, demandTeam, type Scope } from '../scope.ts'
import {
  type ActionChanges,
  type ActionQuery,
  addConnectorVersion,
  compareActions,
  countChanges,
  listActions,
  listBuiltIn,
  NO_CHANGES,
  readActions,
  type ShownAction,
} from './actions.ts'
import type { ConnectorHead } from './find.ts'
import { type ConnectorUser, listConnectorUsers } from './users.ts'

export const MAX_CONNECTORS = 100

type ConnectorKind = 'BUILT_IN' | 'OPENAPI'

/** A connector without its actions. Those that every team has are named by their names, and belong to no team. */
export type ConnectorItem = {
  id: string
  teamId: string | null
  name: string
  title: string
  summary: string
  kind: ConnectorKind
  version: number
  signIn: readonly string[]
  createdAt: Date | null
  updatedAt: Date | null
}

/** What all its actions have in common, and which workflows use it. */
export type ConnectorDetail = ConnectorItem & {
  server: string | null
  setup: string | null
  source: string | null
  repeatable: string[]
  paging: 'link' | null
  problems: string[]
  usedBy: ConnectorUser[]
}

/** What a connector is made of. */
export type ConnectorContent = Pick<Connector, 'title' | 'summary'> & {
  head: ConnectorHead
  actions: Record<string, ConnectorAction>
}

/** The connectors that a team can use: those of every team, then its own, each in the order of their names (VIEWER). */
export async function listConnectors(
  scope: Scope,
  { teamId, ...query }: PageRequest & { teamId: string; search?: string | undefined },
): Promise<Page<ConnectorItem>> {
  await demandTeam(scope, teamId, 'VIEWER')
  const own = await select(scope.store.db).where('c.teamId', '=', teamId).orderBy('c.name').execute()
  const all = [...Object.values(BUILT_IN).map(showBuiltIn), ...own.map(show)]
  return cutPage(all, query, ({ name, title, summary }) => `${name}\n${title}\n${summary}`)
}

/**
 * Reads a connector of a team, or one that every team has, by its id or its name, with a page of the actions of its newest
 * version, or another, that have the words in them (VIEWER). Throws NOT_FOUND.
 */
export async function readConnector(
  scope: Scope,
  id: string,
  { version, ...query }: ActionQuery & { version?: number | undefined },
): Promise<{ connector: ConnectorDetail; actions: Page<ShownAction> }> {
  const builtIn = findInCatalog(id)
  if (builtIn) {
    const { server = null, setup = null } = builtIn
    const none = { source: null, repeatable: [], paging: null, problems: [], usedBy: [] }
    const connector = { ...showBuiltIn(builtIn), server, setup, ...none }
    return { connector, actions: listBuiltIn(builtIn, query) }
  }
  const row = await findConnector(scope, id)
  const { db } = scope.store
  const usedBy = await listConnectorUsers(db, id)
  const actions = await listActions(db, id, version ?? row.version, query)
  return { connector: { ...show(row), ...tellHead(row.head), usedBy }, actions }
}

/** What a team's connector is made of now (BUILDER). Throws NOT_FOUND. */
export async function readConnectorContent(
  scope: Scope,
  id: string,
): Promise<{ teamId: string; version: number; content: ConnectorContent }> {
  const { teamId, version, title, summary, head } = await findConnector(scope, id)
  demand(scope, teamId, 'BUILDER')
  const actions = await readActions(scope.store.db, id, version)
  return { teamId, version, content: { title, summary, head: head as unknown as ConnectorHead, actions } }
}

/**
 * Adds a connector (BUILDER). Throws INVALID for the name of one that every team has; CONFLICT if the team has one of this
 * name, or 100.
 */
export async function createConnector(
  scope: Scope,
  { teamId, name, content }: { teamId: string; name: string; content: ConnectorContent },
): Promise<ConnectorDetail> {
  demandFreeName(name)
  const id = uuid()
  const created = await guardName('connectors', name, () =>
    change(scope, 'CONNECTOR_CREATED', teamId, async (tx) => {
      await demandRoom(tx, 'connectors', teamId, MAX_CONNECTORS)
      const { title, summary } = content
      await tx
        .insertInto('connectors')
        .values({ id, teamId, name, title, summary, kind: 'OPENAPI', version: 1 })
        .execute()
      await addConnectorVersion(tx, id, 1, content)
      const row = await findOwned(select(tx).where('c.id', '=', id), 'connector')
      const details = {
        name,
        server: content.head.server ?? null,
        actions: Object.keys(content.actions).length,
      }
      return { result: row, resourceId: id, details }
    }),
  )
  rememberOwner(scope.store, id, teamId)
  return { ...show(created), ...tellHead(created.head), usedBy: [] }
}

/**
 * Changes the name, or what a connector is made of: that is a new version, and workflows keep theirs until they are saved
 * with the new one (BUILDER). Throws NOT_FOUND, CONFLICT if the content is no change of version `from`, the newest, and
 * as createConnector.
 */
export async function updateConnector(
  scope: Scope,
  id: string,
  { name, content, from }: { name?: string | undefined; content?: ConnectorContent; from?: number },
): Promise<ConnectorDetail & { changes: ActionChanges }> {
  const { teamId } = await findConnector(scope, id)
  if (name !== undefined) demandFreeName(name)
  return guardName('connectors', name ?? '', () =>
    change(scope, 'CONNECTOR_UPDATED', teamId, async (tx) => {
      const before = await findOwned(select(tx).where('c.id', '=', id).forNoKeyUpdate('c'), 'connector')
      if (content && before.version !== from)
        throw new Fault('CONFLICT', 'Somebody else has changed the connector: read it again')
      const version = before.version + (content ? 1 : 0)
      const changes = content ? await compareActions(tx, id, before.version, content.actions) : NO_CHANGES
      await tx
        .updateTable('connectors')
        .set({
          name: name ?? before.name,
          ...(content ? { title: content.title, summary: content.summary } : {}),
          version,
          updatedAt: sql`now()`,
        })
        .where('id', '=', id)
        .execute()
      if (content) await addConnectorVersion(tx, id, version, content)
      const row = await findOwned(select(tx).where('c.id', '=', id), 'connector')
      const usedBy = await listConnectorUsers(tx, id)
      const told = describeChange(
        { name: before.name, version: before.version },
        { name: row.name, version: row.version },
      )
      const details = { name: row.name, ...told, ...countChanges(changes) }
      return { result: { ...show(row), ...tellHead(row.head), usedBy, changes }, resourceId: id, details }
    }),
  )
}

const PUBLISHED = { who: 'Published workflows', way: 'Give them another one first' }

/**
 * Deletes a connector (BUILDER). Throws NOT_FOUND, and CONFLICT if published workflows use it, unless an ADMIN says
 * `force`.
 */
export async function deleteConnector(scope: Scope, id: string, force = false): Promise<void> {
  const { teamId } = await findConnector(scope, id)
  if (force) demand(scope, teamId, 'ADMIN')
  await change(scope, 'CONNECTOR_DELETED', teamId, async (tx, held) => {
    if (force) demand(held, teamId, 'ADMIN')
    const { name } = await findOwned(select(tx).where('c.id', '=', id).forUpdate('c'), 'connector')
    const users = await listConnectorUsers(tx, id)
    if (users.length > 0 && !force)
      throw new Fault('CONFLICT', tellUse(`connector "${name}"`, users, PUBLISHED))
    await tx.deleteFrom('connectors').where('id', '=', id).execute()
    const workflows = users.length > 0 ? { workflows: users.map((user) => user.name) } : {}
    return { result: undefined, resourceId: id, details: { name, ...workflows } }
  })
}

function demandFreeName(name: string): void {
  if (findInCatalog(name))
    throw invalid([{ path: 'name', message: 'must be another name: every team has a connector of this one' }])
}

async function findConnector(scope: Scope, id: string) {
  // Those that every team has are found by their names before.
  if (!isUuid(id)) throw missing('connector')
  const row = await findOwned(select(scope.store.db).where('c.id', '=', id), 'connector')
  demand(scope, row.teamId, 'VIEWER')
  return row
}

const select = (db: Db) =>
  db
    .selectFrom('connectors as c')
    .innerJoin('connectorVersions as v', (join) =>
      join.onRef('v.connectorId', '=', 'c.id').onRef('v.version', '=', 'c.version'),
    )
    .select(['c.id', 'c.teamId', 'c.name', 'c.title', 'c.summary', 'c.kind', 'c.version'])
    .select(['c.createdAt', 'c.updatedAt', 'v.head'])

type Row = Awaited<ReturnType<ReturnType<typeof select>['executeTakeFirstOrThrow']>>

function show({ head, kind, ...row }: Row): ConnectorItem {
  return { ...row, kind: kind as ConnectorKind, signIn: (head as unknown as ConnectorHead).signIn }
}

function tellHead(
  stored: unknown,
): Omit<ConnectorHead, 'server' | 'setup' | 'signIn'> & Pick<ConnectorDetail, 'server' | 'setup'> {
  const { signIn: _, server = null, setup = null, ...head } = stored as ConnectorHead
  return { ...head, server, setup }
}

function showBuiltIn({ name, title, summary, version, signIn }: Connector): ConnectorItem {
  const none = { teamId: null, createdAt: null, updatedAt: null }
  return { id: name, name, title, summary, kind: 'BUILT_IN', version, signIn, ...none }
}
