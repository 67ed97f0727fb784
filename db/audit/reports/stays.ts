import { sql } from 'kysely'
import type { ReportPeriod } from './sections.ts'

/**
 * A part of a statement: `stays` has the times in which each person was a member. The acts of people on their accounts
 * are in the instance's chain; a team's reports tell only those in the time of their membership.
 */
export function staysOf({ teamId, base }: ReportPeriod) {
  return sql`
    stays as materialized (
      select user_id as id, joined_at as since, 'infinity'::timestamptz as until from members where team_id = ${teamId}
      union all
      select id, case when earlier = 'MEMBER_ADDED' then earlier_at else '-infinity' end, ts from (
        select resource_id as id, action, ts, lag(action) over about as earlier, lag(ts) over about as earlier_at
        from audit_entries
        where team_id = ${teamId} and seq >= ${base} and action in ('MEMBER_ADDED', 'MEMBER_REMOVED')
        window about as (partition by resource_id order by seq)) told
      where action = 'MEMBER_REMOVED' and (earlier is null or earlier = 'MEMBER_ADDED'))`
}
