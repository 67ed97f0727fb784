import { Hono } from 'hono'
import { accept } from './accept.ts'
import type { ApiDeps, AppEnv } from './app.ts'
import { describeError } from './errors.ts'

/** /healthz says that the process answers; /readyz that everything behind it does. */
export function createHealthRoutes(deps: ApiDeps) {
  return new Hono<AppEnv>()
    .get('/healthz', accept({ summary: 'Whether the process is alive', role: 'public' }), (c) =>
      c.json({ status: 'ok' as const }),
    )
    .get('/readyz', accept({ summary: 'Whether the service can work', role: 'public' }), async (c) => {
      const parts = await deps.isReady()
      if (parts.database && parts.temporal && parts.worker) return c.json(parts)
      c.header('Retry-After', '2')
      const away = Object.entries(parts).flatMap(([name, up]) => (up ? [] : [name]))
      return c.json({ ...describeError(c.req.path, 503, `Not ready: ${away.join(', ')}`), ...parts }, 503)
    })
}
