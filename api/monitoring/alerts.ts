import { Hono } from 'hono'
import * as v from 'valibot'
import {
  ALERT_SEVERITIES,
  ALERT_STATUSES,
  ALERT_TYPES,
  acknowledgeAlert,
  acknowledgeAlerts,
  listAlerts,
  listWatched,
  readAlert,
  resolveAlert,
} from '../../db/monitoring/alerts/alerts.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { InTeam, uuidField } from '../http/fields.ts'
import { checkTimeRange, paging, timeRange } from '../http/query.ts'
import { countSchema, idSchema, pageSchema, timeSchema } from '../http/responses.ts'

const MAX_IDS = 1_000
const STATES = ['FIRING', 'QUIET', 'INSUFFICIENT_DATA', 'FAILED'] as const

const one = <const T extends readonly string[]>(values: T) =>
  v.picklist(values, `must be one of ${values.join(', ')}`)

const AlertQuery = v.pipe(
  v.object({
    ...paging,
    type: v.optional(one(ALERT_TYPES)),
    status: v.optional(one(ALERT_STATUSES)),
    severity: v.optional(one(ALERT_SEVERITIES)),
    workflowId: v.optional(uuidField),
    from: v.pipe(timeRange.from, v.description('Inclusive, by when alerts opened')),
    to: v.pipe(timeRange.to, v.description('Exclusive')),
  }),
  checkTimeRange(),
)

const OneAlert = v.object({ teamId: uuidField, alertId: uuidField })

const BulkAcknowledge = v.object({
  alertIds: v.pipe(
    v.array(uuidField, 'must be an array'),
    v.minLength(1, 'must not be empty'),
    v.maxLength(MAX_IDS, `must have at most ${MAX_IDS} entries`),
  ),
  type: one(ALERT_TYPES),
})

const personSchema = v.nullable(v.object({ id: v.nullable(idSchema), name: v.string() }))

const AlertSchema = v.pipe(
  v.object({
    id: idSchema,
    teamId: idSchema,
    type: v.picklist(ALERT_TYPES),
    severity: v.picklist(ALERT_SEVERITIES),
    workflowId: v.pipe(v.nullable(idSchema), v.description('Null: it is about the team as a whole')),
    metric: v.pipe(v.string(), v.examples(['token_usage'])),
    observed: v.pipe(v.number(), v.description('In the newest hour of the window')),
    expected: v.pipe(v.nullable(v.number()), v.description('What is usual')),
    threshold: v.nullable(v.number()),
    window: v.pipe(
      v.object({ from: timeSchema, to: timeSchema }),
      v.description('From the first hour to the end of the newest one that it is so'),
    ),
    message: v.string(),
    sampleExecutionIds: v.pipe(v.array(idSchema), v.description('Executions that show it; at most 10')),
    status: v.picklist(ALERT_STATUSES),
    acknowledgedBy: personSchema,
    acknowledgedAt: v.nullable(timeSchema),
    resolvedBy: v.pipe(personSchema, v.description('Null if it is not resolved, or was over by itself')),
    resolvedAt: v.nullable(timeSchema),
    createdAt: timeSchema,
    updatedAt: timeSchema,
  }),
  v.title('Alert'),
)

const WatchedSchema = v.pipe(
  v.object({
    ...pageSchema(
      'WatchedMetricPage',
      v.object({
        type: v.picklist(ALERT_TYPES),
        metric: v.string(),
        workflowId: v.nullable(idSchema),
        state: v.picklist(STATES),
        reason: v.pipe(v.nullable(v.string()), v.description('Why there is too little data, or what failed')),
        since: v.pipe(timeSchema, v.description('The end of the first hour in which it was so')),
        windowTo: v.pipe(timeSchema, v.description('The end of the newest hour of which it is said')),
      }),
    ).entries,
    evaluatedTo: v.pipe(
      v.nullable(timeSchema),
      v.description('Up to when hours are evaluated. Null if the team is not watched'),
    ),
    skipped: v.pipe(
      v.nullable(v.object({ from: timeSchema, to: timeSchema })),
      v.description('The hours that were left out last, because the service stood still for more than a day'),
    ),
  }),
  v.title('WatchedMetrics'),
)

const ALERT_RESPONSE = { 200: { description: 'The alert', schema: AlertSchema } }

