import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { record, write } from '../change.ts'
import type { Tx } from '../connection.ts'
import { Fault } from '../fault.ts'
import type { Store } from '../scope.ts'
import { type Keys, seal, unseal } from '../seal.ts'
import type { OpenedCredential } from './open.ts'
import { type CredentialData, openCredential, sealCredential } from './seal.ts'
import type { CredentialType } from './types.ts'

/** What a token server has given. `expiresInS` is in seconds from when it was asked; null if it did not say. */
export type Tokens = { accessToken: string; refreshToken: string | null; expiresInS: number | null }

/** A credential whose access token comes from a token server, with the state of that token. */
export type Grant = OpenedCredential & {
  accessToken: string | null
  /** From when on the token is renewed; null if its end is not known. */
  renewAt: Date | null
  /** When it was renewed last. */
  renewedAt: Date | null
  /** A renewal is in progress, or the last one failed and the next may begin only at `until`. */
  renewal: { until: Date; failure: string | null } | null
}

/** The keys of each type that a token is got with: a token is renewed again when they have changed. */
const GOT_WITH: Partial<Record<CredentialType, readonly string[]>> = {
  OAUTH2: ['clientId', 'clientSecret', 'tokenUrl', 'refreshToken'],
  GOOGLE_SERVICE_ACCOUNT: ['clientEmail', 'privateKey', 'scopes', 'subject', 'tokenUrl'],
}

const PURPOSE = 'token'
const MARGIN_S = 60

/** The longest that a token is taken to last, in seconds: a year. */
const MAX_LIFETIME_S = 31_536_000

const COLUMNS = [
  'name',
  'type',
  'teamId',
  'sealed',
  'wrapped',
  'revision',
  'expiresAt',
  'broken',
  'token',
  'renewAt',
  'renewedAt',
  'renewerUntil',
  'renewalFailure',
] as const

/** Reads a credential anew. Throws NOT_FOUND if the team has none of this id. */
export async function readGrant(
  store: Store,
  { id, teamId }: Pick<OpenedCredential, 'id' | 'teamId'>,
): Promise<Grant> {
  const row = await store.db
    .selectFrom('credentials')
    .select(COLUMNS)
    .where('id', '=', id)
    .where('teamId', '=', teamId)
    .executeTakeFirst()
  if (!row) throw gone()
  return openGrant(store.keys, id, row)
}

type GrantRow = {
  name: string
  type: string
  teamId: string
  sealed: Buffer
  wrapped: Buffer
  revision: number
  expiresAt: Date | null
  broken: string | null
  token: Buffer | null
  renewAt: Date | null
  renewedAt: Date | null
  renewerUntil: Date | null
  renewalFailure: string | null
}

function openGrant(keys: Keys, id: string, row: GrantRow): Grant {
  const { sealed, wrapped, token, renewerUntil, renewalFailure, ...rest } = row
  const type = row.type as CredentialType
  const data = openCredential(keys, { teamId: row.teamId, id, type }, { sealed, wrapped })
  const own = type === 'OAUTH2' ? (data.accessToken as string | undefined) : openToken(keys, id, data, token)
  return {
    ...rest,
    id,
    type,
    data,
    accessToken: own ?? null,
    renewal: renewerUntil && { until: renewerUntil, failure: renewalFailure },
  }
}

function gone(): Fault {
  return new Fault('NOT_FOUND', 'The credential no longer exists')
}

/** A print of the data with which a token is got. */
function printData(type: CredentialType, data: CredentialData): string {
  const values = (GOT_WITH[type] ?? []).map((key) => data[key] ?? null)
  return createHash('sha256').update(JSON.stringify(values)).digest('base64url')
}

/** The token beside the data; undefined if it was got with other data, or sealed with a key that is gone. */
function openToken(keys: Keys, id: string, data: CredentialData, token: Buffer | null): string | undefined {
  if (!token) return undefined
  try {
    const { accessToken, print } = JSON.parse(unseal(keys, PURPOSE, id, token).toString())
    return print === printData('GOOGLE_SERVICE_ACCOUNT', data) ? accessToken : undefined
  } catch {
    return undefined
  }
}

/** Whether this process has claimed the renewal of a token. `interrupted`: an earlier claim ended without a result. */
export type Claim = { claimed: true; interrupted: boolean } | { claimed: false }

/**
 * Claims the renewal of a token for `forMs`, in the name of `renewer` (a UUID), if the credential is still as it was
 * read, no other process renews it, and no failure is too fresh. A claim holds no connection: the token server may be
 * slow.
 */
export async function claimRenewal(
  store: Store,
  { id, revision }: Grant,
  renewer: string,
  forMs: number,
): Promise<Claim> {
  const { rows } = await write(store, (tx) =>
    sql<{ interrupted: boolean }>`
      with old as (
        select id, renewer from credentials
        where id = ${id} and revision = ${revision} and (renewer_until is null or renewer_until <= clock_timestamp())
        for update)
      update credentials c
      set renewer = ${renewer}, renewer_until = clock_timestamp() + ${forMs} * interval '1 ms', renewal_failure = null
      from old where c.id = old.id
      returning old.renewer is not null as interrupted`.execute(tx),
  )
  return rows[0] ? { claimed: true, ...rows[0] } : { claimed: false }
}

