import { sql } from 'kysely'
import { validate as isUuid, v7 as uuid } from 'uuid'
import { BUILT_IN, findInCatalog } from '../../workflows/connectors/catalog.ts'
import type { ActionSchema, Connector, ConnectorAction } from '../../workflows/connectors/connector.ts'
import { change } from '../change.ts'
import { type Db, json, type Tx } from '../connection.ts'
import { Fault, invalid, missing } from '../fault.ts'
import { demandRoom, findOwned, guardName } from '../owned.ts'
import { rememberOwner } from '../owners.ts'
import { makePage, type Page, type PageRequest } from '../page.ts'
import { describeChange } from '../redaction/difference.ts'
import { demand, demandTeam, type Scope } from '../scope.ts'
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

/** An action as people and programs see it. */
export type ShownAction = Pick<ConnectorAction, 'name' | 'summary' | 'input' | 'safety'> & {
  id: string
  output: ActionSchema | null
}

/** What a connector is made of. */
export type ConnectorContent = Pick<Connector, 'title' | 'summary'> & {
  head: ConnectorHead
  actions: Record<string, ConnectorAction>
}

/** The connectors that a team can use: those of every team, then its own, each in the order of their names (VIEWER). */
export async function listConnectors(
  scope: Scope,
  { teamId, search, ...page }: PageRequest & { teamId: string; search?: string | undefined },
): Promise<Page<ConnectorItem>> {
  await demandTeam(scope, teamId, 'VIEWER')
  const own = await select(scope.store.db).where('c.teamId', '=', teamId).orderBy('c.name').execute()
  const all = [...Object.values(BUILT_IN).map(showBuiltIn), ...own.map(show)]
  const wanted = search?.toLowerCase()
  const found = wanted
    ? all.filter(({ name, title, summary }) => `${name}\n${title}\n${summary}`.toLowerCase().includes(wanted))
    : all
  const from = page.page * page.size
  return makePage(found.slice(from, from + page.size), found.length, page)
}

/** Reads a connector of a team, or one that every team has, by its id or its name (VIEWER). Throws NOT_FOUND. */
export async function readConnector(scope: Scope, id: string): Promise<ConnectorDetail> {
  const builtIn = findInCatalog(id)
  if (builtIn) {
    const { server = null, setup = null } = builtIn
    const none = { source: null, repeatable: [], paging: null, problems: [], usedBy: [] }
    return { ...showBuiltIn(builtIn), server, setup, ...none }
  }
  const row = await findConnector(scope, id)
  return { ...show(row), ...tellHead(row.head), usedBy: await listConnectorUsers(scope.store.db, id) }
}

/** What a team's connector is made of now (BUILDER). Throws NOT_FOUND. */
export async function readConnectorContent(
  scope: Scope,
  id: string,
): Promise<{ teamId: string; version: number; content: ConnectorContent }> {
  const { teamId, version, title, summary, head } = await findConnector(scope, id)
  demand(scope, teamId, 'BUILDER')
  const rows = await selectActions(scope.store.db, id, version).execute()
  const actions = Object.fromEntries(rows.map((row) => [row.id, row.action as unknown as ConnectorAction]))
  return { teamId, version, content: { title, summary, head: head as unknown as ConnectorHead, actions } }
}

/** The actions of a connector's newest version, or another, that have the words in them (VIEWER). Throws NOT_FOUND. */
export async function listActions(
  scope: Scope,
  id: string,
  { search, version, ...page }: PageRequest & { search?: string | undefined; version?: number | undefined },
): Promise<Page<ShownAction>> {
  const all = await readActions(scope, id, version)
  const wanted = search?.toLowerCase()
  const found = all.filter(
    ({ id: own, name, summary }) => !wanted || `${own}\n${name}\n${summary}`.toLowerCase().includes(wanted),
  )
  const from = page.page * page.size
  return makePage(found.slice(from, from + page.size), found.length, page)
}

async function readActions(scope: Scope, id: string, version: number | undefined): Promise<ShownAction[]> {
  const builtIn = findInCatalog(id)
  if (builtIn) return Object.entries(builtIn.actions).map(([own, action]) => showAction(own, action))
  const row = await findConnector(scope, id)
  const actions = await selectActions(scope.store.db, id, version ?? row.version).execute()
  return actions.map((one) => showAction(one.id, one.action as unknown as ConnectorAction))
}

function showAction(id: string, { name, summary, input, output, safety }: ConnectorAction): ShownAction {
  return { id, name, summary, input, output: output ?? null, safety }
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
 * with the new one (BUILDER). Throws NOT_FOUND, CONFLICT if the content is no change of the newest `version`, and as
 * createConnector.
 */
export async function updateConnector(
  scope: Scope,
  id: string,
  {
    name,
    content,
    version: from,
  }: { name?: string | undefined; content?: ConnectorContent | undefined; version: number },
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
    if (users.length > 0 && !force) throw new Fault('CONFLICT', describeUsers(name, users))
    await tx.deleteFrom('connectors').where('id', '=', id).execute()
    const workflows = users.length > 0 ? { workflows: users.map((user) => user.name) } : {}
    return { result: undefined, resourceId: id, details: { name, ...workflows } }
  })
}

/** What another version has of actions that the one before has not, by their ids. */
export type ActionChanges = { added: string[]; removed: string[]; changed: string[] }
const NO_CHANGES: ActionChanges = { added: [], removed: [], changed: [] }

async function compareActions(
  tx: Tx,
  id: string,
  version: number,
  next: Record<string, ConnectorAction>,
): Promise<ActionChanges> {
  const rows = await selectActions(tx, id, version).execute()
  const before = new Map(rows.map((row) => [row.id, JSON.stringify(row.action)]))
  return {
    added: Object.keys(next).filter((key) => !before.has(key)),
    removed: [...before.keys()].filter((key) => !Object.hasOwn(next, key)),
    changed: Object.entries(next).flatMap(([key, action]) =>
      before.has(key) && before.get(key) !== JSON.stringify(action) ? [key] : [],
    ),
  }
}

function countChanges({ added, removed, changed }: ActionChanges) {
  return { added: added.length, removed: removed.length, changed: changed.length }
}

async function addConnectorVersion(
  tx: Tx,
  connectorId: string,
  version: number,
  { head, actions }: ConnectorContent,
): Promise<void> {
  await tx
    .insertInto('connectorVersions')
    .values({ connectorId, version, head: json(head) })
    .execute()
  const rows = Object.entries(actions).map(([id, action], place) => ({
    ...{ connectorId, version, id, place },
    action: json(action),
  }))
  for (let at = 0; at < rows.length; at += AT_ONCE)
    await tx
      .insertInto('connectorActions')
      .values(rows.slice(at, at + AT_ONCE))
      .execute()
}

const AT_ONCE = 500

const selectActions = (db: Db, connectorId: string, version: number) =>
  db
    .selectFrom('connectorActions')
    .select(['id', 'action'])
    .where('connectorId', '=', connectorId)
    .where('version', '=', version)
    .orderBy('place')

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

const MAX_NAMED = 5

function describeUsers(name: string, users: ConnectorUser[]): string {
  const named = users.slice(0, MAX_NAMED).map((user) => `"${user.name}"`)
  const more = users.length - named.length
  const list = [...named, ...(more > 0 ? [`${more} more`] : [])].join(', ')
  return `The connector "${name}" is used by ${list}: an ADMIN can delete it with force`
}