/** The alerts of a team, and what is watched for them. */
export function createAlertRoutes() {
  return new Hono<AppEnv>().route('/', createAlertListRoutes()).route('/', createOneAlertRoutes())
}

function createAlertListRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/monitoring/teams/:teamId/alerts',
      accept({
        id: 'listAlerts',
        tag: 'Monitoring',
        summary: "List a team's alerts",
        description: 'Newest first.',
        role: 'member',
        params: InTeam,
        query: AlertQuery,
        responses: { 200: { description: 'One page', schema: pageSchema('AlertPage', AlertSchema) } },
      }),
      async (c) =>
        c.json(await listAlerts(c.get('scope'), c.req.valid('param').teamId, c.req.valid('query'))),
    )
    .get(
      '/api/monitoring/teams/:teamId/alerts/states',
      accept({
        id: 'listWatchedMetrics',
        tag: 'Monitoring',
        summary: 'List what is watched for alerts',
        description:
          'How each metric of the team (`workflowId` null) and of its workflows was in the newest hour, in the order of ' +
          'metrics. INSUFFICIENT_DATA: there is too little to say anything; FAILED: a detector could not evaluate the hour.',
        role: 'member',
        params: InTeam,
        query: v.object({ ...paging, state: v.optional(one(STATES)) }),
        responses: { 200: { description: 'One page', schema: WatchedSchema } },
      }),
      async (c) =>
        c.json(await listWatched(c.get('scope'), c.req.valid('param').teamId, c.req.valid('query'))),
    )
    .post(
      '/api/monitoring/teams/:teamId/alerts/bulk-acknowledge',
      accept({
        id: 'acknowledgeAlerts',
        tag: 'Monitoring',
        summary: 'Acknowledge alerts',
        description:
          'Acknowledges those among them that are open, of the given type, and of this team. The others are left as they ' +
          'are, and do not count.',
        role: 'OPERATOR',
        params: InTeam,
        json: BulkAcknowledge,
        responses: {
          200: {
            description: 'Done',
            schema: v.object({
              acknowledged: v.pipe(countSchema, v.description('How many were acknowledged')),
              message: v.pipe(v.string(), v.examples(['2 alerts acknowledged'])),
            }),
          },
        },
      }),
      async (c) => {
        const { teamId } = c.req.valid('param')
        const acknowledged = await acknowledgeAlerts(c.get('scope'), teamId, c.req.valid('json'))
        const what = acknowledged === 1 ? 'alert' : 'alerts'
        return c.json({ acknowledged, message: `${acknowledged} ${what} acknowledged` })
      },
    )
}

function createOneAlertRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/monitoring/teams/:teamId/alerts/:alertId',
      accept({
        id: 'readAlert',
        tag: 'Monitoring',
        summary: 'Read an alert',
        role: 'member',
        params: OneAlert,
        responses: ALERT_RESPONSE,
      }),
      async (c) => {
        const { teamId, alertId } = c.req.valid('param')
        return c.json(await readAlert(c.get('scope'), teamId, alertId))
      },
    )
    .post(
      '/api/monitoring/teams/:teamId/alerts/:alertId/acknowledge',
      accept({
        id: 'acknowledgeAlert',
        tag: 'Monitoring',
        summary: 'Acknowledge an alert',
        description:
          'Says that somebody has seen it. It is updated while it goes on, and resolved when it is over.',
        role: 'OPERATOR',
        params: OneAlert,
        responses: ALERT_RESPONSE,
        faults: [409],
      }),
      async (c) => {
        const { teamId, alertId } = c.req.valid('param')
        return c.json(await acknowledgeAlert(c.get('scope'), teamId, alertId))
      },
    )
    .post(
      '/api/monitoring/teams/:teamId/alerts/:alertId/resolve',
      accept({
        id: 'resolveAlert',
        tag: 'Monitoring',
        summary: 'Resolve an alert',
        description: 'For six hours the same alert does not open again, unless it is worse.',
        role: 'OPERATOR',
        params: OneAlert,
        responses: ALERT_RESPONSE,
      }),
      async (c) => {
        const { teamId, alertId } = c.req.valid('param')
        return c.json(await resolveAlert(c.get('scope'), teamId, alertId))
      },
    )
}
