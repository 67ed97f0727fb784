import { Hono } from 'hono'
import * as v from 'valibot'
import {
  readExecutionStatistics,
  readWorkflowStatistics,
  WORKFLOW_ORDERS,
} from '../../db/monitoring/executions.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { InTeam, uuidField } from '../http/fields.ts'
import { checkTimeRange, queryInteger, timeRange } from '../http/query.ts'
import { countSchema, idSchema, timeSchema } from '../http/responses.ts'
import { type AskedSpan, checkDefaultEnd, checkDefaultStart, periodSchema } from './spans.ts'

const HOUR_MS = 3_600_000
const DEFAULT_HOURS = 30 * 24
const MOST_HOURS = 31 * 24

/** The last full hour that has four digits for its year. */
const LAST = Date.UTC(9999, 11, 31, 23)

const spanFields = {
  from: v.pipe(
    timeRange.from,
    v.description('Its hour is the first one that counts. 30 days ago by default'),
  ),
  to: v.pipe(timeRange.to, v.description('The last hour that counts begins before. Now by default')),
}
/** Checks that a span has at most MOST_HOURS. */
function checkLength<T extends AskedSpan>() {
  const isShort = (asked: T) => {
    const { from, to } = findHours(asked)
    // 31 days that begin within an hour touch one more.
    return to.getTime() - from.getTime() <= (MOST_HOURS + 1) * HOUR_MS
  }
  const message = `must be at most ${MOST_HOURS / 24} days before to`
  return v.forward(v.check<T, string>(isShort, message), ['from'] as never)
}

const StatisticsSpan = v.pipe(
  v.object({
    ...spanFields,
    workflowId: v.pipe(
      v.optional(uuidField),
      v.description('Only the executions of this workflow, also of one that is deleted'),
    ),
  }),
  checkTimeRange(),
  checkDefaultStart(),
  checkDefaultEnd(),
  checkLength(),
)

const WorkflowsSpan = v.pipe(
  v.object({
    ...spanFields,
    sort: v.pipe(
      v.optional(v.picklist(WORKFLOW_ORDERS, `must be one of ${WORKFLOW_ORDERS.join(', ')}`), 'executions'),
      v.description('By what the workflows are sorted, the largest first'),
    ),
    size: v.pipe(v.optional(queryInteger(1, 100), '20'), v.description('How many workflows to show at most')),
  }),
  checkTimeRange(),
  checkDefaultStart(),
  checkDefaultEnd(),
  checkLength(),
)

const milliseconds = (of: string) =>
  v.pipe(
    v.nullable(countSchema),
    v.description(
      `Milliseconds, from their start to their end, that ${of} of those which had begun stayed under; within 25 %, mostly much closer`,
    ),
  )
const statisticsFields = {
  executions: v.pipe(countSchema, v.description('All that ended')),
  succeeded: countSchema,
  failed: countSchema,
  cancelled: countSchema,
  failureRate: v.pipe(
    v.nullable(v.pipe(v.number(), v.minValue(0), v.maxValue(1))),
    v.description('Which fraction of all that ended failed; null if none ended'),
    v.examples([0.02]),
  ),
  retries: v.pipe(countSchema, v.description('How often their nodes were tried again')),
  durationP50Ms: milliseconds('half'),
  durationP95Ms: milliseconds('95 %'),
}

const StatisticsSchema = v.pipe(
  v.object({
    totals: v.object(statisticsFields),
    hours: v.array(
      v.object({
        hour: v.pipe(timeSchema, v.description('When it began. UTC, ISO 8601')),
        ...statisticsFields,
      }),
    ),
    period: periodSchema,
  }),
  v.title('ExecutionStatistics'),
)

const WorkflowsSchema = v.pipe(
  v.object({
    workflows: v.array(
      v.object({
        workflowId: idSchema,
        workflowName: v.pipe(
          v.nullable(v.string()),
          v.description('Null if the workflow has been deleted'),
          v.examples(['Nightly report']),
        ),
        ...statisticsFields,
        durationAverageMs: v.pipe(
          v.nullable(countSchema),
          v.description('About how many milliseconds those which had begun took on average'),
        ),
      }),
    ),
    workflowsTotal: v.pipe(countSchema, v.description('How many workflows had executions that ended')),
    period: periodSchema,
  }),
  v.title('WorkflowStatistics'),
)

/** The whole hours that a span touches. */
function findHours({ from, to = new Date() }: AskedSpan): { from: Date; to: Date } {
  const end = Math.min(Math.ceil(to.getTime() / HOUR_MS) * HOUR_MS, LAST)
  const begin = from ? Math.floor(from.getTime() / HOUR_MS) * HOUR_MS : findDefault(end)
  return { from: new Date(begin), to: new Date(end) }
}

const findDefault = (end: number) =>
  Math.min(Math.ceil(Date.now() / HOUR_MS) * HOUR_MS - DEFAULT_HOURS * HOUR_MS, end)

/** The routes that tell how a team's executions ended. */
export function createExecutionStatisticsRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/monitoring/teams/:teamId/executions',
      accept({
        id: 'readExecutionStatistics',
        tag: 'Monitoring',
        summary: "Read how a team's executions ended",
        description:
          'In all, and in each hour (UTC) that the span touches, the first one first; each counts as a whole, and one in ' +
          'which none ended has zeros. An execution belongs to the hour in which it ended. Those that are deleted since ' +
          'count too, those that evaluations and playbooks started do not. At most 31 days.',
        role: 'member',
        params: InTeam,
        query: StatisticsSpan,
        responses: { 200: { description: 'The totals and the hours', schema: StatisticsSchema } },
      }),
      async (c) => {
        const { workflowId, ...asked } = c.req.valid('query')
        const period = findHours(asked)
        const { teamId } = c.req.valid('param')
        const found = await readExecutionStatistics(c.get('scope'), teamId, { ...period, workflowId })
        return c.json({ ...found, period })
      },
    )
    .get(
      '/api/monitoring/teams/:teamId/executions/workflows',
      accept({
        id: 'readWorkflowStatistics',
        tag: 'Monitoring',
        summary: "Read how each workflow's executions ended",
        description:
          'Over the hours (UTC) that the span touches, as readExecutionStatistics counts them, of each workflow of which ' +
          'some ended: those that come first by `sort`. What took long to count may be 30 seconds old.',
        role: 'member',
        params: InTeam,
        query: WorkflowsSpan,
        responses: { 200: { description: 'The workflows', schema: WorkflowsSchema } },
      }),
      async (c) => {
        const { sort, size, ...asked } = c.req.valid('query')
        const period = findHours(asked)
        const { teamId } = c.req.valid('param')
        const found = await readWorkflowStatistics(c.get('scope'), teamId, { ...period, sort, size })
        return c.json({ ...found, period })
      },
    )
}
