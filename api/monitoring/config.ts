import { Hono } from 'hono'
import * as v from 'valibot'
import { readMonitoringConfig, updateMonitoringConfig } from '../../db/monitoring/config.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { boundedString, InTeam } from '../http/fields.ts'

const MOST_CHANNELS = 20
const MOST_TIMES = 1_000

/** 30 days: no execution may take longer. */
const MOST_MS = 2_592_000_000

const FLAGS = {
  anomalyDetectionEnabled: 'Whether spikes of tokens, failures and slow executions raise alerts',
  driftAlertEnabled: 'Whether a shift of what workflows are given and answer raises alerts',
  sentimentTrackingEnabled: "Whether a shift of the mood of users' messages in chats raises alerts",
}
const THRESHOLDS = {
  tokenUsageSpike: 'How many times the expected tokens of an hour raise an alert; more than 1',
  errorRateThreshold: 'Which fraction of executions, or of calls to models, may fail',
  latencyThreshold: 'Milliseconds that 95 % of the executions, or of the calls, should stay under',
}
const CHANNELS =
  "Where alerts are sent: `email` (the team's ADMINs), `slack` or `webhook` (all channels of that type), or the id of a channel"

const flag = (description: string) =>
  v.pipe(v.optional(v.boolean('must be true or false')), v.description(description))
const number = v.pipe(v.number('must be a number'), v.finite('must be a number'))

const thresholds = {
  tokenUsageSpike: v.pipe(
    v.optional(v.pipe(number, v.gtValue(1, 'must be more than 1'), most(MOST_TIMES))),
    v.description(THRESHOLDS.tokenUsageSpike),
    v.examples([3]),
  ),
  errorRateThreshold: v.pipe(
    v.optional(v.pipe(number, v.minValue(0, 'must not be negative'), most(1))),
    v.description(THRESHOLDS.errorRateThreshold),
    v.examples([0.1]),
  ),
  latencyThreshold: v.pipe(
    v.optional(v.pipe(number, v.gtValue(0, 'must be more than 0'), most(MOST_MS))),
    v.description(THRESHOLDS.latencyThreshold),
    v.examples([30_000]),
  ),
}

const ConfigPatch = v.object({
  anomalyDetectionEnabled: flag(FLAGS.anomalyDetectionEnabled),
  driftAlertEnabled: flag(FLAGS.driftAlertEnabled),
  sentimentTrackingEnabled: flag(FLAGS.sentimentTrackingEnabled),
  alertThresholds: v.optional(
    v.pipe(
      v.looseObject(thresholds, 'must be an object'),
      // An unknown key is a fault: a user who misspells one would wait for an alert that never comes.
      v.rawCheck(({ dataset, addIssue }) => {
        const given = dataset.value as Record<string, unknown>
        if (typeof given !== 'object' || given === null) return
        for (const key of Object.keys(given)) {
          if (Object.hasOwn(thresholds, key)) continue
          const path = { type: 'object', origin: 'value', input: given, key, value: given[key] } as const
          addIssue({ message: `is none of ${Object.keys(thresholds).join(', ')}`, path: [path] })
        }
      }),
    ),
  ),
  notificationChannels: v.pipe(
    v.optional(
      v.pipe(
        v.array(boundedString(36), 'must be an array'),
        v.maxLength(MOST_CHANNELS, `must have at most ${MOST_CHANNELS} entries`),
        v.check(
          (names) => new Set(names.map((name) => name.toLowerCase())).size === names.length,
          'must not name a channel twice',
        ),
      ),
    ),
    v.description(`${CHANNELS}. A list replaces the stored one`),
    v.examples([['email']]),
  ),
})

const ConfigSchema = v.pipe(
  v.object({
    anomalyDetectionEnabled: v.pipe(v.boolean(), v.description(FLAGS.anomalyDetectionEnabled)),
    driftAlertEnabled: v.pipe(v.boolean(), v.description(FLAGS.driftAlertEnabled)),
    sentimentTrackingEnabled: v.pipe(v.boolean(), v.description(FLAGS.sentimentTrackingEnabled)),
    alertThresholds: v.object({
      tokenUsageSpike: v.pipe(v.number(), v.description(THRESHOLDS.tokenUsageSpike), v.examples([3])),
      errorRateThreshold: v.pipe(v.number(), v.description(THRESHOLDS.errorRateThreshold), v.examples([0.1])),
      latencyThreshold: v.pipe(v.number(), v.description(THRESHOLDS.latencyThreshold), v.examples([30_000])),
    }),
    notificationChannels: v.pipe(v.array(v.string()), v.description(CHANNELS), v.examples([['email']])),
  }),
  v.title('MonitoringConfig'),
)

/** The routes with which a team says what it wants to be told of. */
export function createMonitoringConfigRoutes() {
  const responses = { 200: { description: 'The config', schema: ConfigSchema } }
  return new Hono<AppEnv>()
    .get(
      '/api/monitoring/teams/:teamId/config',
      accept({
        id: 'readMonitoringConfig',
        tag: 'Monitoring',
        summary: 'Read what a team is told of',
        description: 'A team that has changed nothing has the defaults: nothing is watched.',
        role: 'member',
        params: InTeam,
        responses,
      }),
      async (c) => c.json(await readMonitoringConfig(c.get('scope'), c.req.valid('param').teamId)),
    )
    .put(
      '/api/monitoring/teams/:teamId/config',
      accept({
        id: 'updateMonitoringConfig',
        tag: 'Monitoring',
        summary: 'Change what a team is told of',
        description:
          'Changes the fields that are given, each threshold by itself, and keeps the rest. It counts for all hours ' +
          'that are evaluated from now on.',
        role: 'ADMIN',
        params: InTeam,
        json: ConfigPatch,
        example: {
          anomalyDetectionEnabled: true,
          alertThresholds: { tokenUsageSpike: 4 },
          notificationChannels: ['email'],
        },
        responses,
      }),
      async (c) => {
        const { teamId } = c.req.valid('param')
        return c.json(await updateMonitoringConfig(c.get('scope'), teamId, c.req.valid('json')))
      },
    )
}

function most(value: number) {
  return v.maxValue<number, number, string>(value, `must be at most ${value}`)
}
