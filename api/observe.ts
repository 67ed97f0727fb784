import type { Context, MiddlewareHandler } from 'hono'
import { matchedRoutes } from 'hono/route'
import type { Metrics } from '../activities/metrics.ts'
import type { Tracing } from '../activities/tracing.ts'
import type { AppEnv } from './app.ts'

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
/** Asked every few seconds by machines: a trace of each would bury the others. */
const UNTRACED = /^\/(healthz|readyz|metrics)$/

/**
 * Around every request: its count and time by route pattern, and its span, under the caller's `traceparent`. The
 * answer names the span in `traceresponse` (W3C Trace Context level 2).
 */
export function observe(metrics: Metrics, tracing: Tracing | undefined): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const began = performance.now()
    const method = METHODS.has(c.req.method) ? c.req.method : 'OTHER'
    if (!tracing || UNTRACED.test(c.req.path)) {
      await next()
      count(metrics, c, method, findRoute(c), began)
      return
    }
    const route = findRoute(c)
    const span = tracing.begin(`${method} ${route}`, {
      kind: 'server',
      parent: c.req.header('traceparent'),
      attributes: { 'http.request.method': method, 'http.route': route },
    })
    c.set('traceparent', span.traceparent)
    await next()
    count(metrics, c, method, route, began)
    const { status, headers } = c.res
    headers.set('traceresponse', span.traceparent)
    const failure = status >= 500 ? String(status) : undefined
    span.end({ failure, attributes: { 'http.response.status_code': status } })
  }
}

function count(metrics: Metrics, c: Context, method: string, route: string, began: number): void {
  const labels = { method, route, status: c.res.status }
  metrics.requests.observe(labels, (performance.now() - began) / 1_000)
}

/** The pattern of the route that takes the request; what none takes is one route too, so that nobody makes more. */
function findRoute(c: Context): string {
  const paths = matchedRoutes(c).map((route) => route.path)
  return paths.findLast((path) => !path.endsWith('*')) ?? paths.findLast((path) => path.length > 2) ?? 'none'
}
