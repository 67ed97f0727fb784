import { sql } from 'kysely'
import {
  askRows,
  listActs,
  MAX_ROWS,
  makeSection,
  PERSON,
  type ReportPeriod,
  type ReportSection,
} from './sections.ts'

const WORKFLOWS = [
  ...[
    'WORKFLOW_CREATED',
    'WORKFLOW_UPDATED',
    'WORKFLOW_ACTIVATED',
    'WORKFLOW_DEACTIVATED',
    'WORKFLOW_DELETED',
  ],
  ...['WORKFLOW_DRAFT_SAVED', 'WORKFLOW_DRAFT_DISCARDED', 'WORKFLOW_PUBLISHED'],
  ...['WORKFLOW_VERSION_RESTORED', 'WORKFLOW_VERSION_DELETED', 'CREDENTIALS_EXTRACTED'],
]

type Group = {
  kind: 'people' | 'actions' | 'days' | 'resources'
  total: number
  [key: string]: unknown
}

/** What an ACTIVITY report tells: who did how much of what, when, and on what. */
export async function tellActivity(period: ReportPeriod): Promise<ReportSection[]> {
  const groups = Map.groupBy(await countGroups(period), ({ kind }) => kind)
  const of = (kind: Group['kind']) => groups.get(kind) ?? []
  const counts = { n: 'Entries', failed: 'Failed', denied: 'Denied' }
  const times = { first: 'First (UTC)', last: 'Last (UTC)' }
  return [
    makeSection(
      'people',
      'By user',
      'Who has done how much, the most first. What SDK tokens have done is told of each token, with its maker.',
      { who: 'Name', as: 'As', person: 'Person (e-mail)', ...counts, ...times, actorId: 'Id' },
      of('people').map((row) => ({ ...row, as: row.actorKind })),
    ),
    makeSection(
      'actions',
      'By act',
      'How often what was done, the most first.',
      { action: 'Act', ...counts, ...times },
      of('actions'),
    ),
    makeSection(
      'days',
      'By day',
      'How much was done on which day (UTC), oldest first. Days on which nothing was done are left out.',
      { day: 'Day', ...counts, ...times },
      of('days'),
    ),
    makeSection(
      'resources',
      'Busiest resources',
      'On what the most was done. A name is that of today; what has none is deleted, or has no name.',
      { resourceType: 'Kind', name: 'Name', ...counts, ...times, resourceId: 'Id' },
      of('resources'),
    ),
    await listActs(
      period,
      {
        ...{ id: 'workflow-changes', title: 'Changes of workflows' },
        about: 'What was made, changed, switched on and off, and deleted, newest first.',
      },
      WORKFLOWS,
    ),
  ]
}

/** Counts the entries of the period in four ways, reading them once. */
async function countGroups(period: ReportPeriod): Promise<Group[]> {
  const { teamId, span } = period
  return askRows(
    period,
    sql<Group>`
      with counted as (
        select case when grouping(day) = 0 then 'days' when grouping(action) = 0 then 'actions'
            when grouping(actor_kind) = 0 then 'people' else 'resources' end as kind,
          day, action, actor_kind, actor_id, user_id, max(actor_name) as who, resource_type, resource_id,
          count(*) as n, count(*) filter (where outcome = 'FAILURE') as failed,
          count(*) filter (where outcome = 'DENIED') as denied, min(ts) as first, max(ts) as last
        from (
          select to_char(ts at time zone 'UTC', 'YYYY-MM-DD') as day, action, actor_kind, actor_id, ${PERSON} as user_id,
            actor_name, resource_type, resource_id, outcome, ts
          from audit_entries where team_id = ${teamId} and seq between ${span.low} and ${span.high}) e
        group by grouping sets ((day), (action), (actor_kind, actor_id, user_id), (resource_type, resource_id))),
      placed as (
        select *, count(*) over (partition by kind) as total, row_number() over (partition by kind
          order by case when kind = 'days' then day end, n desc, action, last desc, actor_id, resource_id) as place
        from counted)
      select p.*, u.email as person, coalesce(w.name, c.name, k.name, v.key, ru.email) as name
      from placed p left join users u on u.id = p.user_id
        left join workflows w on p.resource_type = 'WORKFLOW' and w.id = p.resource_id
        left join credentials c on p.resource_type = 'CREDENTIAL' and c.id = p.resource_id
        left join sdk_tokens k on p.resource_type = 'SDK_TOKEN' and k.id = p.resource_id
        left join variables v on p.resource_type = 'VARIABLE' and v.id = p.resource_id
        left join users ru on p.resource_type in ('MEMBER', 'USER') and ru.id = p.resource_id
      where place <= ${MAX_ROWS} order by kind, place`,
  )
}