/**
 * Stores the tokens that a renewal has got, so that others may use them, and returns the credential with them. If the
 * data that they were got with was changed meanwhile, the changed data is kept. Throws NOT_FOUND if the credential is
 * gone.
 */
export async function storeTokens(store: Store, grant: Grant, renewer: string, got: Tokens): Promise<Grant> {
  return record(store, async (tx) => {
    const now = await lockGrant(tx, store.keys, grant)
    if (isSameClient(grant, now))
      return openGrant(store.keys, grant.id, await setTokens(tx, store.keys, now, got, { renewed: true }))
    await release(tx, grant.id, renewer)
    return now
  })
}

/** A renewal has failed for now: for `forMs` it is not tried again, and all callers get the reason. */
export async function postponeRenewal(
  store: Store,
  { id }: Grant,
  renewer: string,
  { failure, forMs }: { failure: string; forMs: number },
): Promise<void> {
  await write(store, (tx) =>
    sql`update credentials
      set renewer = null, renewer_until = clock_timestamp() + ${forMs} * interval '1 ms', renewal_failure = ${failure}
      where id = ${id} and renewer = ${renewer}`.execute(tx),
  )
}

/**
 * Notes that a token can never be renewed again, and why: from then on every use of the credential fails. Returns false
 * if the data that it is renewed with was changed meanwhile, so that the failure means nothing.
 */
export async function breakGrant(store: Store, grant: Grant, renewer: string, why: string): Promise<boolean> {
  return record(store, async (tx) => {
    const now = await lockGrant(tx, store.keys, grant)
    await release(tx, grant.id, renewer)
    if (!isSameClient(grant, now)) return false
    await tx
      .updateTable('credentials')
      .set({ broken: why, testStatus: 'FAILED', testMessage: why, lastTestedAt: sql<Date>`now()` })
      .where('id', '=', grant.id)
      .execute()
    return true
  })
}

function isSameClient(a: Grant, b: Grant): boolean {
  return a.type === b.type && printData(a.type, a.data) === printData(b.type, b.data)
}

/** Reads a credential and locks it until the transaction ends. Throws NOT_FOUND. */
export async function lockGrant(
  tx: Tx,
  keys: Keys,
  { id, teamId }: Pick<OpenedCredential, 'id' | 'teamId'>,
): Promise<Grant> {
  const row = await tx
    .selectFrom('credentials')
    .select(COLUMNS)
    .where('id', '=', id)
    .where('teamId', '=', teamId)
    .forNoKeyUpdate()
    .executeTakeFirst()
  if (!row) throw gone()
  return openGrant(keys, id, row)
}

async function release(tx: Tx, id: string, renewer: string): Promise<void> {
  await tx
    .updateTable('credentials')
    .set({ renewer: null, renewerUntil: null })
    .where('id', '=', id)
    .where('renewer', '=', renewer)
    .execute()
}

/**
 * Puts tokens into a locked credential, which can be used again from then on. Without a new refresh token, the one that
 * was renewed with stays valid, but that of a person who was connected before does not.
 */
export async function setTokens(
  tx: Tx,
  keys: Keys,
  { id, teamId, type, data, broken }: Grant,
  { accessToken, refreshToken, expiresInS }: Tokens,
  { renewed }: { renewed: boolean },
): Promise<GrantRow> {
  const { refreshToken: old, ...rest } = data
  const kept = refreshToken ?? (renewed ? old : undefined)
  const next = { ...rest, accessToken, ...(kept === undefined ? {} : { refreshToken: kept }) }
  const token = { accessToken, print: printData(type, data) }
  const stored =
    type === 'OAUTH2'
      ? { ...sealCredential(keys, { teamId, id, type }, next), keys: Object.keys(next) }
      : { token: seal(keys, PURPOSE, id, Buffer.from(JSON.stringify(token))) }
  const lastsS = expiresInS === null ? null : Math.min(expiresInS, MAX_LIFETIME_S)
  // A token of a few seconds is renewed after half of them, not at every use.
  const renewInS = lastsS === null ? null : lastsS - Math.min(MARGIN_S, lastsS / 2)
  return (
    tx
      .updateTable('credentials')
      .set({
        ...stored,
        expiresAt: sql<Date | null>`clock_timestamp() + ${lastsS}::float8 * interval '1 s'`,
        renewAt: sql<Date | null>`clock_timestamp() + ${renewInS}::float8 * interval '1 s'`,
        renewedAt: renewed ? sql<Date>`now()` : null,
        broken: null,
        ...{ renewer: null, renewerUntil: null, renewalFailure: null },
        revision: sql<number>`revision + 1`,
      })
      // What made it fail is over.
      .$if(broken !== null || !renewed, (query) =>
        query.set({
          testStatus: 'SUCCESS',
          testMessage: renewed ? 'Its token was renewed' : 'Connected',
          lastTestedAt: sql<Date>`now()`,
        }),
      )
      .$if(!renewed, (query) => query.set({ updatedAt: sql<Date>`now()` }))
      .where('id', '=', id)
      .returning(COLUMNS)
      .executeTakeFirstOrThrow()
  )
}
