import { Hono } from 'hono'
import * as v from 'valibot'
import { listLimits } from '../db/limits.ts'
import { accept } from './accept.ts'
import type { AppEnv } from './app.ts'
import { paging } from './query.ts'

/** The counts of the rate limits, for the instance's admin. */
export function createLimitRoutes() {
  return new Hono<AppEnv>().get(
    '/api/admin/rate-limits',
    accept({ summary: "List this minute's rate limits", role: 'user', query: v.object(paging) }),
    async (c) => c.json(await listLimits(c.get('scope'), c.req.valid('query'))),
  )
}
