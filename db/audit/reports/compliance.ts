import { sql } from 'kysely'
import { listAccess } from './access.ts'
import {
  askRows,
  EXPORTS,
  listActs,
  MAX_ROWS,
  makeSection,
  type ReportPeriod,
  type ReportSection,
  TIMES,
} from './sections.ts'

/** The acts that change the rights of people in a team. */
const PERMISSIONS = [
  ...['TEAM_CREATED', 'TEAM_DELETED', 'MEMBER_ADDED', 'MEMBER_ROLE_CHANGED', 'MEMBER_REMOVED'],
  ...['SDK_TOKEN_CREATED', 'SDK_TOKEN_REVOKED'],
]

const CREDENTIALS = [
  ...['CREDENTIAL_CREATED', 'CREDENTIAL_UPDATED', 'CREDENTIAL_DELETED', 'CREDENTIAL_CONNECTED'],
  ...['CREDENTIAL_TESTED', 'CREDENTIALS_EXTRACTED'],
]

const SETTINGS = [
  'TEAM_UPDATED',
  'TEAM_PLAN_CHANGED',
  'MODEL_PRICES_UPDATED',
  'GUARDRAIL_SETTINGS_UPDATED',
  'MONITORING_CONFIG_UPDATED',
]

/** What a COMPLIANCE report tells: who may do what and why, what was given and taken, and what is kept. */
export async function tellCompliance(period: ReportPeriod): Promise<ReportSection[]> {
  const acts = (id: string, title: string, about: string, actions: string[]) =>
    listActs(period, { id, title, about }, actions)
  return [
    ...(await listAccess(period)),
    await acts(
      'permission-changes',
      'Changes of permissions',
      'Members, roles and SDK tokens, newest first.',
      PERMISSIONS,
    ),
    await listCredentialsThen(period),
    await listCredentialUse(period),
    await acts(
      'credential-changes',
      'Changes of credentials',
      'What was done with credentials, newest first. Values are never in the audit.',
      CREDENTIALS,
    ),
    await acts(
      'approvals',
      'Approvals',
      'Decisions of people on which workflows have waited, newest first.',
      ['APPROVAL_DECIDED'],
    ),
    await acts(
      'exports',
      'Exports of data',
      'What has left the service, and where the audit is sent, newest first.',
      EXPORTS,
    ),
    await listRetention(period),
    await acts(
      'retention-changes',
      'Changes of the retention, and purges',
      'What was changed about how long the audit is kept, and what was removed from it, newest first.',
      ['AUDIT_RETENTION_UPDATED', 'AUDIT_PURGED', 'AUDIT_DETAILS_ERASED', 'AUDIT_REPORT_DELETED'],
    ),
    await acts(
      'settings',
      "Changes of the team's settings",
      'Name, plan, retention of chats, and prices of models, newest first.',
      SETTINGS,
    ),
  ]
}

/** The credentials that there were at the end of the period, with what is deleted since. */
async function listCredentialsThen(period: ReportPeriod): Promise<ReportSection> {
  const { teamId, span, base, to } = period
  const rows = await askRows(
    period,
    sql<Record<string, unknown>>`
      with made as (
        select distinct on (resource_id) resource_id as id, actor_name from audit_entries
        where team_id = ${teamId} and action = 'CREDENTIAL_CREATED' and seq between ${base} and ${span.high}
        order by resource_id, seq),
      changed as (
        select distinct on (resource_id) resource_id as id, ts, actor_name from audit_entries
        where team_id = ${teamId} and action in ('CREDENTIAL_CREATED', 'CREDENTIAL_UPDATED', 'CREDENTIAL_CONNECTED')
          and seq between ${base} and ${span.high} order by resource_id, seq desc),
      first_made as (
        select resource_id as id, min(seq) as seq from audit_entries
        where team_id = ${teamId} and action = 'CREDENTIAL_CREATED' and seq >= ${base} group by resource_id),
      there as (
        select c.id, c.name, c.type, c.created_at, c.last_tested_at, c.test_status, null::timestamptz as deleted_at,
          (select count(*) from version_credentials v join workflows w on w.id = v.workflow_id and w.version = v.version
            where v.credential_id = c.id) as workflows
        from credentials c where c.team_id = ${teamId} and c.created_at < ${to}
        union all
        select e.resource_id, coalesce(e.details->>'name', e.details#>>'{before,name}'),
          coalesce(e.details->>'type', e.details#>>'{before,type}'), null, null, null, e.ts, null
        from audit_entries e left join first_made f on f.id = e.resource_id
        where e.team_id = ${teamId} and e.action = 'CREDENTIAL_DELETED' and e.seq > ${span.high}
          and coalesce(f.seq, 0) <= ${span.high})
      select t.*, made.actor_name as created_by, changed.ts as changed_at, changed.actor_name as changed_by,
        count(*) over () as total
      from there t left join made on made.id = t.id left join changed on changed.id = t.id
      order by lower(t.name), t.id limit ${MAX_ROWS}`,
  )
  const tested = rows.map((row) => ({
    ...row,
    tested: row.testStatus
      ? `${row.testStatus} ${(row.lastTestedAt as Date | null)?.toISOString() ?? ''}`
      : null,
  }))
  return makeSection(
    'credentials',
    'Credentials',
    'Those that there were at the end of the period, by name. In how many workflows they are, and the last test, is as of today.',
    {
      ...{ name: 'Name', type: 'Type', createdAt: 'Made (UTC)', createdBy: 'Made by' },
      ...{ changedAt: 'Last changed (UTC)', changedBy: 'Changed by', workflows: 'Workflows that use it' },
      ...{ tested: 'Last test', deletedAt: 'Deleted since (UTC)', id: 'Id' },
    },
    tested,
  )
}

