import type { Context, MiddlewareHandler } from 'hono'
import { matchedRoutes } from 'hono/route'
import type { Metrics } from '../../activities/metrics.ts'
import type { Tracing } from '../../activities/tracing.ts'
import type { AppEnv } from '../env.ts'

const COUNTED_METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Probes request these paths every few seconds, and their traces would bury all others. */
const UNTRACED = /^\/(healthz|readyz|metrics)$/

/**
 * The outermost middleware. It counts and times each request under its route pattern, and opens a span as a child of
 * the caller's `traceparent`, whose `tracestate` goes on with it. The response names the span in `traceresponse`, as
 * W3C Trace Context level 2 says.
 */
export function observe(metrics: Metrics, tracing: Tracing | undefined): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const began = performance.now()
    const method = COUNTED_METHODS.has(c.req.method) ? c.req.method : 'OTHER'
    if (!tracing || UNTRACED.test(c.req.path)) {
      await next()
      observeRequest(metrics, c, method, findRoute(c), began)
      return
    }
    const route = findRoute(c)
    const span = tracing.begin(`${method} ${route}`, {
      kind: 'server',
      parent: c.req.header('traceparent'),
      state: c.req.header('tracestate'),
      attributes: { 'http.request.method': method, 'http.route': route },
    })
    c.set('trace', { traceparent: span.traceparent, tracestate: span.tracestate })
    await next()
    observeRequest(metrics, c, method, route, began)
    const { status, headers } = c.res
    headers.set('traceresponse', span.traceparent)
    const failure = status >= 500 ? String(status) : undefined
    span.end({ failure, attributes: { 'http.response.status_code': status } })
  }
}

function observeRequest(metrics: Metrics, c: Context, method: string, route: string, began: number): void {
  const labels = { method, route, status: c.res.status }
  metrics.requests.observe(labels, (performance.now() - began) / 1_000)
}

/**
 * The pattern of the request's route, for labels and logs: a path may hold a secret, such as the token of a
 * resume URL. Requests without a route share one, so that callers cannot create labels.
 */
export function findRoute(c: Context): string {
  const paths = matchedRoutes(c).map((route) => route.path)
  return paths.findLast((path) => !path.endsWith('*')) ?? paths.findLast((path) => path.length > 2) ?? 'none'
}
