import { sql } from 'kysely'
import { ACTS, ROLES } from '../acts.ts'
import { INSTANCE_CHAIN } from '../audit/signing.ts'
import { listNewAddresses } from './addresses.ts'
import {
  askRows,
  ENTRY_CELLS,
  EXPORTS,
  listActs,
  MAX_ROWS,
  makeSection,
  type ReportPeriod,
  type ReportSection,
  TIMES,
} from './sections.ts'
import { staysOf } from './stays.ts'

/** The acts of a team that go on while its chain is broken. */
const URGENT = Object.entries(ACTS).flatMap(([act, kind]) => ('urgent' in kind ? [act] : []))

/** What a SECURITY report tells: what was tried and refused, what is new, who has got more rights, what has left. */
export async function tellSecurity(period: ReportPeriod): Promise<ReportSection[]> {
  return [
    await countFailures(period, 'account'),
    await countFailures(period, 'address'),
    await listAccountActs(
      period,
      {
        ...{ id: 'lockouts', title: 'Lockouts, and sessions that have ended' },
        about:
          'Accounts of members that had to wait after too many failures, and uses of their sessions after those had ended, newest first.',
      },
      ['ACCOUNT_LOCKED', 'ENDED_SESSION_USED'],
    ),
    await countDenied(period),
    await countRevoked(period),
    await listNewAddresses(period),
    await listEscalations(period),
    await listActs(
      period,
      {
        id: 'exports',
        title: 'Exports of data',
        about: 'What has left the service, and where the audit is sent, newest first.',
      },
      EXPORTS,
    ),
    await listAccountActs(
      period,
      {
        ...{ id: 'account-changes', title: 'Changes of accounts' },
        about:
          'Passwords and e-mail addresses that members have changed while they were members, newest first.',
      },
      ['PASSWORD_CHANGED', 'EMAIL_CHANGED', 'EMAIL_CONFIRMED', 'ACCOUNT_UPDATED'],
    ),
    await listActs(
      period,
      {
        ...{ id: 'breaks', title: 'Breaks of the chain, purges and erasures' },
        about:
          'Entries with which the operator has reopened the chain after somebody had altered it, and what was removed from it, newest first.',
      },
      ['AUDIT_REOPENED', 'AUDIT_PURGED', 'AUDIT_DETAILS_ERASED'],
    ),
    await listMoved(period),
  ]
}

/**
 * Failed sign-ins of the members' accounts, while they were members, by account or by address. Those with an unknown
 * e-mail belong to no team, so that no report has them.
 */
async function countFailures(period: ReportPeriod, by: 'account' | 'address'): Promise<ReportSection> {
  const { low, high } = period.accounts
  const rows = await askRows(
    period,
    sql<Record<string, unknown>>`
      with ${staysOf(period)}, failed as (
        select e.resource_id as id, coalesce(e.src_ip, '') as ip, e.ts, ${TIMES} as times
        from audit_entries e
        where e.team_id = ${INSTANCE_CHAIN} and e.action = 'SIGN_IN_FAILED' and e.seq between ${low} and ${high}
          and exists (select from stays s where s.id = e.resource_id and e.ts >= s.since and e.ts < s.until))
      select ${by === 'account' ? sql`u.email as account, f.id,` : sql`nullif(f.ip, '') as ip,`}
        sum(f.times)::float8 as times, count(distinct f.ip) as addresses, count(distinct f.id) as accounts,
        min(f.ts) as first, max(f.ts) as last, count(*) over () as total
      from failed f left join users u on u.id = f.id
      group by ${by === 'account' ? sql`f.id, u.email` : sql`f.ip`}
      order by times desc, last desc limit ${MAX_ROWS}`,
  )
  const times = { times: 'Times', first: 'First (UTC)', last: 'Last (UTC)' }
  const about =
    "Wrong passwords for members' accounts, while they were members, the most first. Attempts with an unknown e-mail belong to no team, and of very many in a minute from one address the count is in the instance's chain only."
  return by === 'account'
    ? makeSection(
        'failed-sign-ins',
        'Failed sign-ins by account',
        about,
        { account: 'Account', ...times, addresses: 'Addresses', id: 'Id' },
        rows,
      )
    : makeSection(
        'failed-sign-in-addresses',
        'Failed sign-ins by address',
        about,
        { ip: 'Address', ...times, accounts: 'Accounts' },
        rows,
      )
}

/** Entries of the instance's chain about members' accounts, while they were members. */
async function listAccountActs(
  period: ReportPeriod,
  { id, title, about }: { id: string; title: string; about: string },
  actions: string[],
): Promise<ReportSection> {
  const { low, high } = period.accounts
  const rows = await askRows(
    period,
    sql<Record<string, unknown>>`
      with ${staysOf(period)}
      select ${ENTRY_CELLS}, u.email as account, count(*) over () as total
      from audit_entries e left join users u on u.id = e.resource_id
      where e.team_id = ${INSTANCE_CHAIN} and e.action = any(${actions}) and e.seq between ${low} and ${high}
        and exists (select from stays s where s.id = e.resource_id and e.ts >= s.since and e.ts < s.until)
      order by e.seq desc limit ${MAX_ROWS}`,
  )
  const columns = { at: 'Time (UTC)', account: 'Account', action: 'Act', who: 'By', ip: 'From' }
  return makeSection(id, title, about, { ...columns, outcome: 'Outcome', details: 'Details' }, rows)
}

