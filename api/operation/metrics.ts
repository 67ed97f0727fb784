import { createHash, timingSafeEqual } from 'node:crypto'
import { type Context, Hono } from 'hono'
import ipaddr from 'ipaddr.js'
import type { Metrics } from '../../activities/metrics.ts'
import { Fault } from '../../db/fault.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { findProxyHeader } from '../http/receive.ts'
import { readBearer } from '../people/session.ts'

/**
 * /metrics for Prometheus. If METRICS_TOKEN is set, a caller must send it as a Bearer token. Otherwise only
 * clients on this machine may read the metrics, and not through a proxy on it, because the proxy's clients
 * may be anywhere.
 */
export function createMetricsRoutes(deps: Pick<ApiDeps, 'metricsToken'>, metrics: Metrics) {
  return new Hono<AppEnv>().get(
    '/metrics',
    accept({
      id: 'readMetrics',
      tag: 'Operation',
      summary: 'Read the metrics of this process',
      description:
        'For Prometheus. If the setting METRICS_TOKEN is set, send it as a Bearer token (else 401). ' +
        'If it is not set, only the machine that the service runs on may read the metrics, and not through a ' +
        'proxy (else 403).',
      role: 'public',
      faults: [401, 403],
      responses: { 200: { description: 'The metrics in the Prometheus text format', type: 'text/plain' } },
    }),
    async (c) => {
      admit(c, deps.metricsToken)
      c.header('Content-Type', metrics.registry.contentType)
      return c.body(await metrics.registry.metrics())
    },
  )
}

function admit(c: Context<AppEnv>, token: string | undefined): void {
  if (token !== undefined) {
    const given = readBearer(c)
    if (given === undefined || !timingSafeEqual(digest(given), digest(token)))
      throw new Fault('UNAUTHENTICATED', 'The metrics require METRICS_TOKEN as a Bearer token')
    return
  }
  const { incoming } = (c.env ?? {}) as { incoming?: { socket?: { remoteAddress?: string } } }
  const address = incoming?.socket?.remoteAddress ?? ''
  const local = ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback'
  if (!local || findProxyHeader(c))
    throw new Fault('FORBIDDEN', 'Without METRICS_TOKEN only this machine may read the metrics')
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
