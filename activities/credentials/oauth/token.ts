import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { perDatabase } from '../../../db/cache.ts'
import {
  breakGrant,
  claimRenewal,
  type Grant,
  postponeRenewal,
  readGrant,
  storeTokens,
  type Tokens,
} from '../../../db/credentials/oauth.ts'
import type { OpenedCredential } from '../../../db/credentials/open.ts'
import { Fault } from '../../../db/fault.ts'
import type { Store } from '../../../db/scope.ts'
import type { HttpClient } from '../../http/http.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import { retryOutages } from '../../run/outages.ts'
import { isRenewable, writeRenewal } from './grants.ts'
import { askTokenServer, TOKEN_TIMEOUT_MS, type TokenRefusal } from './tokenserver.ts'

/** What getting a token needs. */
export type TokenTools = { store: Store; http: HttpClient }

/** A claim lasts longer than the token server may take. After it, its holder counts as dead. */
const CLAIM_MS = TOKEN_TIMEOUT_MS + 5_000

/** How often a process looks whether another one has renewed a token. */
const LOOK_MS = 150

/** After a failure the token server is not asked for this long, or for longer if it says so. */
const PAUSE_MS = 2_000
const MAX_PAUSE_MS = 300_000

/** While the old token is still valid, a caller waits at most this long for the next one. */
const ENOUGH_MS = 2_000

/** A token that was renewed less than this ago is not renewed because a server does not take it. */
const FRESH_MS = 10_000

/** With more than this between the clocks, what is signed may be refused for its time. */
const MAX_SKEW_S = 60

/** How long the storing of tokens is tried, which may be the only ones that still work. */
const STORING_MS = 120_000

/**
 * The access token of a credential of the types OAUTH2 and GOOGLE_SERVICE_ACCOUNT. It is renewed in time, once across
 * all processes. With `refused`, a token that a server has not taken, it is another one, or null if none can be had
 * without a person. Throws a NodeFailure: CredentialUnavailable, which may pass, if the token server fails;
 * CredentialBroken if it is not connected, or if it can no longer be renewed; CredentialMissing.
 */
export async function findAccessToken(
  tools: TokenTools,
  opened: Pick<OpenedCredential, 'id' | 'teamId'>,
  { refused }: { refused?: string | undefined } = {},
): Promise<string | null> {
  const grant = await read(tools.store, opened)
  demandWhole(grant)
  const { accessToken } = grant
  const renewable = isRenewable(grant)
  if (accessToken !== null && accessToken !== refused) {
    if (!renewable || !isDue(grant)) return accessToken
    const isValid = grant.expiresAt !== null && grant.expiresAt.getTime() > Date.now()
    const renewed = renew(tools, grant)
    if (!isValid) return (await renewed).accessToken
    return (await withinOr(renewed, ENOUGH_MS)) ?? accessToken
  }
  if (!renewable) {
    if (accessToken !== null) return null
    throw broken(grant, NOT_CONNECTED)
  }
  if (accessToken !== null && isFresh(grant)) return null
  return (await renew(tools, grant)).accessToken
}

/** Gets another token, however long the one that is there would last, and whether or not it could be renewed before. */
export async function renewAccessToken(
  tools: TokenTools,
  opened: Pick<OpenedCredential, 'id' | 'teamId'>,
): Promise<Grant> {
  const grant = await read(tools.store, opened)
  if (!isRenewable(grant)) throw broken(grant, NOT_CONNECTED)
  return renew(tools, grant)
}

/** Why a credential without tokens cannot be used; it follows "The credential X". */
const NOT_CONNECTED = 'is not connected: it has no access token yet'

function isDue({ expiresAt, renewAt }: Grant): boolean {
  return expiresAt !== null && (renewAt ?? expiresAt).getTime() <= Date.now()
}

function isFresh({ renewedAt }: Grant): boolean {
  return renewedAt !== null && Math.abs(Date.now() - renewedAt.getTime()) < FRESH_MS
}

function demandWhole(grant: Grant): void {
  if (grant.broken !== null) throw broken(grant, `cannot be used: ${grant.broken}`)
}

function broken({ name }: Pick<Grant, 'name'>, why: string): NodeFailure {
  return new NodeFailure(`The credential ${name} ${why}`, { type: 'CredentialBroken' })
}

function unavailable({ name }: Grant, why: string, retryAfterMs: number): NodeFailure {
  const message = `The token of the credential ${name} cannot be renewed at the moment: ${why}`
  return new NodeFailure(message, { type: 'CredentialUnavailable', retryable: true, retryAfterMs })
}

async function read(store: Store, opened: Pick<OpenedCredential, 'id' | 'teamId'>): Promise<Grant> {
  return orMissing(readGrant(store, opened))
}

async function orMissing<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading
  } catch (error) {
    if (error instanceof Fault && error.code === 'NOT_FOUND')
      throw new NodeFailure(error.message, { type: 'CredentialMissing' })
    throw error
  }
}

/** The token of a renewal; null if it fails for now, or takes longer than `ms`. It goes on then. */
async function withinOr(renewal: Promise<Grant>, ms: number): Promise<string | null> {
  const waiting = new AbortController()
  const late = sleep(ms, null, { signal: waiting.signal }).catch(() => null)
  const token = renewal.then(
    (grant) => grant.accessToken,
    (error) => {
      if (error instanceof NodeFailure && error.retryable) return null
      throw error
    },
  )
  try {
    return await Promise.race([token, late])
  } finally {
    waiting.abort()
    // The token may have no other caller.
    token.catch(() => {})
  }
}

