import { sql } from 'kysely'
import { ACTS, ROLES } from '../../acts.ts'
import { INSTANCE_CHAIN } from '../signing.ts'
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
  // How many entries are of members is guessed far too low, and for so few PostgreSQL would look at all members for each.
  await sql`set local enable_nestloop = off`.execute(period.db)
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
      select ${by === 'account' ? sql`${emailOf('key')} as account, key as id,` : sql`nullif(key, '') as ip,`}
        times, addresses, accounts, first, last, total
      from (
        select ${by === 'account' ? sql`id` : sql`ip`} as key, sum(times)::float8 as times, count(distinct ip) as addresses,
          count(distinct id) as accounts, min(ts) as first, max(ts) as last, count(*) over () as total
        from failed group by 1 order by times desc, last desc limit ${MAX_ROWS}) f
      order by times desc, last desc`,
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
      with ${staysOf(period)}, found as (
        select e.seq from audit_entries e
        where e.team_id = ${INSTANCE_CHAIN} and e.action = any(${actions}) and e.seq between ${low} and ${high}
          and exists (select from stays s where s.id = e.resource_id and e.ts >= s.since and e.ts < s.until))
      select ${ENTRY_CELLS}, ${emailOf('resource_id')} as account, (select count(*) from found) as total
      from ${newestOf(INSTANCE_CHAIN)} order by seq desc`,
  )
  const columns = { at: 'Time (UTC)', account: 'Account', action: 'Act', who: 'By', ip: 'From' }
  return makeSection(id, title, about, { ...columns, outcome: 'Outcome', details: 'Details' }, rows)
}

/** The denied acts, by actor, act and address. */
async function countDenied(period: ReportPeriod): Promise<ReportSection> {
  const { teamId, span } = period
  const rows = await askRows(
    period,
    sql<Record<string, unknown>>`
      select coalesce(max(actor_name), actor_kind) as who, actor_kind as as, src_ip as ip, operation as act,
        nullif(concat_ws(' ', method, route), '') as route, max(needs) as needs, max(has) as has,
        sum(${TIMES})::float8 as times, min(ts) as first, max(ts) as last, count(*) over () as total, actor_id
      from audit_entries, json_to_record(case when json_typeof(details) = 'object' then details end)
        as told (operation text, method text, route text, needs text, has text)
      where team_id = ${teamId} and action = 'ACCESS_DENIED' and seq between ${span.low} and ${span.high}
      group by actor_kind, actor_id, src_ip, operation, method, route
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
      with found as (
        select seq from audit_entries
        where team_id = ${teamId} and seq between ${span.low} and ${span.high}
          and action in ('MEMBER_ROLE_CHANGED', 'MEMBER_ADDED', 'SDK_TOKEN_CREATED')
          and (case when action = 'MEMBER_ROLE_CHANGED' then ${rank(after)} > ${rank(before)}
            else ${rank(after)} >= ${rank(sql`'BUILDER'`)} end))
      select ${ENTRY_CELLS}, (select count(*) from found) as total,
        coalesce(details->>'email', details->>'name') as whom, ${before} as before, ${after} as after
      from ${newestOf(teamId)} order by seq desc`,
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

/** The newest entries of a chain of those whose numbers the part `found` of a statement has: only these are read whole. */
function newestOf(chain: string) {
  return sql`audit_entries where team_id = ${chain} and seq = any(array(
    select seq from found order by seq desc limit ${MAX_ROWS}))`
}

/** The e-mail of the person whose id is in a column; for the rows that are told only. */
function emailOf(column: string) {
  return sql`(select email from users where users.id = ${sql.ref(column)})`
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
