import { type RawBuilder, sql } from 'kysely'
import { covers } from '../acts.ts'
import type { Scope } from '../scope.ts'

/** Who or what can have started an execution. */
export const STARTER_KINDS = [
  'USER',
  'SDK_TOKEN',
  'VISITOR',
  'WEBHOOK',
  'FORM',
  'SCHEDULE',
  'EXECUTION',
  'FAILURE',
  'EVALUATION',
  'PLAYBOOK',
] as const

/**
 * Who or what started an execution. `id` is that of a person, a token, or the execution that started it as a sub-workflow;
 * null for others. `name` is the person's, the token's, or that execution's workflow's; null if it has been deleted.
 */
export type Starter = { kind: (typeof STARTER_KINDS)[number]; id: string | null; name: string | null }

/** Reads the Starter of a row of `executions`, or of a table that is named so in the query. */
export function starterOf(table = 'executions'): RawBuilder<Starter | null> {
  const of = (column: string) => sql.ref(`${table}.${column}`)
  const [trigger, by, id, parent] = [
    of('trigger'),
    of('started_by_kind'),
    of('started_by_id'),
    of('parent_id'),
  ]
  // A retry has the trigger of the execution that it repeats, but a caller asked for it.
  const kind = sql`case when ${parent} is not null then 'EXECUTION'
    when ${trigger} in ('SCHEDULE', 'WEBHOOK', 'EVALUATION', 'PLAYBOOK') and ${of('retried_from')} is null then ${trigger}
    when ${trigger} = 'ERROR' and ${of('retried_from')} is null then 'FAILURE'
    when ${by} in ('USER', 'SDK_TOKEN') then ${by} when ${trigger} = 'CHAT' then 'VISITOR'
    when ${trigger} = 'FORM' and ${of('retried_from')} is null then 'FORM' end`
  return sql<Starter | null>`(select json_build_object('kind', kind,
      'id', case kind when 'EXECUTION' then ${parent} when 'USER' then ${id} when 'SDK_TOKEN' then ${id} end,
      'name', case kind
        when 'EXECUTION' then (select p.workflow_name from executions p where p.id = ${parent})
        when 'USER' then (select coalesce(nullif(trim(u.first_name || ' ' || u.last_name), ''), u.email)
          from users u where u.id = ${id})
        when 'SDK_TOKEN' then (select t.name from sdk_tokens t where t.id = ${id}) end)
    from (select ${kind} as kind) starter where kind is not null)`
}

/** What the caller may see of it: nothing if they may not see a team's people (VIEWER), or if the execution is hidden. */
export function showStarter(
  { roles }: Scope,
  { teamId, hidden, starter }: { teamId: string; hidden: boolean; starter: Starter | null },
): Starter | null {
  const role = roles.get(teamId)
  return !hidden && role !== undefined && covers(role, 'OPERATOR') ? starter : null
}
