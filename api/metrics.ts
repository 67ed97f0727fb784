import { createHash, timingSafeEqual } from 'node:crypto'
import { type Context, Hono } from 'hono'
import ipaddr from 'ipaddr.js'
import type { Metrics } from '../activities/metrics.ts'
import { Fault } from '../db/fault.ts'
import { accept } from './accept.ts'
import type { ApiDeps, AppEnv } from './app.ts'
import { readBearer } from './session.ts'

/**
 * /metrics for Prometheus. With METRICS_TOKEN it takes that as a Bearer token and nothing else; without one it
 * answers this machine only, and no proxy on it (whoever is behind one is somebody else).
 */
export function createMetricsRoutes(deps: Pick<ApiDeps, 'metricsToken'>, metrics: Metrics) {
  return new Hono<AppEnv>().get(
    '/metrics',
    accept({
      id: 'readMetrics',
      tag: 'Operation',
      summary: 'What this process counts, for Prometheus',
      description:
        'With METRICS_TOKEN set, that token as Bearer; else only from the machine that the service runs on.',
      role: 'public',
      faults: [401, 403],
      responses: { 200: { description: 'Prometheus text format', type: 'text/plain' } },
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
      throw new Fault('UNAUTHENTICATED', 'The metrics need METRICS_TOKEN as a Bearer token')
    return
  }
  const { incoming } = (c.env ?? {}) as { incoming?: { socket?: { remoteAddress?: string } } }
  const address = incoming?.socket?.remoteAddress ?? ''
  const local = ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback'
  const proxied = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'].some((name) => c.req.header(name))
  if (!local || proxied)
    throw new Fault('FORBIDDEN', 'Without METRICS_TOKEN the metrics are for this machine only')
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
