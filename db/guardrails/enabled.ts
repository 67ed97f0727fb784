import { sql } from 'kysely'
import { LRUCache } from 'lru-cache'
import { perDatabase } from '../cache.ts'
import type { Db } from '../connection.ts'
import type { RuleAction, RuleKind, RuleSeverity } from './rules.ts'

/**
 * A rule as checks use it. Anything that is made of its `config`, which is JSON by its kind (RuleConfigs), is good for
 * one `id` and `version`.
 */
export type StoredRule = {
  id: string
  version: number
  name: string
  kind: RuleKind
  severity: RuleSeverity
  action: RuleAction
  config: string
}

/** The number of characters of configs that each process keeps, so that a check need not read them again. */
const KEPT = { maxSize: 20_000_000, sizeCalculation: ({ config }: StoredRule) => config.length + 500 }

const cacheOf = perDatabase(() => new LRUCache<string, StoredRule>(KEPT))

/** The rules of a team that are enabled now, in the order in which they were made. It checks no right. */
export async function listEnabledRules(db: Db, teamId: string): Promise<StoredRule[]> {
  const current = await db
    .selectFrom('guardrailRules')
    .select(['id', 'version'])
    .where('teamId', '=', teamId)
    .where('enabled', '=', true)
    .orderBy('id')
    .execute()
  const cache = cacheOf(db)
  const found = new Map<string, StoredRule>()
  for (const { id, version } of current) {
    const known = cache.get(id)
    if (known?.version === version) found.set(id, known)
  }
  const unknown = current.filter(({ id }) => !found.has(id)).map(({ id }) => id)
  if (unknown.length > 0)
    for (const rule of await readRules(db, unknown)) {
      cache.set(rule.id, rule)
      found.set(rule.id, rule)
    }
  // A rule that was deleted or disabled in between is left out.
  return current.flatMap(({ id }) => found.get(id) ?? [])
}

async function readRules(db: Db, ids: string[]): Promise<StoredRule[]> {
  return db
    .selectFrom('guardrailRules')
    .select(['id', 'version', 'name'])
    .select(sql<RuleKind>`kind`.as('kind'))
    .select(sql<RuleSeverity>`severity`.as('severity'))
    .select(sql<RuleAction>`action`.as('action'))
    .select(sql<string>`config::text`.as('config'))
    .where('id', '=', sql<string>`any(${ids}::uuid[])`)
    .where('enabled', '=', true)
    .execute()
}
