import type { Db } from '../db/connection.ts'
import type { Store } from '../db/scope.ts'
import { findVariables } from '../db/variables.ts'

/** So old may a value be that a node reads: a loop of thousands asks once a second. */
const REMEMBERED_MS = 1_000
const MAX_REMEMBERED = 500

type Values = Record<string, unknown>
type Known = { values: Promise<Values>; until: number }

const caches = new WeakMap<Db, Map<string, Known>>()
// Configs are kept with their versions and never change.
const mentions = new WeakMap<object, string[] | 'all'>()

/** `$vars` for a node: the variables of its workflow's team that its config names. Throws where PostgreSQL is away. */
export async function readVariables(store: Store, workflowId: string, config: object): Promise<Values> {
  const keys = findMentions(config)
  if (keys !== 'all' && keys.length === 0) return {}
  const cache = caches.get(store.db) ?? new Map<string, Known>()
  caches.set(store.db, cache)
  const name = `${workflowId} ${keys}`
  const now = Date.now()
  const known = cache.get(name)
  if (known && known.until > now) return known.values
  const values = findVariables(store, workflowId, keys === 'all' ? undefined : keys)
  // In the order in which they grow old.
  cache.delete(name)
  for (const [old, { until }] of cache) {
    if (until > now && cache.size < MAX_REMEMBERED) break
    cache.delete(old)
  }
  cache.set(name, { values, until: now + REMEMBERED_MS })
  values.catch(() => cache.delete(name))
  return values
}

/** The keys of a config's `$vars.<key>`; all where `$vars` stands otherwise, as in `$lookup($vars, $input.key)`. */
function findMentions(config: object): string[] | 'all' {
  const known = mentions.get(config)
  if (known) return known
  const keys = new Set<string>()
  let bare = false
  for (const [, plain, quoted] of JSON.stringify(config).matchAll(/\$vars\b(?:\.(?:(\w+)|`(\w+)`))?/g)) {
    const key = plain ?? quoted
    if (key === undefined) bare = true
    else keys.add(key)
  }
  const found = bare ? 'all' : [...keys].sort()
  mentions.set(config, found)
  return found
}
