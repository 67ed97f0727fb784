import type { MiddlewareHandler } from 'hono'
import type { AppEnv } from './app.ts'

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE'
const TAKEN =
  'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Traceparent, X-Request-Id'
const SHOWN =
  'Content-Disposition, ETag, Location, Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-Id, X-Unknown-Fields'

/** Lets pages of these origins, and of no others, use the API with their users' cookies. */
export function allowOrigins(origins: string[]): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const origin = c.req.header('origin')
    c.header('Vary', 'Origin', { append: true })
    if (origin === undefined || !origins.includes(origin)) return next()
    c.header('Access-Control-Allow-Origin', origin)
    c.header('Access-Control-Allow-Credentials', 'true')
    c.header('Access-Control-Expose-Headers', SHOWN)
    if (c.req.method !== 'OPTIONS' || !c.req.header('access-control-request-method')) return next()
    await c.get('count')()
    c.header('Access-Control-Allow-Methods', METHODS)
    c.header('Access-Control-Allow-Headers', TAKEN)
    c.header('Access-Control-Max-Age', '600')
    return c.body(null, 204)
  }
}
