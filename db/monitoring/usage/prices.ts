import { LRUCache } from 'lru-cache'
import { perDatabase } from '../../cache.ts'
import { change } from '../../change.ts'
import type { Db, Tx } from '../../connection.ts'
import { demandTeam, type Scope, type Store } from '../../scope.ts'

/** What a team pays for a model, in US dollars for a million tokens. */
export type ModelPrice = {
  /** The type of credential that the price is for; null is any. */
  provider: string | null
  /** The model's name; with `*` at its end, how the name begins. */
  model: string
  inputPerMillion: number
  /** Tokens read from a cache; null: as others of the input. */
  cachedInputPerMillion: number | null
  /** Tokens written into a cache; null: as others of the input. */
  cacheWritePerMillion: number | null
  outputPerMillion: number
  /** The price counts for calls from then on; null: for all. */
  validFrom: Date | null
}

/** How long a process works with what it has read. */
const TTL_MS = 2_000

const cacheOf = perDatabase(() => new LRUCache<string, Promise<ModelPrice[]>>({ max: 1_000, ttl: TTL_MS }))

/** The prices of a team, in their order (VIEWER). Throws NOT_FOUND. */
export async function readModelPrices(scope: Scope, teamId: string): Promise<ModelPrice[]> {
  await demandTeam(scope, teamId, 'VIEWER')
  return loadPrices(scope.store.db, teamId)
}

/**
 * Replaces the prices of a team (ADMIN). They count for calls that begin from now on, in other processes after two
 * seconds at most; what earlier calls cost stays as it is. Throws NOT_FOUND.
 */
export async function updateModelPrices(
  scope: Scope,
  teamId: string,
  prices: ModelPrice[],
): Promise<ModelPrice[]> {
  const changed = await change(scope, 'MODEL_PRICES_UPDATED', teamId, async (tx) => {
    const old = await loadPrices(tx, teamId)
    if (JSON.stringify(old) === JSON.stringify(prices)) return { result: old, unchanged: true }
    await savePrices(tx, teamId, prices)
    return { result: prices, resourceId: teamId, details: { before: { prices: old }, after: { prices } } }
  })
  cacheOf(scope.store.db).delete(teamId)
  return changed
}

/** The prices of a team for its calls, up to two seconds old. Rejects while PostgreSQL is away. */
export async function findModelPrices({ db }: Pick<Store, 'db'>, teamId: string): Promise<ModelPrice[]> {
  const cache = cacheOf(db)
  let known = cache.get(teamId)
  if (!known) {
    known = loadPrices(db, teamId)
    cache.set(teamId, known)
    known.catch(() => cache.peek(teamId) === known && cache.delete(teamId))
  }
  return known
}

async function savePrices(tx: Tx, teamId: string, prices: ModelPrice[]): Promise<void> {
  await tx.deleteFrom('modelPrices').where('teamId', '=', teamId).execute()
  if (prices.length === 0) return
  await tx
    .insertInto('modelPrices')
    .values(prices.map((price, position) => ({ teamId, position, ...price })))
    .execute()
}

async function loadPrices(db: Db, teamId: string): Promise<ModelPrice[]> {
  const rows = await db
    .selectFrom('modelPrices')
    .select(['provider', 'model', 'inputPerMillion', 'cachedInputPerMillion', 'cacheWritePerMillion'])
    .select(['outputPerMillion', 'validFrom'])
    .where('teamId', '=', teamId)
    .orderBy('position')
    .execute()
  return rows.map(
    ({ inputPerMillion, cachedInputPerMillion, cacheWritePerMillion, outputPerMillion, ...row }) => ({
      provider: row.provider,
      model: row.model,
      inputPerMillion: Number(inputPerMillion),
      cachedInputPerMillion: toNumber(cachedInputPerMillion),
      cacheWritePerMillion: toNumber(cacheWritePerMillion),
      outputPerMillion: Number(outputPerMillion),
      validFrom: row.validFrom,
    }),
  )
}

const toNumber = (text: string | null) => (text === null ? null : Number(text))
