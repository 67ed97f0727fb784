import { Hono } from 'hono'
import * as v from 'valibot'
import { readDailyUsage, readModelUsage, readTokenUsage, type UsageQuery } from '../../db/usage/totals.ts'
import { findTimezone } from '../../workflows/graph/cron.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { boundedString, InTeam, uuidField } from '../http/fields.ts'
import { checkTimeRange, timeRange } from '../http/query.ts'
import { countSchema, timeSchema } from '../http/responses.ts'
import { showTotal, totalFields, usageFields } from './amounts.ts'

const DEFAULT_DAYS = 30
const MOST_DAYS = 3_660
const DAY_MS = 86_400_000

/** Since when calls count by default. */
const findStart = () => new Date(Date.now() - DEFAULT_DAYS * DAY_MS)

type Asked = { from?: Date | undefined; to?: Date | undefined; workflowId?: string | undefined }

const checkDefaultStart = <T extends Asked>() =>
  v.forward(
    v.check<T, string>(
      ({ from, to }) => from !== undefined || to === undefined || to >= findStart(),
      `must not be more than ${DEFAULT_DAYS} days ago without from`,
    ),
    ['to'] as never,
  )

const checkDefaultEnd = <T extends Asked>() =>
  v.forward(
    v.check<T, string>(
      ({ from, to }) => from === undefined || to !== undefined || from.getTime() <= Date.now(),
      'must not be in the future without to',
    ),
    ['from'] as never,
  )

const checkLength = <T extends Asked>() =>
  v.forward(
    v.check<T, string>(
      ({ from = findStart(), to = new Date() }) => to.getTime() - from.getTime() <= MOST_DAYS * DAY_MS,
      `must be at most ${MOST_DAYS} days before to`,
    ),
    ['from'] as never,
  )

const span = {
  from: v.pipe(
    timeRange.from,
    v.description(`Inclusive, by when calls began. ${DEFAULT_DAYS} days ago by default`),
  ),
  to: v.pipe(timeRange.to, v.description('Exclusive. Now by default')),
  workflowId: v.pipe(
    v.optional(uuidField),
    v.description('Only the calls of this workflow, also of one that is deleted'),
  ),
}

const UsageSpan = v.pipe(v.object(span), checkTimeRange(), checkDefaultStart(), checkDefaultEnd())
const DailySpan = v.pipe(
  v.object({
    ...span,
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

const periodSchema = v.object({ from: timeSchema, to: timeSchema })
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

/** The span that a request asks for, and how its answer names it. */
function readSpan({ from = findStart(), to, workflowId }: Asked): {
  query: UsageQuery
  period: { from: Date; to: Date }
} {
  return { query: { from, to, workflowId }, period: { from, to: to ?? new Date() } }
}

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
