import { sql } from 'kysely'
import { lesserRole, type Role } from '../../acts.ts'
import { askRows, MAX_ROWS, makeSection, type ReportPeriod, type ReportSection } from './sections.ts'

/** A person who could get in, or was known to, at the end of the period. */
type Holder = {
  personId: string
  name: string | null
  email: string | null
  role: string
  /** The entry that gave them this role; null if none of those that are kept does. */
  seq: number | null
  at: Date | null
  act: string | null
  givenBy: string | null
  finding: string | null
  total: number
}

type TokenHolder = {
  tokenId: string
  name: string
  role: string
  person: string | null
  makerId: string
  makerRole: string | null
  createdAt: Date
  expiresAt: Date | null
  lastUsedAt: Date | null
  seq: number | null
  createdBy: string | null
  total: number
}

/**
 * Who had access at the end of the period, and how it came about: people with their roles, and SDK tokens with the
 * lesser of their own role and their maker's.
 */
export async function listAccess(period: ReportPeriod): Promise<ReportSection[]> {
  const people = await listPeople(period)
  const tokens = await listTokensThen(period)
  const told = people.map((row) => ({ ...row, cameAbout: tellOrigin(row) }))
  const rights = tokens.map((row) => ({
    ...row,
    right: row.makerRole === null ? 'none' : lesserRole(row.role as Role, row.makerRole as Role),
  }))
  return [
    makeSection(
      'access-people',
      'People who have access',
      "The members at the end of the period, by role. The entries of the chain decide; where they and the team's rows do not agree, the last column says so.",
      {
        ...{ role: 'Role', name: 'Name', email: 'E-mail', at: 'Since (UTC)', cameAbout: 'How it came about' },
        ...{ seq: 'Entry', finding: 'Finding' },
      },
      told,
    ),
    makeSection(
      'access-tokens',
      'SDK tokens that give access',
      'The tokens that were valid at the end of the period. A token may do what its own role and the role of its maker both allow.',
      {
        ...{
          right: 'May act as',
          role: 'Own role',
          name: 'Name',
          person: 'Maker',
          makerRole: "Maker's role",
        },
        ...{
          createdAt: 'Made (UTC)',
          expiresAt: 'Expires (UTC)',
          lastUsedAt: 'Last used (UTC, until today)',
        },
        ...{ createdBy: 'Made by', seq: 'Entry' },
      },
      rights,
    ),
  ]
}

function tellOrigin({ act, givenBy, role }: Holder): string {
  const by = givenBy ? ` by ${givenBy}` : ''
  if (act === 'MEMBER_ADDED') return `added as ${role}${by}`
  if (act === 'MEMBER_ROLE_CHANGED') return `role changed to ${role}${by}`
  if (act === 'TEAM_CREATED') return 'made the team'
  return 'no entry that is kept says so'
}

/**
 * The members at the end of the period. The last entry about a person in or before it says what they were; without one,
 * the first entry after it says what they had been before; without any, the row of today counts.
 */
function membersThen({ teamId, span, base, to }: ReportPeriod) {
  const about = sql`audit_entries where team_id = ${teamId} and seq >= ${base}
    and action in ('MEMBER_ADDED', 'MEMBER_ROLE_CHANGED', 'MEMBER_REMOVED') and resource_id is not null`
  const roleAfter = sql`case action when 'MEMBER_REMOVED' then null when 'MEMBER_ADDED'
    then coalesce(details->>'role', details#>>'{after,role}')
    else coalesce(details->>'to', details#>>'{after,role}') end`
  const roleBefore = sql`case action when 'MEMBER_ADDED' then null when 'MEMBER_REMOVED'
    then coalesce(details->>'role', details#>>'{before,role}')
    else coalesce(details->>'from', details#>>'{before,role}') end`
  return sql`
    before as (
      select distinct on (resource_id) resource_id as id, seq, ts, action, actor_name, details->>'email' as email,
        ${roleAfter} as role
      from ${about} and seq <= ${span.high} order by resource_id, seq desc),
    after as (
      select distinct on (resource_id) resource_id as id, details->>'email' as email, ${roleBefore} as role
      from ${about} and seq > ${span.high} order by resource_id, seq),
    founder as (
      select actor_id as id, seq, ts, actor_name, action from audit_entries
      where team_id = ${teamId} and seq = 1 and seq >= ${base} and action = 'TEAM_CREATED' and actor_kind = 'USER'),
    now_there as (select user_id as id, role, joined_at from members where team_id = ${teamId}),
    people as (select id from before union select id from after union select id from now_there),
    then_there as (
      select p.id, coalesce(b.email, a.email) as email,
        case when b.id is not null then b.role when a.id is not null then a.role
          when n.joined_at < ${to} then n.role end as role,
        case when b.id is not null then b.seq when a.id is null then f.seq end as seq,
        case when b.id is not null then b.ts when a.id is null then coalesce(f.ts, n.joined_at) end as at,
        case when b.id is not null then b.action when a.id is null then f.action end as act,
        case when b.id is not null then b.actor_name end as given_by,
        case when a.id is not null then null
          when b.id is not null and b.role is distinct from n.role
            then 'the row of today says ' || coalesce(n.role, 'none') || ', and no entry tells why'
          when b.id is null and f.id is null and n.joined_at < ${to} and ${base === 1} then 'a row without an entry' end as finding
      from people p left join before b using (id) left join after a using (id) left join now_there n using (id)
        left join founder f using (id))`
}

async function listPeople(period: ReportPeriod): Promise<Holder[]> {
  return askRows(
    period,
    sql<Holder>`
      with ${membersThen(period)}
      select t.id as person_id, u.first_name || ' ' || u.last_name as name, coalesce(u.email, t.email) as email,
        coalesce(t.role, 'none') as role, t.seq, t.at, t.act, t.given_by, t.finding, count(*) over () as total
      from then_there t left join users u on u.id = t.id
      where t.role is not null or t.finding is not null
      order by array_position(array['ADMIN', 'BUILDER', 'OPERATOR'], t.role), u.last_name, u.first_name, t.id
      limit ${MAX_ROWS}`,
  )
}

async function listTokensThen(period: ReportPeriod): Promise<TokenHolder[]> {
  const { teamId, to, base, span } = period
  return askRows(
    period,
    sql<TokenHolder>`
      with ${membersThen(period)}, made as (
        select distinct on (resource_id) resource_id as id, seq, actor_name from audit_entries
        where team_id = ${teamId} and action = 'SDK_TOKEN_CREATED' and seq between ${base} and ${span.high}
        order by resource_id, seq)
      select k.id as token_id, k.name || ' (' || k.hint || ')' as name, k.role, u.email as person, k.user_id as maker_id,
        t.role as maker_role, k.created_at, k.expires_at, k.last_used_at, made.seq, made.actor_name as created_by,
        count(*) over () as total
      from sdk_tokens k left join users u on u.id = k.user_id left join then_there t on t.id = k.user_id
        left join made on made.id = k.id
      where k.team_id = ${teamId} and k.created_at < ${to} and (k.revoked_at is null or k.revoked_at >= ${to})
        and (k.expires_at is null or k.expires_at > ${to})
      order by array_position(array['ADMIN', 'BUILDER', 'OPERATOR', 'VIEWER'], k.role), k.created_at, k.id
      limit ${MAX_ROWS}`,
  )
}
