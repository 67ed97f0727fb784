import { Hono } from 'hono'
import * as v from 'valibot'
import { LEAST_TOLD, readDrift, readSentiment, type ShownCheck } from '../../db/monitoring/shifts/overview.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { InTeam } from '../http/fields.ts'
import { checkTimeRange, timeRange } from '../http/query.ts'
import { countSchema, idSchema, timeSchema } from '../http/responses.ts'

const DAY_MS = 86_400_000
const DEFAULT_DAYS = 30
/** Scores are kept no longer. */
const MOST_DAYS = 45

const STATES = ['FIRING', 'QUIET', 'INSUFFICIENT_DATA'] as const

type AskedPeriod = { from?: Date | undefined; to?: Date | undefined }

const readSpan = ({ from, to = new Date() }: AskedPeriod) => ({
  from: from ?? new Date(to.getTime() - DEFAULT_DAYS * DAY_MS),
  to,
})

const SentimentSpan = v.pipe(
  v.object({
    from: v.pipe(
      timeRange.from,
      v.description(
        `Inclusive, at most ${MOST_DAYS} days before to. ${DEFAULT_DAYS} days before to by default`,
      ),
    ),
    to: v.pipe(timeRange.to, v.description('Exclusive. Now by default')),
  }),
  checkTimeRange(),
  v.forward(
    v.check<AskedPeriod, string>((asked) => {
      const { from, to } = readSpan(asked)
      return from <= to && to.getTime() - from.getTime() <= MOST_DAYS * DAY_MS
    }, `must be at most ${MOST_DAYS} days before to, and not after it`),
    ['from'] as never,
  ),
)

const figure = (description: string) => v.pipe(v.nullable(v.number()), v.description(description))

const checkFields = {
  workflowId: idSchema,
  workflowName: v.string(),
  state: v.pipe(
    v.picklist(STATES),
    v.description('FIRING: there is a shift. INSUFFICIENT_DATA: there is too little to tell'),
  ),
  reason: v.pipe(
    v.nullable(v.string()),
    v.description('Why nothing can be said, or not yet'),
    v.examples([
      'There are only 12 samples of the 14 days to compare with (50 are needed), and 3 samples of the last 24 hours (20 are needed)',
    ]),
  ),
  windowTo: v.pipe(timeSchema, v.description('The end of the window that was judged last')),
  referenceCount: v.pipe(countSchema, v.description('How many samples of the days before were compared')),
  currentCount: v.pipe(countSchema, v.description('How many samples of the last 24 hours were compared')),
  statistic: figure('How far it has shifted; null if there is too little to tell'),
  threshold: figure('From which shift on it counts, if it is not chance'),
}

const DriftSchema = v.pipe(
  v.object({
    workflows: v.pipe(
      v.array(
        v.object({
          side: v.pipe(v.picklist(['INPUT', 'OUTPUT'] as const), v.description('What was compared')),
          ...checkFields,
        }),
      ),
      v.maxLength(1_000),
      v.description('Those with a shift first; workflows of which nothing was sampled yet are not in it'),
    ),
  }),
  v.title('Drift'),
)

const SentimentSchema = v.pipe(
  v.object({
    days: v.array(
      v.object({
        date: v.pipe(v.string(), v.metadata({ format: 'date' }), v.examples(['2026-11-22'])),
        mean: figure(`From -1, bad, to 1, good. Null if there are fewer than ${LEAST_TOLD} messages`),
        count: v.pipe(countSchema, v.description('How many messages were scored')),
      }),
    ),
    workflows: v.pipe(
      v.array(
        v.object({
          ...checkFields,
          observed: figure('The mean of what is current'),
          expected: figure('The mean of the days before'),
        }),
      ),
      v.maxLength(1_000),
    ),
    period: v.object({ from: timeSchema, to: timeSchema }),
  }),
  v.title('Sentiment'),
)

function showCheck({ workflowId, workflowName, state, reason, windowTo, ...check }: ShownCheck) {
  const { referenceCount, currentCount, statistic, threshold } = check
  return {
    workflowId,
    workflowName,
    state,
    reason,
    windowTo,
    referenceCount,
    currentCount,
    statistic,
    threshold,
  }
}

/** The routes that tell whether what workflows work on, and what users say to agents, is as it was. */
export function createShiftRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/monitoring/teams/:teamId/drift',
      accept({
        id: 'readDrift',
        tag: 'Monitoring',
        summary: "Read whether a team's workflows drift",
        description:
          'For each workflow that was sampled: whether its inputs and outputs are about something else, or of ' +
          'another length, than in the two weeks before. Sampled only while driftAlertEnabled is set.',
        role: 'member',
        params: InTeam,
        responses: { 200: { description: 'The last check of each workflow', schema: DriftSchema } },
      }),
      async (c) => {
        const checks = await readDrift(c.get('scope'), c.req.valid('param').teamId)
        const workflows = checks.map((check) => ({
          side: check.metric === 'drift.input' ? ('INPUT' as const) : ('OUTPUT' as const),
          ...showCheck(check),
        }))
        return c.json({ workflows })
      },
    )
    .get(
      '/api/monitoring/teams/:teamId/sentiment',
      accept({
        id: 'readSentiment',
        tag: 'Monitoring',
        summary: "Read how users' messages to a team's agents sound",
        description:
          'By days (UTC), and the last check of each workflow. Only English is understood. Scored only while ' +
          'sentimentTrackingEnabled is set; no text is kept.',
        role: 'member',
        params: InTeam,
        query: SentimentSpan,
        responses: { 200: { description: 'The days, and the workflows', schema: SentimentSchema } },
      }),
      async (c) => {
        const period = readSpan(c.req.valid('query'))
        const { days, checks } = await readSentiment(c.get('scope'), c.req.valid('param').teamId, period)
        const workflows = checks.map((check) => ({
          ...showCheck(check),
          observed: check.observed,
          expected: check.expected,
        }))
        return c.json({ days, workflows, period })
      },
    )
}
