import { sql } from 'kysely'
import type { ActionSchema, Connector, ConnectorAction } from '../../workflows/connectors/connector.ts'
import { type Db, json, type Tx } from '../connection.ts'
import { containing, countRows, cutPage, makePage, type Page, type PageRequest } from '../page.ts'
import { cleanText } from '../text.ts'
import type { ConnectorHead } from './find.ts'

/** An action as people and programs see it. */
export type ShownAction = Pick<ConnectorAction, 'name' | 'summary' | 'input' | 'safety'> & {
  id: string
  output: ActionSchema | null
}

/** A page of actions, of those that have the words in their id, name or summary. */
export type ActionQuery = PageRequest & { search?: string | undefined }

/** The actions of a connector that every team has. */
export function listBuiltIn({ actions }: Connector, query: ActionQuery): Page<ShownAction> {
  const all = Object.entries(actions).map(([id, action]) => showAction(id, action))
  return cutPage(all, query, ({ id, name, summary }) => `${id}\n${name}\n${summary}`)
}

/** The actions of a version, those first that its document names first. */
export async function listActions(
  db: Db,
  connectorId: string,
  version: number,
  { search, ...page }: ActionQuery,
): Promise<Page<ShownAction>> {
  let found = selectActions(db, connectorId, version)
  if (search)
    found = found.where(
      sql<boolean>`id || E'\\n' || name || E'\\n' || summary ilike ${containing(cleanText(search))}`,
    )
  const total = await countRows(found)
  const rows = await found
    .select(['id', 'action'])
    .orderBy('place')
    .limit(page.size)
    .offset(page.page * page.size)
    .execute()
  const shown = rows.map(({ id, action }) => showAction(id, action as unknown as ConnectorAction))
  return makePage(shown, total, page)
}

/** All actions of a version, by their ids. */
export async function readActions(
  db: Db,
  connectorId: string,
  version: number,
): Promise<Record<string, ConnectorAction>> {
  const rows = await selectActions(db, connectorId, version)
    .select(['id', 'action'])
    .orderBy('place')
    .execute()
  return Object.fromEntries(rows.map((row) => [row.id, row.action as unknown as ConnectorAction]))
}

const selectActions = (db: Db, connectorId: string, version: number) =>
  db.selectFrom('connectorActions').where('connectorId', '=', connectorId).where('version', '=', version)

function showAction(id: string, { name, summary, input, output, safety }: ConnectorAction): ShownAction {
  return { id, name, summary, input, output: output ?? null, safety }
}

/** What another version has of actions that the one before has not, by their ids. */
export type ActionChanges = { added: string[]; removed: string[]; changed: string[] }
export const NO_CHANGES: ActionChanges = { added: [], removed: [], changed: [] }

/** What the actions are beside those of a version. */
export async function compareActions(
  tx: Tx,
  id: string,
  version: number,
  next: Record<string, ConnectorAction>,
): Promise<ActionChanges> {
  const known = Object.entries(await readActions(tx, id, version))
  const before = new Map(known.map(([key, action]) => [key, JSON.stringify(action)]))
  return {
    added: Object.keys(next).filter((key) => !before.has(key)),
    removed: [...before.keys()].filter((key) => !Object.hasOwn(next, key)),
    changed: Object.entries(next).flatMap(([key, action]) =>
      before.has(key) && before.get(key) !== JSON.stringify(action) ? [key] : [],
    ),
  }
}

export function countChanges({ added, removed, changed }: ActionChanges) {
  return { added: added.length, removed: removed.length, changed: changed.length }
}

/** Adds a version with its actions. */
export async function addConnectorVersion(
  tx: Tx,
  connectorId: string,
  version: number,
  { head, actions }: { head: ConnectorHead; actions: Record<string, ConnectorAction> },
): Promise<void> {
  await tx
    .insertInto('connectorVersions')
    .values({ connectorId, version, head: json(head) })
    .execute()
  const rows = Object.entries(actions).map(([id, action], place) => ({
    ...{ connectorId, version, id, place, name: cleanText(action.name), summary: cleanText(action.summary) },
    action: json(action),
  }))
  for (let at = 0; at < rows.length; at += AT_ONCE)
    await tx
      .insertInto('connectorActions')
      .values(rows.slice(at, at + AT_ONCE))
      .execute()
}

const AT_ONCE = 500
