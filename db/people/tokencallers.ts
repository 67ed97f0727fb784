import { sql } from 'kysely'
import { LRUCache } from 'lru-cache'
import type { Role } from '../acts.ts'
import { perDatabase } from '../cache.ts'
import { write } from '../change.ts'
import { createMemory } from '../memory.ts'
import { createBatches } from '../operation/batches.ts'
import {
  type CountRow,
  countRequest,
  numberRequests,
  PLAN_LIMIT,
  type RequestCount,
  THIS_MINUTE,
} from '../operation/limits.ts'
import { isReadOnly } from '../operation/outage.ts'
import { selectFree } from '../queue.ts'
import type { Store } from '../scope.ts'
import { hashToken, isToken } from './tokens.ts'

export type TokenCaller = {
  id: string
  name: string
  teamId: string
  userId: string
  role: Role
  /** The current role in the team of the user who created the token; null if they are no longer a member. */
  makerRole: Role | null
  /** When the token expires, in performance.now(); null if it never does. */
  endsAt: number | null
}

/** At most so often the use of a token is noted. */
const NOTE_MS = 60_000

const tokensOf = createMemory<TokenCaller>(10_000)

type Lane = { done: Promise<void>; next?: Promise<TokenCaller | null> }

const lanesOf = perDatabase(() => new Map<string, Lane>())

/**
 * Finds a valid token, with the current role of the user who created it; null if it is unknown or has ended. It comes
 * from memory or from a lookup; calls that come during one of the same token share the next one, which begins after all
 * of them. What another process has ended a moment ago may still be found, as in findSession.
 */
export async function findToken(store: Store, token: string): Promise<TokenCaller | null> {
  if (!isToken(token)) return null
  const known = recallToken(store, token)
  if (known) return known
  const open = lanesOf(store.db)
  const look = () => {
    const found = readToken(store, token)
    const settle = () => {
      if (!lane.next) open.delete(token)
    }
    const lane: Lane = { done: found.then(settle, settle) }
    open.set(token, lane)
    return found
  }
  const lane = open.get(token)
  if (!lane) return look()
  lane.next ??= lane.done.then(look)
  return lane.next
}

async function readToken(store: Store, token: string): Promise<TokenCaller | null> {
  const remember = beginToken(store, token)
  const found = await sql<FoundToken>`select ${CALLER} from ${callerOf(token)}`.execute(store.db)
  if (!found.rows[0]) return null
  const { caller, used } = remember(found.rows[0])
  if (!used)
    await noteUse(store, caller.id).catch((error) => {
      // Who only reads goes on.
      if (!isReadOnly(error)) throw error
    })
  return caller
}

type FoundToken = Omit<TokenCaller, 'endsAt'> & { leftMs: number | null; idleMs: number | null }

const CALLER = sql`t.id, t.name, t.team_id, t.user_id, t.role, m.role as maker_role,
  extract(epoch from now() - t.last_used_at)::float8 * 1000 as idle_ms,
  extract(epoch from t.expires_at - now())::float8 * 1000 as left_ms`

function recallToken(store: Store, token: string): TokenCaller | undefined {
  return tokensOf(store.db).find(hashToken(token).toString('base64'))
}

/**
 * To be called before a lookup of the token. The returned function remembers what was found, until its next use is to be
 * noted. `used`: one of this minute is noted already.
 */
function beginToken(store: Store, token: string) {
  const began = performance.now()
  const remember = tokensOf(store.db).begin()
  return ({ leftMs, idleMs, ...found }: FoundToken) => {
    // As in findSession.
    const caller: TokenCaller = { ...found, endsAt: leftMs === null ? null : performance.now() + leftMs }
    const used = idleMs !== null && idleMs < NOTE_MS
    const untilNoted = used ? NOTE_MS - idleMs : NOTE_MS
    const until = began + Math.min(leftMs ?? Number.POSITIVE_INFINITY, untilNoted)
    remember(hashToken(token).toString('base64'), caller, `rights:${caller.userId}`, until)
    return { caller, used }
  }
}

