import { Hono } from 'hono'
import * as v from 'valibot'
import {
  MAX_RETENTION_DAYS,
  MIN_RETENTION_DAYS,
  readRetention,
  updateRetention,
} from '../../db/audit/retention/policy.ts'
import { purgeAudit } from '../../db/audit/retention/purge.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { boundedInteger, InTeam } from '../http/fields.ts'
import { countSchema, timeSchema } from '../http/responses.ts'

const retentionDays = v.pipe(
  boundedInteger(MIN_RETENTION_DAYS, MAX_RETENTION_DAYS, 'must be a whole number'),
  v.description('For how many days of 24 hours entries are kept at least'),
  v.examples([365]),
)
const reportRetentionDays = v.pipe(
  boundedInteger(1, MAX_RETENTION_DAYS, 'must be a whole number'),
  v.description('For how many days reports are kept that are asked for from now on'),
  v.examples([365]),
)
const PolicyUpdate = v.object({
  retentionDays,
  autoDeleteEnabled: v.pipe(
    v.optional(v.boolean('must be true or false')),
    v.description('Whether older entries are removed once a day. Not given, it stays as it is'),
  ),
  reportRetentionDays: v.optional(reportRetentionDays),
})
const PolicySchema = v.pipe(
  v.object({
    retentionDays,
    autoDeleteEnabled: v.boolean(),
    reportRetentionDays,
    lastPurgedAt: v.pipe(
      v.nullable(timeSchema),
      v.description('When a purge was last carried out, even if nothing was old enough; null if never'),
    ),
  }),
  v.title('AuditRetention'),
)
const PurgeSchema = v.pipe(
  v.object({
    purgedCount: v.pipe(countSchema, v.description('How many entries were removed')),
    oldestRemaining: v.pipe(timeSchema, v.description('The time of the oldest entry that is left')),
    purgedAt: timeSchema,
  }),
  v.title('AuditPurge'),
)

/** The routes that say for how long a team's audit entries are kept, and remove older ones. */
export function createAuditRetentionRoutes({ checkPrefix }: ApiDeps) {
  const policy = { 200: { description: 'The policy', schema: PolicySchema } }
  return new Hono<AppEnv>()
    .get(
      '/api/audit/team/:teamId/retention',
      accept({
        id: 'readAuditRetention',
        tag: 'Audit',
        summary: "Read the retention policy of a team's audit",
        description:
          'A team that has set none keeps entries for 365 days at least, and removes none by itself; reports are kept ' +
          'for 365 days.',
        role: 'ADMIN',
        params: InTeam,
        responses: policy,
      }),
      async (c) => c.json(await readRetention(c.get('scope'), c.req.valid('param').teamId)),
    )
    .put(
      '/api/audit/team/:teamId/retention',
      accept({
        id: 'updateAuditRetention',
        tag: 'Audit',
        summary: "Change the retention policy of a team's audit",
        role: 'ADMIN',
        params: InTeam,
        json: PolicyUpdate,
        example: { retentionDays: 365, autoDeleteEnabled: false },
        responses: policy,
      }),
      async (c) =>
        c.json(await updateRetention(c.get('scope'), c.req.valid('param').teamId, c.req.valid('json'))),
    )
    .post(
      '/api/audit/team/:teamId/purge',
      accept({
        id: 'purgeAudit',
        tag: 'Audit',
        summary: "Remove a team's old audit entries",
        description:
          'Removes the entries that are older than the retention period, for good. They are verified before: if they ' +
          'do not verify, nothing is removed (409). The purge is an entry itself, and a signed anchor says from which ' +
          'entry on the chain is intact afterwards. Entries before one that has reopened the chain are kept until that ' +
          'one is old enough too.',
        role: 'ADMIN',
        params: InTeam,
        faults: [409],
        responses: { 200: { description: 'What was removed', schema: PurgeSchema } },
      }),
      async (c) => c.json(await purgeAudit(c.get('scope'), c.req.valid('param').teamId, checkPrefix)),
    )
}
