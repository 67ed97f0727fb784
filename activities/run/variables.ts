import { LRUCache } from 'lru-cache'
import { perDatabase } from '../../db/cache.ts'
import type { Store } from '../../db/scope.ts'
import { findVariables } from '../../db/variables/variables.ts'

type Variables = Record<string, unknown>

/** Values may be a second old, so that a loop of thousands queries the database only once a second. */
const rememberedFor = perDatabase(
  () => new LRUCache<string, Promise<Variables>>({ max: 500, ttl: 1_000, ttlAutopurge: true }),
)

// By config. Configs belong to a version of their workflow and never change.
const mentions = new WeakMap<object, string[] | 'all'>()

/**
 * `$vars` for a node: the variables of its workflow's team that its config mentions, or all of them if that
 * cannot be seen. Throws if PostgreSQL cannot be reached.
 */
export async function readVariables(store: Store, workflowId: string, config: object): Promise<Variables> {
  const keys = findMentions(config)
  if (keys !== 'all' && keys.length === 0) return {}
  const remembered = rememberedFor(store.db)
  const name = `${workflowId} ${keys}`
  const known = remembered.get(name)
  if (known) return known
  const values = findVariables(store, workflowId, keys === 'all' ? undefined : keys)
  remembered.set(name, values)
  values.catch(() => remembered.delete(name))
  return values
}

/**
 * The keys a config reads as `$vars.<key>`, or in JavaScript `$env.<key>`; all if it uses `$vars` otherwise, as in
 * `$lookup($vars, $x)`.
 */
function findMentions(config: object): string[] | 'all' {
  const known = mentions.get(config)
  if (known) return known
  const keys = new Set<string>()
  let bare = false
  for (const [, plain, quoted] of JSON.stringify(config).matchAll(
    /\$(?:vars|env)\b(?:\.(?:(\w+)|`(\w+)`))?/g,
  )) {
    const key = plain ?? quoted
    if (key === undefined) bare = true
    else keys.add(key)
  }
  const found = bare ? 'all' : [...keys].sort()
  mentions.set(config, found)
  return found
}
