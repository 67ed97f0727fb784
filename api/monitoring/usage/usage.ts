import { Hono } from 'hono'
import * as v from 'valibot'
import { readDailyUsage, readModelUsage, readTokenUsage } from '../../../db/monitoring/usage/totals.ts'
import { findTimezone } from '../../../workflows/cron/zones.ts'
import type { AppEnv } from '../../env.ts'
import { accept } from '../../http/accept.ts'
import { boundedString, InTeam } from '../../http/fields.ts'
import { checkTimeRange } from '../../http/query.ts'
import { countSchema } from '../../http/responses.ts'
import {
  checkDefaultEnd,
  checkDefaultStart,
  checkLength,
  periodSchema,
  readSpan,
  UsageSpan,
  usageSpan,
} from '../spans.ts'
import { showTotal, totalFields, usageFields } from './amounts.ts'

const DailySpan = v.pipe(
  v.object({
    ...usageSpan,
    timezone: v.pipe(
      v.optional(
        v.pipe(
          boundedString(100),
          v.check((name) => findTimezone(name) !== undefined, 'must be a time zone such as Europe/Berlin'),
        ),
        'UTC',
      ),
      v.description('Whose days are counted'),
    ),
  }),
  checkTimeRange(),
  checkDefaultStart(),
  checkDefaultEnd(),
  checkLength(),
)

const executionCount = v.pipe(countSchema, v.description('How many executions have made the calls'))

const TotalSchema = v.pipe(
  v.object({ ...totalFields, executionCount, period: periodSchema }),
  v.title('TokenUsage'),
)
const DailySchema = v.pipe(
  v.object({
    days: v.array(
      v.object({
        date: v.pipe(v.string(), v.metadata({ format: 'date' }), v.examples(['2026-11-22'])),
        ...usageFields,
        executionCount,
      }),
    ),
    timezone: v.pipe(v.string(), v.examples(['UTC'])),
    period: periodSchema,
  }),
  v.title('DailyTokenUsage'),
)
const ModelsSchema = v.pipe(
  v.object({
    models: v.pipe(
      v.array(
        v.object({
          model: v.pipe(v.string(), v.examples(['gpt-4o'])),
          provider: v.pipe(v.string(), v.description('The type of the credential'), v.examples(['OPENAI'])),
          ...usageFields,
          executionCount,
        }),
      ),
      v.maxLength(1_000),
      v.description('The ones that cost most first, at most 1,000'),
    ),
    period: periodSchema,
  }),
  v.title('TokenUsageByModel'),
)

/** The routes that tell what a team's calls to models took. */
export function createUsageRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/monitoring/teams/:teamId/token-usage',
      accept({
        id: 'readTokenUsage',
        tag: 'Monitoring',
        summary: "Read a team's token usage",
        description:
          'What all calls to models took that began in the span, also those of executions, workflows and chats ' +
          'that are deleted since.',
        role: 'member',
        params: InTeam,
        query: UsageSpan,
        responses: { 200: { description: 'The total', schema: TotalSchema } },
      }),
      async (c) => {
        const { query, period } = readSpan(c.req.valid('query'))
        const { executions, ...usage } = await readTokenUsage(
          c.get('scope'),
          c.req.valid('param').teamId,
          query,
        )
        return c.json({ ...showTotal(usage), executionCount: executions, period })
      },
    )
    .get(
      '/api/monitoring/teams/:teamId/token-usage/daily',
      accept({
        id: 'readDailyTokenUsage',
        tag: 'Monitoring',
        summary: "Read a team's token usage by day",
        description:
          'Every day that the span touches, the first one first; days without calls have zeros. A call belongs to ' +
          'the day on which it began. An execution that goes on over midnight counts on both days.',
        role: 'member',
        params: InTeam,
        query: DailySpan,
        responses: { 200: { description: 'The days', schema: DailySchema } },
      }),
      async (c) => {
        const { timezone, ...asked } = c.req.valid('query')
        const { query, period } = readSpan(asked)
        const found = await readDailyUsage(c.get('scope'), c.req.valid('param').teamId, query, timezone)
        const days = found.map(({ date, executions, ...usage }) => ({
          date,
          ...usage,
          executionCount: executions,
        }))
        return c.json({ days, timezone, period })
      },
    )
    .get(
      '/api/monitoring/teams/:teamId/token-usage/by-model',
      accept({
        id: 'readTokenUsageByModel',
        tag: 'Monitoring',
        summary: "Read a team's token usage by model",
        role: 'member',
        params: InTeam,
        query: UsageSpan,
        responses: { 200: { description: 'The models', schema: ModelsSchema } },
      }),
      async (c) => {
        const { query, period } = readSpan(c.req.valid('query'))
        const found = await readModelUsage(c.get('scope'), c.req.valid('param').teamId, query)
        const models = found.map(({ executions, ...one }) => ({ ...one, executionCount: executions }))
        return c.json({ models, period })
      },
    )
}