/** Which workflow or audit forwarder, or that guardrails, have used which credential, how often. */
async function listCredentialUse(period: ReportPeriod): Promise<ReportSection> {
  const { teamId, span } = period
  const rows = await askRows(
    period,
    sql<Record<string, unknown>>`
      select coalesce(c.name, u.name) as credential, c.type, u.credential_id, coalesce(w.name, u.workflow_name) as workflow,
        u.workflow_id, u.times, u.first, u.last,
        count(*) over () as total
      from (
        select resource_id as credential_id, coalesce(details->>'workflowId', details->>'forwarderId') as workflow_id, sum(${TIMES})::float8 as times,
          min(details->>'hour') as first, max(details->>'hour') as last, max(details->>'name') as name,
          max(coalesce(details->>'workflowName', 'Audit forwarder ' || (details->>'forwarderName'),
            case when details->>'guardrails' = 'true' then 'Guardrails' end)) as workflow_name
        from audit_entries
        where team_id = ${teamId} and action = 'CREDENTIAL_USED' and seq between ${span.low} and ${span.high}
        group by 1, 2) u
        left join credentials c on c.id = u.credential_id left join workflows w on w.id::text = u.workflow_id
      order by u.times desc, u.credential_id, u.workflow_id limit ${MAX_ROWS}`,
  )
  return makeSection(
    'credential-use',
    'Use of credentials',
    'How often the steps of each workflow, audit forwarders and guardrails have opened a credential, the most first. It is noted after each hour.',
    {
      ...{
        credential: 'Credential',
        type: 'Type',
        credentialId: 'Id',
        workflow: 'Workflow or forwarder',
        workflowId: 'Its id',
      },
      ...{ times: 'Times', first: 'First hour (UTC)', last: 'Last hour (UTC)' },
    },
    rows,
  )
}

/** How long the audit is kept, as it is today. */
async function listRetention(period: ReportPeriod): Promise<ReportSection> {
  const { teamId, base } = period
  const [row] = await askRows(
    period,
    sql<Record<string, unknown>>`
      select coalesce(r.retention_days, 365) as days, coalesce(r.auto_delete_enabled, false) as auto,
        coalesce(r.report_retention_days, 365) as reports, r.last_purged_at as purged_at, e.ts as oldest
      from (select) nothing left join audit_retention r on r.team_id = ${teamId}
        left join audit_entries e on e.team_id = ${teamId} and e.seq = ${base}`,
  )
  const { days, auto, reports, purgedAt, oldest } = row!
  const facts: [string, unknown][] = [
    ['Entries are kept for at least (days)', days],
    ['Older entries are removed by themselves', auto],
    ['Reports are kept for (days)', reports],
    ['Last purge (UTC)', purgedAt ?? 'none'],
    ['First entry that is kept', base],
    ['Its time (UTC)', oldest],
  ]
  return makeSection(
    'retention',
    'Retention of the audit',
    'The policy as it is when the report is made; its changes are in the next table.',
    { fact: 'Policy', value: 'Value' },
    facts.map(([fact, value]) => ({ fact, value })),
  )
}
