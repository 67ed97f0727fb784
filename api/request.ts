import type { Context, MiddlewareHandler } from 'hono'
import { v7 as uuid } from 'uuid'
import { Fault } from '../db/fault.ts'
import type { Scope } from '../db/scope.ts'
import type { ApiDeps, AppEnv } from './app.ts'
import { authenticate, COOKIE } from './session.ts'

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS'])

/** In front of every request: its id, the caller's address, the headers every answer carries, and foreign pages kept out. */
export function receive(deps: ApiDeps): MiddlewareHandler<AppEnv> {
  const secure = deps.publicUrl.startsWith('https:')
  const ownOrigin = new URL(deps.publicUrl).origin
  return async (c, next) => {
    const given = c.req.header('x-request-id')
    const requestId = given && /^[\w.:-]{1,128}$/.test(given) ? given : uuid()
    c.set('requestId', requestId)
    c.set('ip', readAddress(c, deps.proxyHops ?? 0))
    c.set('log', deps.log.child({ requestId }))
    let scope: Promise<Scope> | undefined
    c.set('authenticate', () => {
      scope ??= authenticate(deps, c)
      return scope
    })
    c.header('X-Request-Id', requestId)
    c.header('X-Content-Type-Options', 'nosniff')
    c.header('X-Frame-Options', 'DENY')
    c.header('Referrer-Policy', 'no-referrer')
    c.header('Cross-Origin-Resource-Policy', 'same-origin')
    c.header('Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'")
    c.header('Cache-Control', 'no-store')
    if (secure) c.header('Strict-Transport-Security', 'max-age=31536000')
    if (!SAFE.has(c.req.method) && isForeign(c, ownOrigin)) {
      throw new Fault('FORBIDDEN', 'A page of another origin cannot write with the session cookie')
    }
    const start = performance.now()
    await next()
    const { status } = c.res
    const level = SAFE.has(c.req.method) && status < 400 ? 'debug' : 'info'
    const ms = Math.round(performance.now() - start)
    c.get('log')[level]({ method: c.req.method, path: c.req.path, status, ms }, 'request')
  }
}

// Only a cookie is sent by a browser without being asked; a Bearer token or a webhook is not.
function isForeign(c: Context, ownOrigin: string): boolean {
  const origin = c.req.header('origin')
  if (origin === undefined || origin === ownOrigin || !c.req.path.startsWith('/api/')) return false
  if (/^bearer /i.test(c.req.header('authorization') ?? '')) return false
  if (!(c.req.header('cookie') ?? '').includes(`${COOKIE}=`)) return false
  return !URL.canParse(origin) || new URL(origin).host !== c.req.header('host')
}

function readAddress(c: Context, proxyHops: number): string {
  const forwarded = (c.req.header('x-forwarded-for') ?? '').split(',').map((part) => part.trim())
  const hop = proxyHops > 0 ? forwarded.at(-proxyHops) : undefined
  if (hop) return hop.slice(0, 64)
  const incoming = (c.env as { incoming?: { socket?: { remoteAddress?: string } } } | undefined)?.incoming
  return incoming?.socket?.remoteAddress ?? 'unknown'
}
