import type { Context, MiddlewareHandler } from 'hono'
import { v7 as uuid } from 'uuid'
import { readTraceIds } from '../../activities/tracing.ts'
import { Fault } from '../../db/fault.ts'
import { rememberWith } from '../../db/memory.ts'
import { CALL_MARK, isCallMark } from '../../db/operation/callmark.ts'
import type { Scope } from '../../db/scope.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { watchRightsOn } from '../people/changes.ts'
import { isSecure } from '../people/cookies.ts'
import { createLastingWatch } from '../people/lasting.ts'
import { authenticate, SESSION_COOKIE } from '../people/session.ts'
import { isLoopback } from './host.ts'
import { findRoute } from './observe.ts'
import { countsItself, createRequestCounter } from './ratelimit.ts'

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS'])

// JSON and files may load nothing; a page may load from this origin. Neither may be framed.
const NO_PAGE = "default-src 'none'; frame-ancestors 'none'"
const PAGE = [
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'",
  "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
].join('; ')

/**
 * Runs for every request: sets its id, the caller's address and the common response headers, logs it, and
 * refuses writes that a page of another origin sends with the session cookie, and calls of the service's own
 * workflows but to hooks (FORBIDDEN).
 */
export function receive(deps: ApiDeps): MiddlewareHandler<AppEnv> {
  // Before anything else hears of changes, so that who looks again because of one finds nothing old.
  rememberWith(deps.store.db, deps.bus)
  const secure = isSecure(deps)
  const own = new Set([new URL(deps.publicUrl).origin, ...(deps.corsOrigins ?? [])])
  return async (c, next) => {
    const given = c.req.header('x-request-id')
    const requestId = given && /^[\w.:-]{1,128}$/.test(given) ? given : uuid()
    c.set('requestId', requestId)
    noteProxy(deps, c)
    c.set('ip', readAddress(c, deps.proxyHops ?? 0))
    // Without spans of its own the service still names the caller's trace.
    const span = readTraceIds(c.get('trace')?.traceparent)
    const traceId = span?.traceId ?? readTraceIds(c.req.header('traceparent'))?.traceId
    c.set('log', deps.log.child({ requestId, ...(traceId === undefined ? {} : { traceId }), ...span }))
    let scope: Promise<Scope> | undefined
    c.set('authenticate', ({ anew } = { anew: false }) => {
      if (anew || !scope) scope = authenticate(deps, c, { counts: !anew && countsItself(c) })
      return scope
    })
    c.set('rightsSeen', watchRightsOn(deps.bus).seen())
    c.set('whileAllowed', createLastingWatch(deps, c))
    const headers = new Map<string, string>()
    const put = (name: string, value: string) => {
      headers.set(name, value)
      c.header(name, value)
    }
    put('X-Request-Id', requestId)
    put('X-Content-Type-Options', 'nosniff')
    put('X-Frame-Options', 'DENY')
    put('Referrer-Policy', 'no-referrer')
    put('Cross-Origin-Resource-Policy', 'same-origin')
    put('Content-Security-Policy', NO_PAGE)
    put('Cache-Control', 'no-store')
    if (secure) put('Strict-Transport-Security', 'max-age=31536000')
    c.set('countRequest', createRequestCounter(deps, c, put))
    if (!SAFE.has(c.req.method) && isForeign(c, own, secure)) {
      await c.get('countRequest')()
      throw new Fault('FORBIDDEN', 'A page of another origin must not write with the session cookie')
    }
    if (isForbiddenCall(deps, c)) {
      await c.get('countRequest')()
      throw new Fault('FORBIDDEN', 'A workflow may call only /hooks and /resume of its own service')
    }
    const start = performance.now()
    await next()
    completeHeaders(c.res.headers, headers)
    const { status } = c.res
    const level = SAFE.has(c.req.method) && status < 400 ? 'debug' : 'info'
    const ms = Math.round(performance.now() - start)
    c.get('log')[level]({ method: c.req.method, route: findRoute(c), status, ms }, 'request')
  }
}

/** The name of a header that only a proxy adds; undefined if the request has none. */
export function findProxyHeader(c: Context): string | undefined {
  const names = [...c.req.raw.headers.keys()]
  return names.find((name) => /^(forwarded|via|x-real-ip|x-forwarded-.*)$/.test(name))
}

// A proxy that was not announced may serve this machine's service to anyone.
function noteProxy({ proxyHops = 0, exposure }: ApiDeps, c: Context): void {
  if (proxyHops > 0 || !exposure || exposure.why() !== null) return
  const header = findProxyHeader(c)
  if (header) exposure.noteProxy(header.slice(0, 40))
}

// The egress rules refuse most of these calls already, before they are made (activities/egress/ownplaces.ts).
function isForbiddenCall({ store }: ApiDeps, c: Context): boolean {
  const mark = c.req.header(CALL_MARK)
  if (mark === undefined || /^\/(hooks|resume)\//.test(c.req.path)) return false
  return isCallMark(store.keys, mark)
}

function completeHeaders(given: Headers, wanted: Map<string, string>): void {
  // A Response that the handler has constructed itself lacks the headers that were set before.
  if (!given.has('X-Request-Id')) {
    for (const [name, value] of wanted) if (!given.has(name)) given.set(name, value)
  }
  const isPage = given.get('Content-Type')?.startsWith('text/html')
  if (isPage && given.get('Content-Security-Policy') === NO_PAGE) given.set('Content-Security-Policy', PAGE)
}

// Cookies are the only credentials that a browser adds to another page's request. So a page cannot forge a request with
// a Bearer token, and webhooks do not use the session.
function isForeign(c: Context, own: Set<string>, secure: boolean): boolean {
  const origin = c.req.header('origin')
  if ((origin !== undefined && own.has(origin)) || !c.req.path.startsWith('/api/')) return false
  if (/^bearer /i.test(c.req.header('authorization') ?? '')) return false
  if (!(c.req.header('cookie') ?? '').includes(`${SESSION_COOKIE}=`)) return false
  if (c.req.header('sec-fetch-site') === 'cross-site') return true
  if (origin === undefined) return false
  const page = URL.parse(origin)
  if (!page || page.host !== c.req.header('host')?.toLowerCase()) return true
  // Over http an attacker on the way can write the page of a name. A proxy in front may add https, never take it.
  return secure && page.protocol !== 'https:' && !isLoopback(page.hostname)
}

function readAddress(c: Context, proxyHops: number): string {
  const forwarded = (c.req.header('x-forwarded-for') ?? '').split(',').map((part) => part.trim())
  const hop = proxyHops > 0 ? forwarded.at(-proxyHops) : undefined
  if (hop) return hop.slice(0, 64)
  const incoming = (c.env as { incoming?: { socket?: { remoteAddress?: string } } } | undefined)?.incoming
  return incoming?.socket?.remoteAddress ?? 'unknown'
}
