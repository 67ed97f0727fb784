import { createHash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import type { Role } from '../acts.ts'
import { change } from '../change.ts'
import type { Tx } from '../connection.ts'
import { Fault, invalid } from '../fault.ts'
import { demandTeam, type Scope } from '../scope.ts'

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

/** Random base62 and a CRC32 in base62, so that a mistyped or invented token is refused without a query. */
function makeToken(): string {
  const body = `sdk_${Array.from({ length: RANDOM_LENGTH }, () => ALPHABET[randomInt(62)]).join('')}`
  return body + checksum(body)
}

/** Whether a text has the form of a token. */
export function isToken(token: string): boolean {
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
export function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
