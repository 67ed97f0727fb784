import { Hono } from 'hono'
import * as v from 'valibot'
import { readTelemetry } from '../../../db/monitoring/telemetry/totals.ts'
import type { AppEnv } from '../../env.ts'
import { accept } from '../../http/accept.ts'
import { InTeam } from '../../http/fields.ts'
import { checkTimeRange, timeRange } from '../../http/query.ts'
import { countSchema, timeSchema } from '../../http/responses.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const DEFAULT_DAYS = 7
const MOST_DAYS = 92
const MOST_NAMED = 200

const TelemetrySpanQuery = v.pipe(
  v.object({
    from: v.pipe(
      timeRange.from,
      v.description(`Inclusive, from the beginning of its hour. ${DEFAULT_DAYS} days before to by default`),
    ),
    to: v.pipe(timeRange.to, v.description('Exclusive, to the end of its hour. Now by default')),
  }),
  checkTimeRange(),
  v.forward(
    v.check(
      ({ from, to = new Date() }) =>
        from === undefined || to.getTime() - from.getTime() <= MOST_DAYS * DAY_MS,
      `must be at most ${MOST_DAYS} days before to`,
    ),
    ['from'],
  ),
  v.forward(
    v.check(
      ({ from, to }) => from === undefined || to !== undefined || from.getTime() <= Date.now(),
      'must not be in the future without to',
    ),
    ['from'],
  ),
)

const latency = v.pipe(
  v.nullable(countSchema),
  v.description('Milliseconds, at most 25 % off; null without spans'),
  v.examples([1_250]),
)

const useFields = {
  calls: v.pipe(countSchema, v.description('How many spans')),
  errors: v.pipe(countSchema, v.description('How many of them failed')),
  p50Ms: latency,
  p95Ms: latency,
  inputTokens: v.pipe(countSchema, v.description('Of calls to models only: spans of agents have their sums')),
  outputTokens: countSchema,
}

const list = <Entries extends v.ObjectEntries>(entries: Entries) =>
  v.pipe(
    v.array(v.object({ ...entries, ...useFields })),
    v.maxLength(MOST_NAMED),
    v.description(`Those with the most spans first, at most ${MOST_NAMED}`),
  )

const TelemetrySchema = v.pipe(
  v.object({
    total: v.object(useFields),
    services: list({ service: v.pipe(v.string(), v.examples(['support-bot'])) }),
    operations: list({ operation: v.pipe(v.string(), v.examples(['chat'])) }),
    models: list({ provider: v.pipe(v.string(), v.examples(['OPENAI'])), model: v.string() }),
    agents: list({ agent: v.string() }),
    period: v.object({ from: timeSchema, to: timeSchema }),
  }),
  v.title('Telemetry'),
)

/** The route that tells what the telemetry of a team's agents elsewhere has shown. */
export function createTelemetryTotalRoutes() {
  return new Hono<AppEnv>().get(
    '/api/monitoring/teams/:teamId/telemetry',
    accept({
      id: 'readTelemetry',
      tag: 'Monitoring',
      summary: "Read what a team's telemetry shows",
      description:
        'Errors, latency and tokens of the spans that were sent to `/api/telemetry/v1/traces`, by service, operation, ' +
        'model and agent. A span counts in the hour in which it started; hours are kept for 400 days.',
      role: 'member',
      params: InTeam,
      query: TelemetrySpanQuery,
      responses: { 200: { description: 'Whole hours, as `period` says', schema: TelemetrySchema } },
    }),
    async (c) => {
      const { from, to = new Date() } = c.req.valid('query')
      const begin = from?.getTime() ?? to.getTime() - DEFAULT_DAYS * DAY_MS
      const period = {
        from: new Date(Math.floor(begin / HOUR_MS) * HOUR_MS),
        to: new Date(Math.ceil(to.getTime() / HOUR_MS) * HOUR_MS),
      }
      const found = await readTelemetry(c.get('scope'), c.req.valid('param').teamId, period)
      return c.json({ ...found, period })
    },
  )
}
