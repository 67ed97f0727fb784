import { Hono } from 'hono'
import * as v from 'valibot'
import { listLimits } from '../db/limits.ts'
import { accept } from './accept.ts'
import { count, pageOf, time } from './answers.ts'
import type { AppEnv } from './app.ts'
import { paging } from './query.ts'

const LimitItem = v.pipe(
  v.object({
    kind: v.pipe(v.picklist(['TEAM', 'USER', 'IP']), v.description('What the requests count against')),
    id: v.pipe(v.string(), v.description("The team's or user's id, or the address")),
    name: v.pipe(v.nullable(v.string()), v.description("The team's name, the user's e-mail")),
    limit: count,
    used: count,
    remaining: count,
    resetAt: time,
  }),
  v.title('RateLimit'),
)

/** The counts of the rate limits, for the instance's admin. */
export function createLimitRoutes() {
  return new Hono<AppEnv>().get(
    '/api/admin/rate-limits',
    accept({
      id: 'listRateLimits',
      tag: 'Operation',
      summary: "List this minute's rate limits",
      role: 'instance',
      query: v.object(paging),
      responses: {
        200: { description: 'The busiest first', schema: pageOf('RateLimitPage', LimitItem) },
      },
    }),
    async (c) => c.json(await listLimits(c.get('scope'), c.req.valid('query'))),
  )
}
