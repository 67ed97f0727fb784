import { Hono } from 'hono'
import * as v from 'valibot'
import {
  EVALUATION_STATUSES,
  listEvaluations,
  readEvaluation,
  summarizeEvaluations,
} from '../../db/evaluation/evaluations.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { uuidField } from '../http/fields.ts'
import { checkTimeRange, paging, timeRange } from '../http/query.ts'
import { countSchema, idSchema, pageSchema, timeSchema } from '../http/responses.ts'

const DAY_MS = 86_400_000
const DEFAULT_DAYS = 30

const InWorkflow = v.object({ workflowId: uuidField })

const statusField = v.picklist(EVALUATION_STATUSES, `must be one of ${EVALUATION_STATUSES.join(', ')}`)
const ListQuery = v.pipe(
  v.object({
    ...paging,
    status: v.optional(statusField),
    failed: v.pipe(
      v.optional(v.picklist(['true', 'false'], 'must be true or false')),
      v.description('Only those whose composite is below the threshold, or only those that have passed'),
    ),
    ...timeRange,
  }),
  checkTimeRange(),
)

const score = v.pipe(v.nullable(v.number()), v.description('1 to 5; null if there is none'))
const EvaluationSchema = v.pipe(
  v.object({
    id: idSchema,
    workflowId: idSchema,
    executionId: idSchema,
    status: v.picklist(EVALUATION_STATUSES),
    reason: v.pipe(v.nullable(v.string()), v.description('Why it is FAILED or SKIPPED')),
    provider: v.nullable(v.string()),
    model: v.nullable(v.string()),
    scores: v.array(
      v.object({
        dimension: v.string(),
        score,
        reason: v.pipe(v.nullable(v.string()), v.description('Why there is no score')),
        explanation: v.pipe(
          v.nullable(v.string()),
          v.description("The judge's; null also if the run is part of somebody else's private chat"),
        ),
        flagged: v.pipe(v.boolean(), v.description('What was judged seems to instruct the judge')),
      }),
    ),
    composite: score,
    failureThreshold: v.nullable(v.number()),
    failed: v.pipe(v.nullable(v.boolean()), v.description('Null while there is no composite')),
    flagged: v.boolean(),
    tokens: countSchema,
    cost: v.pipe(v.nullable(v.number()), v.description('US dollars; null if it is not known')),
    createdAt: timeSchema,
    judgedAt: v.nullable(timeSchema),
  }),
  v.title('RunEvaluation'),
)

const SummarySchema = v.pipe(
  v.object({
    total: countSchema,
    scored: countSchema,
    passRate: v.pipe(v.nullable(v.number()), v.description('Of those that are scored; null if none is')),
    composite: score,
    dimensions: v.array(v.object({ dimension: v.string(), mean: v.number(), scored: countSchema })),
    days: v.pipe(
      v.array(v.object({ day: v.string(), scored: countSchema, failed: countSchema, composite: score })),
      v.description('In UTC; days on which nothing was scored are left out'),
    ),
  }),
  v.title('RunEvaluationSummary'),
)

const PATH = '/api/monitoring/workflow/:workflowId/evaluations'

/** The routes that show how runs were judged. */
export function createEvaluationRoutes() {
  return new Hono<AppEnv>()
    .get(
      PATH,
      accept({
        id: 'listEvaluations',
        tag: 'Monitoring',
        summary: 'List how the runs of a workflow were judged',
        description: 'Newest first. They are kept as long as the run, and for 90 days at most.',
        role: 'member',
        params: InWorkflow,
        query: ListQuery,
        responses: {
          200: { description: 'One page', schema: pageSchema('RunEvaluationPage', EvaluationSchema) },
        },
      }),
      async (c) => {
        const { failed, ...query } = c.req.valid('query')
        const asked = { ...query, failed: failed === undefined ? undefined : failed === 'true' }
        return c.json(await listEvaluations(c.get('scope'), c.req.valid('param').workflowId, asked))
      },
    )
    .get(
      `${PATH}/summary`,
      accept({
        id: 'summarizeEvaluations',
        tag: 'Monitoring',
        summary: 'Sum up how the runs of a workflow were judged',
        description: `Of the last ${DEFAULT_DAYS} days, if \`from\` says nothing else.`,
        role: 'member',
        params: InWorkflow,
        query: v.pipe(v.object(timeRange), checkTimeRange()),
        responses: { 200: { description: 'The sums', schema: SummarySchema } },
      }),
      async (c) => {
        const { from, to = new Date(Date.now() + DAY_MS) } = c.req.valid('query')
        const { workflowId } = c.req.valid('param')
        const since = from ?? new Date(Date.now() - DEFAULT_DAYS * DAY_MS)
        return c.json(await summarizeEvaluations(c.get('scope'), workflowId, { from: since, to }))
      },
    )
    .get(
      `${PATH}/:evaluationId`,
      accept({
        id: 'readEvaluation',
        tag: 'Monitoring',
        summary: 'Read how a run was judged',
        role: 'member',
        params: v.object({ workflowId: uuidField, evaluationId: uuidField }),
        responses: { 200: { description: 'The evaluation', schema: EvaluationSchema } },
      }),
      async (c) => {
        const { workflowId, evaluationId } = c.req.valid('param')
        return c.json(await readEvaluation(c.get('scope'), workflowId, evaluationId))
      },
    )
}