function callerOf(token: string) {
  return sql`sdk_tokens t left join members m on m.team_id = t.team_id and m.user_id = t.user_id
    where t.token_hash = ${hashToken(token)} and t.revoked_at is null
      and (t.expires_at is null or t.expires_at > now())`
}

/**
 * Finds a valid token like `findToken`, and counts a request against its team: in the same statement if it looks the
 * token up. `count` is null if the user who created it has left the team, because then the request counts against them,
 * and while the database takes no changes.
 */
export async function admitToken(store: Store, token: string): Promise<Admission | null> {
  if (!isToken(token)) return null
  const known = recallToken(store, token)
  try {
    if (!known) return await admissionsOf(store.db)(token, store)
    const team = { kind: 'TEAM', id: known.teamId } as const
    return { caller: known, count: known.makerRole === null ? null : await countRequest(store, team) }
  } catch (error) {
    if (!isReadOnly(error)) throw error
    const caller = known ?? (await findToken(store, token))
    return caller && { caller, count: null }
  }
}

type Admission = { caller: TokenCaller; count: RequestCount | null }

const admissionsOf = perDatabase(() =>
  createBatches(async (token, stores: Store[]): Promise<(Admission | null)[]> => {
    const store = stores[0]!
    const remember = beginToken(store, token)
    const { rows } = await write(store, (tx) =>
      sql<FoundToken & CountRow>`
      with found as (select ${CALLER} from ${callerOf(token)}),
        bound as (select ${PLAN_LIMIT} as n from found f join teams t on t.id = f.team_id),
        added as (
          insert into request_counts as c (key, minute, used)
          select 'TEAM:' || team_id, date_trunc('minute', now()), ${stores.length}::int
          from found where maker_role is not null
          on conflict (key, minute) do update set used = c.used + excluded.used
            where c.used < (select n from bound)
          returning used)
      select f.id, f.name, f.team_id, f.user_id, f.role, f.maker_role, f.left_ms, f.idle_ms,
        (select n from bound) as most, (select used from added) as used, ${THIS_MINUTE}
      from found f`.execute(tx),
    )
    const [row] = rows
    if (!row) return stores.map(() => null)
    const { most, used, resetAt, wait, ...found } = row
    const { caller, used: isNoted } = remember(found)
    if (!isNoted) await noteUse(store, caller.id)
    if (caller.makerRole === null) return stores.map(() => ({ caller, count: null }))
    const counts = numberRequests(store, { most, used, resetAt, wait }, stores.length)
    return counts.map((count) => ({ caller, count }))
  }),
)

export type EndedToken = {
  id: string
  name: string
  teamId: string
  userId: string
  why: 'revoked' | 'expired'
  since: Date
}

/** Remembers tokens that are no longer valid, so that a caller who goes on sending one costs no query each time. */
const endedOf = perDatabase(() => new LRUCache<string, EndedToken>({ max: 1_000, ttl: 10_000 }))

/** A token that was valid once: which it is, and since when it is not. Undefined if it is valid, or never was. */
export async function findEndedToken(store: Store, token: string): Promise<EndedToken | undefined> {
  if (!isToken(token)) return undefined
  const known = endedOf(store.db).get(token)
  if (known) return known
  const { rows } = await sql<EndedToken>`
    select id, name, team_id, user_id, case when revoked_at is null then 'expired' else 'revoked' end as why,
      coalesce(revoked_at, expires_at) as since
    from sdk_tokens where token_hash = ${hashToken(token)} and (revoked_at is not null or expires_at <= now())`.execute(
    store.db,
  )
  if (rows[0]) endedOf(store.db).set(token, rows[0])
  return rows[0]
}

// Writes at most once a minute, even with many requests at once, so that the row does not become a hot spot.
async function noteUse(store: Store, id: string): Promise<void> {
  await write(store, (tx) =>
    sql`update sdk_tokens set last_used_at = now() where id in (
      ${selectFree('sdk_tokens', {
        which: sql`q.id = ${id} and (q.last_used_at is null or q.last_used_at <= now() - interval '1 minute')`,
      })})`.execute(tx),
  )
}
