import type { Db } from './connection.ts'
import { missing } from './fault.ts'
import type { Store } from './scope.ts'

/** What belongs to a team from its first to its last day. */
export type Owned = 'workflows' | 'executions' | 'variables' | 'pauses'

const NOUNS: Record<Owned, string> = {
  workflows: 'workflow',
  executions: 'execution',
  variables: 'variable',
  pauses: 'approval',
}

const MAX_CACHED = 50_000

const caches = new WeakMap<Db, Map<string, string>>()

/**
 * The team that something belongs to; undefined where it is not there (or is no longer there, perhaps: what once
 * was found is remembered). For counting, never for rights.
 */
export async function findOwner(store: Store, table: Owned, id: string): Promise<string | undefined> {
  const known = cacheOf(store).get(id)
  if (known) return known
  const row = await store.db.selectFrom(table).select('teamId').where('id', '=', id).executeTakeFirst()
  if (row) rememberOwner(store, id, row.teamId)
  return row?.teamId
}

/** The same as it stands, for rights. Throws NOT_FOUND. */
export async function readOwner({ db }: Store, table: Owned, id: string): Promise<string> {
  const row = await db.selectFrom(table).select('teamId').where('id', '=', id).executeTakeFirst()
  if (!row) throw missing(NOUNS[table])
  return row.teamId
}

/** Spares the first question for what has just been made. */
export function rememberOwner(store: Store, id: string, teamId: string): void {
  const cache = cacheOf(store)
  cache.set(id, teamId)
  if (cache.size > MAX_CACHED) cache.delete(cache.keys().next().value!)
}

function cacheOf({ db }: Store): Map<string, string> {
  const cache = caches.get(db) ?? new Map<string, string>()
  caches.set(db, cache)
  return cache
}
