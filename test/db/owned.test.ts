import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { createForwarder, MAX_FORWARDERS } from '../../db/audit/siem/forwarders.ts'
import { createConnector, MAX_CONNECTORS } from '../../db/connectors/connectors.ts'
import { createCredential } from '../../db/credentials/credentials.ts'
import { createExemplar, MAX_EXEMPLARS } from '../../db/guardrails/exemplars.ts'
import { createRule, MAX_RULES } from '../../db/guardrails/rules.ts'
import { createChannel, MAX_CHANNELS } from '../../db/monitoring/channels/channels.ts'
import { createPlaybook, MAX_PLAYBOOKS } from '../../db/monitoring/playbooks/playbooks.ts'
import { createScheduledReport, MAX_SCHEDULED_REPORTS } from '../../db/monitoring/reports/reports.ts'
import { type Scope, serviceScope } from '../../db/scope.ts'
import { TABLE_QUOTAS } from '../../db/tables/quotas.ts'
import { createTable } from '../../db/tables/tables.ts'
import { createVariable } from '../../db/variables/variables.ts'
import { createExample, MAX_EXAMPLES } from '../../db/workflows/examples.ts'
import { createWorkflow } from '../../db/workflows/workflows.ts'
import { PETS } from '../support/connectors/content.ts'
import { keep } from '../support/keep.ts'
import { startService } from '../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { store } = service

type Add = (scope: Scope, ownerId: string, name: string) => Promise<unknown>

const LISTS: [table: string, max: number, add: Add][] = [
  [
    'notification_channels',
    MAX_CHANNELS,
    (scope, teamId, name) =>
      createChannel(scope, teamId, { name, type: 'SLACK', config: { url: 'https://example.com/hook' } }),
  ],
  [
    'playbooks',
    MAX_PLAYBOOKS,
    (scope, teamId, name) =>
      createPlaybook(scope, teamId, { name, steps: [{ type: 'DEACTIVATE_WORKFLOW' }] }),
  ],
  [
    'audit_forwarders',
    MAX_FORWARDERS,
    (scope, teamId, name) =>
      createForwarder(scope, teamId, {
        ...{ name, type: 'SYSLOG', host: '127.0.0.1', port: 6514, enabled: false },
        ...{ caCertificate: null, url: null, credentialId: null },
      }),
  ],
  [
    'scheduled_reports',
    MAX_SCHEDULED_REPORTS,
    (scope, teamId, name) =>
      createScheduledReport(scope, teamId, {
        ...{ name, schedule: '0 6 * * *', timezone: 'UTC', recipients: ['a@example.com'] },
        ...{ metrics: ['token_usage'], enabled: false, credentialId: null },
      }),
  ],
  [
    'data_tables',
    TABLE_QUOTAS.ENTERPRISE.tables,
    (scope, teamId, name) => createTable(scope, { teamId, name, columns: [{ name: 'a', type: 'text' }] }),
  ],
  [
    'connectors',
    MAX_CONNECTORS,
    (scope, teamId, name) => createConnector(scope, { teamId, name, content: PETS }),
  ],
  ['variables', 1_000, (scope, teamId, key) => createVariable(scope, { teamId, key, value: 1 })],
  [
    'credentials',
    1_000,
    (scope, teamId, name) =>
      createCredential(scope, { teamId, name, type: 'SLACK', data: { botToken: 'secret' } }),
  ],
  [
    'guardrail_rules',
    MAX_RULES,
    (scope, teamId, name) =>
      createRule(scope, teamId, {
        ...{ name, description: null, kind: 'REGEX', enabled: false, severity: 'LOW', action: 'LOGGED' },
        config: { pattern: 'x', flags: '' },
      }),
  ],
  [
    'guardrail_exemplars',
    MAX_EXEMPLARS,
    (scope, teamId, name) =>
      createExemplar(scope, teamId, { name, category: 'other', text: name }, async () => ({
        model: 'none',
        rows: Buffer.alloc(1),
      })),
  ],
  [
    'workflow_examples',
    MAX_EXAMPLES,
    (scope, workflowId, name) => createExample(scope, workflowId, { name, trigger: 'start', data: {} }),
  ],
]

/** Whose list it is: the team, or a new workflow of it. */
async function makeOwner(scope: Scope, teamId: string, table: string) {
  if (table !== 'workflow_examples') return { column: 'team_id', ownerId: teamId }
  const nodes = [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }]
  const { id } = await createWorkflow(scope, { teamId, name: 'Tried', nodes, edges: [] })
  return { column: 'workflow_id', ownerId: id }
}

test.each(LISTS)('%s: of 20 that are added at once, none passes the limit of %d', async (table, max, add) => {
  const { teamId } = await service.otherTeam()
  const scope = serviceScope(store, { kind: 'SYSTEM', id: null, name: 'test' }, [[teamId, 'ADMIN']])
  const { column, ownerId } = await makeOwner(scope, teamId, table)
  await add(scope, ownerId, 'first')
  // All but two of the places are taken by copies.
  await sql`insert into ${sql.table(table)} select copy.* from ${sql.table(table)} t, generate_series(1, ${max - 3}::int) n,
    jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid(), 'name', 'copy' || n, 'key', 'copy' || n)) copy
    where t.${sql.ref(column)} = ${ownerId}`.execute(store.db)
  const added = await Promise.allSettled(
    Array.from({ length: 20 }, (_, n) => add(scope, ownerId, `added${n}`)),
  )
  const refused = added.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
  expect(refused.map(({ code, message }) => `${code} ${message}`)).toEqual(
    Array(18).fill(expect.stringMatching(new RegExp(`^CONFLICT .*\\b${max} \\w+`))),
  )
  const { rows } = await sql`select from ${sql.table(table)} where ${sql.ref(column)} = ${ownerId}`.execute(
    store.db,
  )
  expect(rows).toHaveLength(max)
})

test('of 20 that take one name at once, one has it', async () => {
  const { teamId } = await service.otherTeam()
  const scope = serviceScope(store, { kind: 'SYSTEM', id: null, name: 'test' }, [[teamId, 'ADMIN']])
  const named = LISTS.filter(([table]) => !['audit_forwarders', 'scheduled_reports'].includes(table))
  for (const [table, , add] of named) {
    const { ownerId } = await makeOwner(scope, teamId, table)
    const added = await Promise.allSettled(Array.from({ length: 20 }, () => add(scope, ownerId, 'same')))
    const refused = added.flatMap((one) => (one.status === 'rejected' ? [one.reason.message] : []))
    expect(refused).toEqual(
      Array(19).fill(expect.stringMatching(/^The (team|workflow) already has an? [\w ]+ named "same"$/)),
    )
  }
})
