import type { Context } from 'hono'
import { validate as isUuid } from 'uuid'
import { isDatabaseAway } from '../../db/connection.ts'
import { Fault } from '../../db/fault.ts'
import {
  ADDRESS_LIMIT,
  type CountedCaller,
  countRequest,
  PLAN_LIMITS,
  type RequestCount,
} from '../../db/operation/limits.ts'
import { isReadOnly } from '../../db/operation/outage.ts'
import { readNetwork } from '../../db/people/network.ts'
import type { Scope } from '../../db/scope.ts'
import type { ApiDeps, AppEnv, FindTeam } from '../env.ts'
import { readDevice } from '../people/device.ts'

type Put = (name: string, value: string) => void

// Watching the service must not use up a limit. (The console's files are not listed: they are not counted
// anyway, because they do not pass through `accept`.)
const UNCOUNTED = /^\/(healthz|readyz|metrics|api\/docs(\/.*)?)$/

const READS = new Set(['GET', 'HEAD', 'OPTIONS'])

const SIGN_IN = '/api/auth/login'

/** Whether requests of its address count against a limit. */
export function isCounted(c: Context): boolean {
  return !UNCOUNTED.test(c.req.path)
}

const parts = new WeakSet<Request>()

/** Notes that a request is made by this process for another one, with which it has been counted. */
export function notePart(request: Request): Request {
  parts.add(request)
  return request
}

/** Whether a request counts by itself. */
export function countsItself(c: Context): boolean {
  return isCounted(c) && !parts.has(c.req.raw)
}

/**
 * Returns a function that counts one request, and only once, however often it is called. The request counts against the
 * team of its SDK token; else the team it is about, if the caller is a member; else the user; and without valid
 * credentials the user of a known device who signs in, or the client's address; if the request has `buckets`, against
 * each of those instead. A request of a FREE team counts against all FREE teams of the user too, because users may make
 * any number of teams. The function throws THROTTLED above the limit, and UNAVAILABLE if it cannot count; while the
 * database takes no changes, requests that only read are not counted.
 */
export function createRequestCounter(deps: ApiDeps, c: Context<AppEnv>, put: Put) {
  putLimitHeaders(put)
  let done = false
  return async (findTeam?: FindTeam): Promise<void> => {
    if (done || !countsItself(c)) return
    done = true
    const buckets = c.get('buckets')
    if (buckets) return countEach(deps, buckets, put)
    const { counted, userId } = await findCounted(deps, c, findTeam)
    let count = c.get('counted')
    try {
      count ??= await countRequest(deps.store, counted)
    } catch (error) {
      // Requests that only read go on. Others, such as a guessed password, would go on without a limit.
      if (READS.has(c.req.method) && isReadOnly(error)) return
      throw error
    }
    if (counted.kind === 'TEAM' && count.limit === PLAN_LIMITS.FREE && count.used <= count.limit) {
      const own = await countRequest(deps.store, { kind: 'FREE_TEAMS', id: userId! })
      if (own.used > own.limit) count = own
    }
    putLimitHeaders(put, count)
    demandRoom(deps, count)
  }
}

/**
 * Counts a request against several limits, one after the other, so that what the first one refuses does not use up the
 * others. The headers show the last one, or the one that refuses.
 */
async function countEach(deps: ApiDeps, buckets: CountedCaller[], put: Put): Promise<void> {
  for (const bucket of buckets) {
    const count = await countRequest(deps.store, bucket)
    putLimitHeaders(put, count)
    demandRoom(deps, count)
  }
}

function demandRoom({ rateLimits }: ApiDeps, { used, limit, wait }: RequestCount): void {
  if (used <= limit || rateLimits === false) return
  const message = `More than ${limit} requests in this minute. Try again in ${wait} s`
  throw new Fault('THROTTLED', message, { retryAfter: wait })
}

type Counted = { counted: CountedCaller; userId?: string | null }

async function findCounted(
  { store }: ApiDeps,
  c: Context<AppEnv>,
  findTeam: FindTeam | undefined,
): Promise<Counted> {
  const scope = await c
    .get('authenticate')()
    .catch((error) => {
      if (!(error instanceof Fault)) throw error
    })
  if (!scope) {
    // Strangers behind the same address do not keep those from signing in who have done so before.
    const device = c.req.path === SIGN_IN ? await readDevice(store.keys, c) : null
    const [person] = Object.keys(device?.marks ?? {})
    if (person !== undefined && isUuid(person)) return { counted: { kind: 'USER', id: person } }
    return { counted: { kind: 'IP', id: readNetwork(c.get('ip')) } }
  }
  const { userId } = scope
  const teamId = await chooseTeam(scope, findTeam)
  if (teamId !== undefined) return { counted: { kind: 'TEAM', id: teamId }, userId }
  return { counted: { kind: 'USER', id: userId! }, userId }
}

async function chooseTeam(scope: Scope, findTeam: FindTeam | undefined): Promise<string | undefined> {
  // A token has one team, or none if the user who created it has left the team.
  if (scope.actor.kind === 'SDK_TOKEN') return scope.roles.keys().next().value
  if (!findTeam || scope.roles.size === 0) return undefined
  const named = await findTeam(scope).catch((error) => {
    // Other errors of the request are reported after it has been counted.
    if (isDatabaseAway(error)) throw error
  })
  return named && scope.roles.has(named) ? named : undefined
}

/** Sets the three X-RateLimit headers: from the count, else for an address that has sent no request yet. */
export function putLimitHeaders(put: Put, count?: RequestCount): void {
  const { limit, used, resetAt } = count ?? { limit: ADDRESS_LIMIT, used: 0, resetAt: nextMinute() }
  put('X-RateLimit-Limit', String(limit))
  put('X-RateLimit-Remaining', String(Math.max(0, limit - used)))
  put('X-RateLimit-Reset', String(resetAt))
}

function nextMinute(): number {
  return Math.floor(Date.now() / 60_000) * 60 + 60
}
