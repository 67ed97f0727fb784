import type { MiddlewareHandler } from 'hono'
import type { AppEnv } from '../env.ts'

const ALLOWED_METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE'
const ALLOWED_HEADERS =
  'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Prefer, Traceparent, X-Request-Id'
const EXPOSED_HEADERS =
  'Content-Disposition, ETag, Location, Preference-Applied, Retry-After, X-Next-After, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-Id, X-Unknown-Fields'

/** The routes for visitors of other people's pages: each widget names its own origins. */
const WIDGETS = '/api/public/widgets/'

/** Lets pages of these origins, and no others, call the API with their users' cookies. */
export function allowOrigins(origins: string[]): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    if (c.req.path.startsWith(WIDGETS)) return next()
    const origin = c.req.header('origin')
    c.header('Vary', 'Origin', { append: true })
    if (origin === undefined || !origins.includes(origin)) return next()
    c.header('Access-Control-Allow-Origin', origin)
    c.header('Access-Control-Allow-Credentials', 'true')
    c.header('Access-Control-Expose-Headers', EXPOSED_HEADERS)
    if (c.req.method !== 'OPTIONS' || !c.req.header('access-control-request-method')) return next()
    await c.get('countRequest')()
    c.header('Access-Control-Allow-Methods', ALLOWED_METHODS)
    c.header('Access-Control-Allow-Headers', ALLOWED_HEADERS)
    c.header('Access-Control-Max-Age', '600')
    return c.body(null, 204)
  }
}
