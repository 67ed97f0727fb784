import { Hono } from 'hono'
import * as v from 'valibot'
import { accept } from './accept.ts'
import { ErrorAnswer } from './answers.ts'
import type { ApiDeps, AppEnv } from './app.ts'
import { describeError } from './errors.ts'

const PARTS = { database: v.boolean(), temporal: v.boolean(), worker: v.boolean() }

/** /healthz says that the process answers; /readyz that everything behind it does. */
export function createHealthRoutes(deps: ApiDeps) {
  return new Hono<AppEnv>()
    .get(
      '/healthz',
      accept({
        id: 'readHealth',
        tag: 'Operation',
        summary: 'Whether the process is alive',
        role: 'public',
        responses: { 200: { description: 'It is', schema: v.object({ status: v.literal('ok') }) } },
      }),
      (c) => c.json({ status: 'ok' as const }),
    )
    .get(
      '/readyz',
      accept({
        id: 'readReadiness',
        tag: 'Operation',
        summary: 'Whether the service can work',
        role: 'public',
        responses: {
          200: { description: 'Everything behind it answers', schema: v.object(PARTS) },
          503: {
            description: 'A part does not answer',
            schema: v.object({ ...ErrorAnswer.entries, ...PARTS }),
            headers: { 'Retry-After': 'Seconds to wait' },
          },
        },
      }),
      async (c) => {
        const parts = await deps.isReady()
        if (parts.database && parts.temporal && parts.worker) return c.json(parts)
        c.header('Retry-After', '2')
        const away = Object.entries(parts).flatMap(([name, up]) => (up ? [] : [name]))
        return c.json({ ...describeError(c.req.path, 503, `Not ready: ${away.join(', ')}`), ...parts }, 503)
      },
    )
}
