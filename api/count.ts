import type { Context } from 'hono'
import ipaddr from 'ipaddr.js'
import { isDatabaseAway } from '../db/connection.ts'
import { Fault } from '../db/fault.ts'
import { ADDRESS_LIMIT, type Count, type Counted, countRequest } from '../db/limits.ts'
import type { Scope } from '../db/scope.ts'
import type { ApiDeps, AppEnv } from './app.ts'

/** Finds the team that a request is about, where it names one; the caller need not be its member. */
export type FindTeam = (scope: Scope) => Promise<string | undefined>

type Put = (name: string, value: string) => void

// Whoever watches the service must not use it up. The console's files are not routes of the API, so nobody counts them.
const UNCOUNTED = /^\/(healthz|readyz|metrics|api\/docs(\/.*)?)$/

/**
 * The count of one request, once however often it is asked for: against an SDK token's team; else the team that
 * the request is about, if the caller is its member; else the user; without valid credentials the address.
 * Throws THROTTLED above the limit, UNAVAILABLE where the count cannot be had.
 */
export function createCounting(deps: ApiDeps, c: Context<AppEnv>, put: Put) {
  tellLimit(put)
  let done = false
  return async (findTeam?: FindTeam): Promise<void> => {
    if (done || UNCOUNTED.test(c.req.path)) return
    done = true
    const count = await countRequest(deps.store, await findCounted(c, findTeam))
    tellLimit(put, count)
    if (count.used <= count.limit || deps.rateLimits === false) return
    const message = `More than ${count.limit} requests in this minute; try again in ${count.wait} s`
    throw new Fault('THROTTLED', message, { retryAfter: count.wait })
  }
}

async function findCounted(c: Context<AppEnv>, findTeam: FindTeam | undefined): Promise<Counted> {
  const scope = await c
    .get('authenticate')()
    .catch((error) => {
      if (!(error instanceof Fault)) throw error
    })
  if (!scope) return { kind: 'IP', id: readNetwork(c.get('ip')) }
  const teamId = await chooseTeam(scope, findTeam)
  if (teamId !== undefined) return { kind: 'TEAM', id: teamId }
  return { kind: 'USER', id: scope.userId! }
}

async function chooseTeam(scope: Scope, findTeam: FindTeam | undefined): Promise<string | undefined> {
  // A token has one team, or none where its maker has left it.
  if (scope.actor.kind === 'SDK_TOKEN') return scope.roles.keys().next().value
  if (!findTeam || scope.roles.size === 0) return undefined
  const named = await findTeam(scope).catch((error) => {
    // What is wrong with the request is said after it has been counted.
    if (isDatabaseAway(error)) throw error
  })
  return named && scope.roles.has(named) ? named : undefined
}

/** Puts the three headers: as counted, else those of an address that has not asked yet. */
export function tellLimit(put: Put, count?: Count): void {
  const { limit, used, resetAt } = count ?? { limit: ADDRESS_LIMIT, used: 0, resetAt: nextMinute() }
  put('X-RateLimit-Limit', String(limit))
  put('X-RateLimit-Remaining', String(Math.max(0, limit - used)))
  put('X-RateLimit-Reset', String(resetAt))
}

function nextMinute(): number {
  return Math.floor(Date.now() / 60_000) * 60 + 60
}

/** Of IPv6 the network of 64 bits: one host has all of its addresses. */
function readNetwork(address: string): string {
  if (!ipaddr.isValid(address)) return 'unknown'
  const ip = ipaddr.process(address)
  if (ip.kind() === 'ipv4') return ip.toString()
  const parts = (ip as ipaddr.IPv6).parts.slice(0, 4)
  return `${parts.map((part) => part.toString(16)).join(':')}::/64`
}
