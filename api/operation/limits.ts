import { Hono } from 'hono'
import * as v from 'valibot'
import { COUNTED_KINDS, listLimits } from '../../db/operation/limits.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { paging } from '../http/query.ts'
import { countSchema, pageSchema, timeSchema } from '../http/responses.ts'

const LimitItemSchema = v.pipe(
  v.object({
    kind: v.pipe(v.picklist(COUNTED_KINDS), v.description('Whose requests are counted')),
    id: v.pipe(v.string(), v.description('The id of the team, user, widget or visitor, or the IP address')),
    name: v.pipe(
      v.nullable(v.string()),
      v.description("The name of the team or widget, or the user's e-mail. Null for addresses and visitors"),
    ),
    limit: countSchema,
    used: v.pipe(countSchema, v.description('Requests in this minute')),
    remaining: countSchema,
    resetAt: timeSchema,
  }),
  v.title('RateLimit'),
)

/** The route with which the instance's admin reads the counts of the rate limits. */
export function createLimitRoutes() {
  return new Hono<AppEnv>().get(
    '/api/admin/rate-limits',
    accept({
      id: 'listRateLimits',
      tag: 'Operation',
      summary: 'List the rate limits',
      description:
        'The teams, users, widgets and addresses that have sent requests in this minute, the busiest first.',
      role: 'instance',
      query: v.object(paging),
      responses: {
        200: { description: 'One page', schema: pageSchema('RateLimitPage', LimitItemSchema) },
      },
    }),
    async (c) => c.json(await listLimits(c.get('scope'), c.req.valid('query'))),
  )
}
