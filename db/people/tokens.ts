import { createHash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { sql } from 'kysely'
import { LRUCache } from 'lru-cache'
import { v7 as uuid } from 'uuid'
import type { Role } from '../acts.ts'
import { perDatabase } from '../cache.ts'
import { change, write } from '../change.ts'
import type { Tx } from '../connection.ts'
import { Fault, invalid } from '../fault.ts'
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
import { demandTeam, type Scope, type Store } from '../scope.ts'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM_LENGTH = 32
const CHECK_LENGTH = 6
const SHAPE = new RegExp(`^sdk_[0-9A-Za-z]{${RANDOM_LENGTH + CHECK_LENGTH}}$`)

export type SdkToken = {
  id: string
  name: string
  role: Role
  /** The beginning and end of the token, to tell tokens apart. */
  hint: string
  createdAt: Date
  lastUsedAt: Date | null
  /** When the token stops being valid; null if it does not expire. */
  expiresAt: Date | null
}

/**
 * Creates an SDK token (ADMIN). The result is the only place where `token` itself can be read: only a hash is
 * stored. One that an SDK token makes is revoked with it and expires no later. Throws INVALID if `expiresAt` is
 * not in the future, or later than that; FORBIDDEN if no user is behind the caller.
 */
export async function createToken(
  scope: Scope,
  teamId: string,
  input: { name: string; role: Role; expiresAt?: Date | null | undefined },
): Promise<SdkToken & { token: string }> {
  const { userId } = scope
  const { name, role } = input
  if (userId === null) throw new Fault('FORBIDDEN', 'Only a user can create an SDK token')
  if (input.expiresAt && input.expiresAt.getTime() <= Date.now()) {
    throw invalid([{ path: 'expiresAt', message: 'must be in the future' }])
  }
  const madeBy = scope.access?.kind === 'SDK_TOKEN' ? scope.access.id : null
  return change(scope, 'SDK_TOKEN_CREATED', teamId, async (tx) => {
    const expiresAt = limitExpiry(
      input.expiresAt ?? null,
      madeBy === null ? null : await readExpiry(tx, madeBy),
    )
    const token = makeToken()
    const id = uuid()
    const hint = `${token.slice(0, 8)}…${token.slice(-4)}`
    const { createdAt } = await tx
      .insertInto('sdkTokens')
      .values({ id, teamId, userId, name, role, tokenHash: hashToken(token), hint, expiresAt, madeBy })
      .returning('createdAt')
      .executeTakeFirstOrThrow()
    const result = { id, name, role, hint, createdAt, lastUsedAt: null, expiresAt, token }
    // An operator makes tokens for others: that of whose rights it has is not in the rest of the entry.
    const maker = scope.actor.kind === 'SYSTEM' ? { userId } : {}
    const details = { name, role, ...(expiresAt ? { expiresAt } : {}), ...maker }
    return { result, resourceId: id, details }
  })
}

/** When a token may expire that is made by one which expires at `latest`, if that expires at all. */
function limitExpiry(wanted: Date | null, latest: Date | null): Date | null {
  if (latest && wanted && wanted > latest) {
    const message = `must not be after ${latest.toISOString()}, when the token expires that creates this one`
    throw invalid([{ path: 'expiresAt', message }])
  }
  return wanted ?? latest
}

async function readExpiry(tx: Tx, id: string): Promise<Date | null> {
  const row = await tx.selectFrom('sdkTokens').select('expiresAt').where('id', '=', id).executeTakeFirst()
  return row?.expiresAt ?? null
}

/** The team's tokens that are not revoked, newest first (ADMIN). */
export async function listTokens(scope: Scope, teamId: string): Promise<SdkToken[]> {
  await demandTeam(scope, teamId, 'ADMIN')
  const rows = await scope.store.db
    .selectFrom('sdkTokens')
    .select(['id', 'name', 'role', 'hint', 'createdAt', 'lastUsedAt', 'expiresAt'])
    .where('teamId', '=', teamId)
    .where('revokedAt', 'is', null)
    .orderBy('createdAt', 'desc')
    .orderBy('id', 'desc')
    .execute()
  return rows.map((row) => ({ ...row, role: row.role as Role }))
}

/**
 * Revokes a token at once, and those that it has made (ADMIN). Throws NOT_FOUND if the team has no such token
 * that is not revoked.
 */
export async function revokeToken(scope: Scope, teamId: string, tokenId: string): Promise<void> {
  await change(scope, 'SDK_TOKEN_REVOKED', teamId, async (tx) => {
    const row = await tx
      .updateTable('sdkTokens')
      .set({ revokedAt: sql<Date>`now()` })
      .where('id', '=', tokenId)
      .where('teamId', '=', teamId)
      .where('revokedAt', 'is', null)
      .returning(['name', 'role'])
      .executeTakeFirst()
    if (!row) throw new Fault('NOT_FOUND', 'The team has no such SDK token')
    const { rows } = await sql`
      with recursive made as (
        select id from sdk_tokens where made_by = ${tokenId}
        union select t.id from sdk_tokens t join made on t.made_by = made.id)
      update sdk_tokens set revoked_at = now() where id in (select id from made) and revoked_at is null
      returning id`.execute(tx)
    const revokedWithIt = rows.length > 0 ? { revokedWithIt: rows.length } : {}
    return { result: undefined, resourceId: tokenId, details: { ...row, ...revokedWithIt } }
  })
}

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

/** Random base62 and a CRC32 in base62, so that a mistyped or invented token is refused without a query. */
function makeToken(): string {
  const body = `sdk_${Array.from({ length: RANDOM_LENGTH }, () => ALPHABET[randomInt(62)]).join('')}`
  return body + checksum(body)
}

function isToken(token: string): boolean {
  return SHAPE.test(token) && checksum(token.slice(0, -CHECK_LENGTH)) === token.slice(-CHECK_LENGTH)
}

function checksum(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let i = 0; i < CHECK_LENGTH; i++) {
    digits = ALPHABET[rest % 62] + digits
    rest = Math.floor(rest / 62)
  }
  return digits
}

// Plain SHA-256 is enough: a token has 190 random bits, so that guessing is hopeless, unlike with a password.
function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