/** What was denied, by who tried what from where. */
async function countDenied(period: ReportPeriod): Promise<ReportSection> {
  const { teamId, span } = period
  const rows = await askRows(
    period,
    sql<Record<string, unknown>>`
      select coalesce(max(actor_name), actor_kind) as who, actor_kind as as, src_ip as ip,
        details->>'operation' as act,
        nullif(concat_ws(' ', details->>'method', details->>'route'), '') as route,
        max(details->>'needs') as needs, max(details->>'has') as has, sum(${TIMES})::float8 as times,
        min(ts) as first, max(ts) as last, count(*) over () as total, actor_id
      from audit_entries
      where team_id = ${teamId} and action = 'ACCESS_DENIED' and seq between ${span.low} and ${span.high}
      group by actor_kind, actor_id, src_ip, act, route
      order by times desc, last desc limit ${MAX_ROWS}`,
  )
  return makeSection(
    'denied',
    'Denied acts',
    'What was refused to whom, the most first. Of many refusals in a minute one entry has the count.',
    {
      ...{ who: 'By', as: 'As', ip: 'From', act: 'Act', route: 'Request', needs: 'Needs', has: 'Has' },
      ...{ times: 'Times', first: 'First (UTC)', last: 'Last (UTC)' },
    },
    rows,
  )
}

/** Uses of SDK tokens that were revoked. */
async function countRevoked(period: ReportPeriod): Promise<ReportSection> {
  const { teamId, span } = period
  const rows = await askRows(
    period,
    sql<Record<string, unknown>>`
      select k.name, k.hint, k.revoked_at, u.email as maker, e.*, count(*) over () as total
      from (
        select coalesce(resource_id, actor_id) as id, src_ip as ip, sum(${TIMES})::float8 as times, min(ts) as first, max(ts) as last
        from audit_entries
        where team_id = ${teamId} and action = 'REVOKED_TOKEN_USED' and seq between ${span.low} and ${span.high}
        group by 1, 2) e
        left join sdk_tokens k on k.id = e.id and k.team_id = ${teamId} left join users u on u.id = k.user_id
      order by e.times desc, e.last desc limit ${MAX_ROWS}`,
  )
  return makeSection(
    'revoked-tokens',
    'Use of revoked tokens',
    'Who still sends a token that was revoked: something was not told, or it has leaked.',
    {
      ...{ name: 'Token', hint: 'Hint', maker: 'Maker', revokedAt: 'Revoked (UTC)', ip: 'From' },
      ...{ times: 'Times', first: 'First (UTC)', last: 'Last (UTC)', id: 'Id' },
    },
    rows,
  )
}

/** Who has got more rights than before. */
async function listEscalations(period: ReportPeriod): Promise<ReportSection> {
  const { teamId, span } = period
  const rank = (role: ReturnType<typeof sql>) => sql`array_position(${ROLES}::text[], upper(${role}))`
  const before = sql`coalesce(details->>'from', details#>>'{before,role}')`
  const after = sql`coalesce(details->>'to', details#>>'{after,role}', details->>'role')`
  const rows = await askRows(
    period,
    sql<Record<string, unknown>>`
      select ${ENTRY_CELLS}, count(*) over () as total,
        coalesce(details->>'email', details->>'name') as whom, ${before} as before, ${after} as after
      from audit_entries
      where team_id = ${teamId} and seq between ${span.low} and ${span.high}
        and action in ('MEMBER_ROLE_CHANGED', 'MEMBER_ADDED', 'SDK_TOKEN_CREATED')
        and (case when action = 'MEMBER_ROLE_CHANGED' then ${rank(after)} > ${rank(before)}
          else ${rank(after)} >= ${rank(sql`'BUILDER'`)} end)
      order by seq desc limit ${MAX_ROWS}`,
  )
  return makeSection(
    'escalations',
    'Who has got more rights',
    'Roles that were raised, and new members and tokens that may at least build workflows, newest first.',
    {
      ...{ at: 'Time (UTC)', seq: 'Entry', action: 'Act', whom: 'Who', before: 'Before', after: 'After' },
      ...{ who: 'By', ip: 'From' },
    },
    rows,
  )
}

/** Acts that went on while the team's chain was broken: their entries are in the instance's chain. */
async function listMoved(period: ReportPeriod): Promise<ReportSection> {
  const { low, high } = period.accounts
  const rows = await askRows(
    period,
    sql<Record<string, unknown>>`
      select ${ENTRY_CELLS}, count(*) over () as total from audit_entries
      where team_id = ${INSTANCE_CHAIN} and seq between ${low} and ${high}
        and action = any(${URGENT}) and details->>'brokenChain' = ${period.teamId}
      order by seq desc limit ${MAX_ROWS}`,
  )
  const columns = { at: 'Time (UTC)', action: 'Act', who: 'By', ip: 'From', resource: 'On' }
  return makeSection(
    'moved',
    'Acts while the chain was broken',
    "What had to go on although the team's chain could not take an entry: it is in the instance's chain.",
    { ...columns, details: 'Details' },
    rows,
  )
}
