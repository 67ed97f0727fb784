import { Hono } from 'hono'
import * as v from 'valibot'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { describeError } from '../http/errors.ts'
import { ErrorSchema } from '../http/responses.ts'

const PARTS = {
  database: v.boolean(),
  temporal: v.boolean(),
  worker: v.boolean(),
  models: v.optional(
    v.pipe(
      v.boolean(),
      v.description(
        'Whether a worker takes calls to models. A worker of a release before agents does not; only they wait then',
      ),
    ),
  ),
  account: v.optional(
    v.pipe(
      v.boolean(),
      v.description(
        'Whether there is a first account to sign in with. Not told by a process that is only a worker',
      ),
    ),
  ),
}

/** /healthz responds if the process is alive, and /readyz tells whether the systems it depends on respond. */
export function createHealthRoutes(deps: ApiDeps) {
  return new Hono<AppEnv>()
    .get(
      '/healthz',
      accept({
        id: 'readHealth',
        tag: 'Operation',
        summary: 'Check that the process is alive',
        role: 'public',
        responses: {
          200: { description: 'The process is alive', schema: v.object({ status: v.literal('ok') }) },
        },
      }),
      (c) => c.json({ status: 'ok' as const }),
    )
    .get(
      '/readyz',
      accept({
        id: 'readReadiness',
        tag: 'Operation',
        summary: 'Check that the service is ready',
        description:
          'Ready means that the database, Temporal and a worker respond, and that the first account has been made.',
        role: 'public',
        responses: {
          200: { description: 'All of them are there', schema: v.object(PARTS) },
          503: {
            description: 'At least one of them is not there',
            schema: v.object({ ...ErrorSchema.entries, ...PARTS }),
            headers: { 'Retry-After': 'Seconds to wait before trying again' },
          },
        },
      }),
      async (c) => {
        const parts = await deps.isReady()
        const { models: _, ...needed } = parts
        const away = Object.entries(needed).flatMap(([name, up]) => (up ? [] : [name]))
        if (away.length === 0) return c.json(parts)
        c.header('Retry-After', '2')
        return c.json({ ...describeError(c.req.path, 503, `Not ready: ${away.join(', ')}`), ...parts }, 503)
      },
    )
}