/** The renewals under way in this process, by credential and revision: those who need the same one share it. */
const flightsOf = perDatabase(() => new Map<string, Promise<Grant>>())

/**
 * Renews the token of a grant, or waits until another process has. It goes on without a caller: a token server may
 * have made the last refresh token invalid with its answer.
 */
function renew(tools: TokenTools, grant: Grant): Promise<Grant> {
  const flights = flightsOf(tools.store.db)
  const key = `${grant.id} ${grant.revision}`
  const flight = flights.get(key) ?? orMissing(fly(tools, grant)).finally(() => flights.delete(key))
  flights.set(key, flight)
  const own = flight.catch((error) => {
    throw copyFailure(error)
  })
  own.catch(() => {})
  return own
}

/** A copy, because a caller that catches a failure may write into it. */
function copyFailure(error: unknown): unknown {
  if (!(error instanceof NodeFailure)) return error
  const { type, retryable, retryAfterMs } = error
  const options = { type, retryable, cause: error }
  return new NodeFailure(error.message, retryAfterMs === undefined ? options : { ...options, retryAfterMs })
}

async function fly(tools: TokenTools, seen: Grant): Promise<Grant> {
  for (let grant = seen; ; ) {
    const renewer = randomUUID()
    const claim = await claimRenewal(tools.store, grant, renewer, CLAIM_MS)
    if (claim.claimed) return carryOut(tools, grant, { renewer, interrupted: claim.interrupted })
    grant = await readGrant(tools.store, grant)
    if (grant.revision !== seen.revision) {
      demandWhole(grant)
      if (grant.accessToken !== null && grant.accessToken !== seen.accessToken) return grant
      // Something else was changed: that may have been what was missing.
      if (!isRenewable(grant)) throw broken(grant, NOT_CONNECTED)
      seen = grant
      continue
    }
    if (grant.broken !== null && seen.broken === null) demandWhole(grant)
    const { renewal } = grant
    const restMs = renewal ? renewal.until.getTime() - Date.now() : 0
    if (renewal?.failure && restMs > 0) throw unavailable(grant, renewal.failure, restMs)
    await sleep(LOOK_MS)
  }
}

type Claimed = { renewer: string; interrupted: boolean }

async function carryOut(tools: TokenTools, grant: Grant, { renewer, interrupted }: Claimed): Promise<Grant> {
  const { store, http } = tools
  const asked = await ask(http, grant).catch(async (error) => {
    await postponeRenewal(store, grant, renewer, { failure: 'an unexpected error', forMs: PAUSE_MS })
    throw error
  })
  if ('accessToken' in asked) {
    const stored = await retryOutages(AbortSignal.timeout(STORING_MS), () =>
      storeTokens(store, grant, renewer, asked),
    )
    return stored.accessToken === asked.accessToken ? stored : goOn(tools, stored)
  }
  const { refused, how, retryAfterMs = 0 } = asked
  if (how === 'ended') {
    const lost = interrupted ? '. An earlier renewal was interrupted, and may have lost the next token' : ''
    const todo = grant.type === 'OAUTH2' ? 'Connect it again' : 'Look at its keys'
    const why = `it ${refused}${lost}. ${todo}`
    if (await breakGrant(store, grant, renewer, why)) throw broken(grant, `cannot be used: ${why}`)
    return goOn(tools, await readGrant(store, grant))
  }
  const forMs = Math.min(MAX_PAUSE_MS, Math.max(PAUSE_MS, retryAfterMs))
  await postponeRenewal(store, grant, renewer, { failure: `it ${refused}`, forMs })
  if (how === 'refused') throw broken(grant, refused)
  throw unavailable(grant, `it ${refused}`, forMs)
}

/** Goes on with a credential that was changed while the token server was asked. */
async function goOn(tools: TokenTools, changed: Grant): Promise<Grant> {
  demandWhole(changed)
  if (isRenewable(changed)) return fly(tools, changed)
  if (changed.accessToken !== null) return changed
  throw broken(changed, NOT_CONNECTED)
}

async function ask(http: HttpClient, grant: Grant): Promise<Tokens | TokenRefusal> {
  const request = await writeRenewal(grant)
  if (!request) return { refused: 'has a privateKey that is no RSA key in PEM', how: 'ended' }
  const startedAt = performance.now()
  const asked = await askTokenServer(http, request)
  if ('accessToken' in asked) {
    // The lifetime began at some time after the request was sent.
    const tookS = (performance.now() - startedAt) / 1_000
    const expiresInS = asked.expiresInS === null ? null : Math.max(1, asked.expiresInS - tookS)
    return { ...asked, expiresInS }
  }
  const { how, aheadS = 0 } = asked
  if (grant.type !== 'GOOGLE_SERVICE_ACCOUNT' || how !== 'ended' || Math.abs(aheadS) <= MAX_SKEW_S)
    return asked
  // A signed request names its time, so a wrong clock looks like a wrong key.
  const clock = `the clock of this machine is ${Math.abs(aheadS)} s ${aheadS > 0 ? 'behind' : 'ahead of'} the token server's`
  return { ...asked, refused: `${asked.refused}. But ${clock}`, how: 'later' }
}
