import { createHash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import type { Role } from './acts.ts'
import type { Db } from './connection.ts'
import { Fault, invalid } from './fault.ts'
import { change, demandTeam, record, type Scope, type Store } from './scope.ts'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM_LENGTH = 32
const CHECK_LENGTH = 6
const SHAPE = new RegExp(`^sdk_[0-9A-Za-z]{${RANDOM_LENGTH + CHECK_LENGTH}}$`)

export type Token = {
  id: string
  name: string
  role: Role
  /** Its beginning and end, to tell tokens apart. */
  hint: string
  createdAt: Date
  lastUsedAt: Date | null
  /** From then on it is worth nothing; null: it does not end by itself. */
  expiresAt: Date | null
}

/** Makes an SDK token (ADMIN). `token` is the only time its text is seen: a hash is kept. Throws INVALID (expiresAt). */
export async function createToken(
  scope: Scope,
  teamId: string,
  input: { name: string; role: Role; expiresAt?: Date | null | undefined },
): Promise<Token & { token: string }> {
  const { userId } = scope
  const { name, role, expiresAt = null } = input
  if (userId === null) throw new Fault('FORBIDDEN', 'An SDK token belongs to the user who makes it')
  if (expiresAt && expiresAt.getTime() <= Date.now()) {
    throw invalid([{ path: 'expiresAt', message: 'must lie in the future' }])
  }
  return change(scope, 'SDK_TOKEN_CREATED', teamId, async (tx) => {
    const token = makeToken()
    const id = uuid()
    const hint = `${token.slice(0, 8)}…${token.slice(-4)}`
    const { createdAt } = await tx
      .insertInto('sdkTokens')
      .values({ id, teamId, userId, name, role, tokenHash: hashToken(token), hint, expiresAt })
      .returning('createdAt')
      .executeTakeFirstOrThrow()
    const result = { id, name, role, hint, createdAt, lastUsedAt: null, expiresAt, token }
    const details = { name, role, ...(expiresAt ? { expiresAt } : {}) }
    return { result, resourceId: id, details }
  })
}

/** The team's tokens that are not revoked, newest first (ADMIN). */
export async function listTokens(scope: Scope, teamId: string): Promise<Token[]> {
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

/** Ends a token at once (ADMIN). Throws NOT_FOUND where the team has no such living token. */
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
    return { result: undefined, resourceId: tokenId, details: row }
  })
}

export type TokenCaller = {
  id: string
  name: string
  teamId: string
  userId: string
  role: Role
  /** The maker's role in the team now; null once they are no member. */
  makerRole: Role | null
}

type Lane = { done: Promise<void>; next?: Promise<TokenCaller | null> }

const lanes = new WeakMap<Db, Map<string, Lane>>()

/**
 * Whose living token this text is, with the maker's present role; null for any other text. Those who ask for one
 * while it is being looked up share the next look, which begins after all of them came.
 */
export async function findToken(store: Store, token: string): Promise<TokenCaller | null> {
  if (!isToken(token)) return null
  const open = lanes.get(store.db) ?? new Map<string, Lane>()
  lanes.set(store.db, open)
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
  const found = await sql<TokenCaller & { used: boolean }>`
    select t.id, t.name, t.team_id, t.user_id, t.role, m.role as maker_role,
      coalesce(t.last_used_at > now() - interval '1 minute', false) as used
    from sdk_tokens t left join members m on m.team_id = t.team_id and m.user_id = t.user_id
    where t.token_hash = ${hashToken(token)} and t.revoked_at is null
      and (t.expires_at is null or t.expires_at > now())`.execute(store.db)
  const row = found.rows[0]
  if (!row) return null
  const { used, ...caller } = row
  if (!used) await noteUse(store, caller.id)
  return caller
}

// At most once a minute, also with many requests at once: a token in use must not become a hot row.
async function noteUse(store: Store, id: string): Promise<void> {
  await record(store, (tx) =>
    sql`update sdk_tokens set last_used_at = now() where id in (
      select id from sdk_tokens
      where id = ${id} and (last_used_at is null or last_used_at <= now() - interval '1 minute')
      for update skip locked)`.execute(tx),
  )
}

/** Random base62, then the CRC32 of it all in base62: a mistyped or made-up token is refused without a query. */
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

// Plain SHA-256 is enough: the token is 190 random bits, not a word somebody thought of.
function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
