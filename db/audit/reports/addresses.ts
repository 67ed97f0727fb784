import { sql } from 'kysely'
import { INSTANCE_CHAIN } from '../signing.ts'
import { askRows, MAX_ROWS, makeSection, PERSON, type ReportPeriod, type ReportSection } from './sections.ts'
import { staysOf } from './stays.ts'

/** An address is new if nothing has come from it for this long. */
const LOOK_BACK_DAYS = 366

/** The addresses from which members have signed in or done something for the first time in the period. */
export async function listNewAddresses(period: ReportPeriod): Promise<ReportSection> {
  const { teamId, span, base, accounts, from } = period
  const rows = await askRows(
    period,
    sql<Record<string, unknown>>`
      with ${staysOf(period)}, since as (select ${from}::timestamptz - ${LOOK_BACK_DAYS * 24} * interval '1 hour' as at),
      used as (
        select ${PERSON} as id, src_ip as ip, min(ts) as first, max(ts) as last,
          count(*) filter (where seq >= ${span.low}) as times
        from audit_entries
        where team_id = ${teamId} and seq between ${base} and ${span.high} and src_ip is not null
          and ts >= (select at from since)
        group by 1, 2
        union all
        select e.resource_id, e.src_ip, min(e.ts), max(e.ts), count(*) filter (where e.seq >= ${accounts.low})
        from audit_entries e
        where e.team_id = ${INSTANCE_CHAIN} and e.action = 'SIGNED_IN' and e.seq <= ${accounts.high}
          and e.src_ip is not null and e.ts >= (select at from since)
          and exists (select from stays s where s.id = e.resource_id and e.ts >= s.since and e.ts < s.until)
        group by 1, 2),
      known as (
        select id, ip, min(first) as first, max(last) as last, sum(times)::float8 as times from used
        where id is not null group by 1, 2),
      counted as (
        select *, count(*) filter (where first < ${from}) over (partition by id) as before from known)
      select coalesce(u.email, k.id::text) as account, k.ip, k.first, k.last, k.times, k.before, count(*) over () as total
      from counted k left join users u on u.id = k.id
      where k.first >= ${from}
      order by k.first desc, account, k.ip limit ${MAX_ROWS}`,
  )
  return makeSection(
    'new-addresses',
    'New addresses',
    `From where people have signed in or done something that had not been seen with them for ${LOOK_BACK_DAYS} days, newest first. Many providers change addresses often.`,
    {
      ...{ account: 'Account', ip: 'Address', first: 'First (UTC)', last: 'Last (UTC)', times: 'Entries' },
      before: 'Addresses known before',
    },
    rows,
  )
}
