import { LRUCache } from 'lru-cache'
import { perDatabase } from './cache.ts'
import { missing } from './fault.ts'
import type { Store } from './scope.ts'

/** Tables whose rows belong to one team and never change it. */
export type OwnedTable =
  | 'workflows'
  | 'executions'
  | 'variables'
  | 'connectors'
  | 'dataTables'
  | 'credentials'
  | 'pauses'
  | 'agentChatSessions'
  | 'guardrailExemplars'
  | 'guardrailRules'
  | 'widgets'

const NOUNS: Record<OwnedTable, string> = {
  workflows: 'workflow',
  executions: 'execution',
  variables: 'variable',
  connectors: 'connector',
  dataTables: 'data table',
  credentials: 'credential',
  pauses: 'approval',
  agentChatSessions: 'chat session',
  guardrailExemplars: 'exemplar',
  guardrailRules: 'rule',
  widgets: 'widget',
}

const cacheOf = perDatabase(() => new LRUCache<string, string>({ max: 50_000 }))

/**
 * The id of the team that a row belongs to; undefined if there is no such row. It may be remembered from
 * before the row was deleted, so use it for counting requests, never for rights.
 */
export async function findOwner(store: Store, table: OwnedTable, id: string): Promise<string | undefined> {
  const known = cacheOf(store.db).get(id)
  if (known) return known
  const row = await store.db.selectFrom(table).select('teamId').where('id', '=', id).executeTakeFirst()
  if (row) rememberOwner(store, id, row.teamId)
  return row?.teamId
}

/**
 * The id of the team that a row belongs to, read from the database and so fit for rights. Throws NOT_FOUND.
 */
export async function readOwner({ db }: Store, table: OwnedTable, id: string): Promise<string> {
  const row = await db.selectFrom(table).select('teamId').where('id', '=', id).executeTakeFirst()
  if (!row) throw missing(NOUNS[table])
  return row.teamId
}

/** Remembers the team of a row that has just been created. */
export function rememberOwner(store: Store, id: string, teamId: string): void {
  cacheOf(store.db).set(id, teamId)
}
