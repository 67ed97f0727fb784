import { type RawBuilder, sql } from 'kysely'
import { perDatabase } from '../cache.ts'
import { write } from '../change.ts'
import { createMemory } from '../memory.ts'
import { makePage, type Page, type PageRequest } from '../page.ts'
import type { TeamPlan } from '../people/teams.ts'
import { demandInstance, type Scope, type Store } from '../scope.ts'
import { createBatches } from './batches.ts'

/** Requests per minute by team plan, in ascending order. */
export const PLAN_LIMITS = {
  FREE: 60,
  TEAM: 300,
  BUSINESS: 1_000,
  ENTERPRISE: 5_000,
} as const satisfies Record<TeamPlan, number>

/** Requests per minute from an address without valid credentials. */
export const ADDRESS_LIMIT = 300

/** Requests per minute of a visitor of a widget, and to one widget from an address: several visitors may sit behind it. */
export const VISITOR_LIMIT = 30
export const WIDGET_ADDRESS_LIMIT = 60

/** Passwords per minute that an address may try at one form (`<workflow>/<path>/<network>`). */
export const FORM_PASSWORD_LIMIT = 20

/**
 * What a request counts against: a team, a user, all FREE teams of a user together, or an IP address. What visitors of a
 * widget do counts against the widget, whose limit is that of its team's plan and which is not the team's own count, the
 * visitor, and their address (`<widget>/<network>`).
 */
export type CountedCaller = { kind: (typeof COUNTED_KINDS)[number]; id: string }

export const COUNTED_KINDS = [
  'TEAM',
  'USER',
  'FREE_TEAMS',
  'IP',
  'WIDGET',
  'VISITOR',
  'WIDGET_IP',
  'FORM_PASSWORD',
] as const

/** The kinds with the same limit for all. */
const FIXED_LIMITS: Partial<Record<CountedCaller['kind'], number>> = {
  IP: ADDRESS_LIMIT,
  FREE_TEAMS: PLAN_LIMITS.FREE,
  VISITOR: VISITOR_LIMIT,
  WIDGET_IP: WIDGET_ADDRESS_LIMIT,
  FORM_PASSWORD: FORM_PASSWORD_LIMIT,
}

/**
 * The count after a request: it is number `used` of `limit`. The next minute begins at `resetAt` (Unix
 * seconds), in `wait` seconds.
 */
export type RequestCount = { limit: number; used: number; resetAt: number; wait: number }

/**
 * Counts one request in the current minute of the database's clock. The request must be refused if `used` >
 * `limit`; refused requests are not stored. Requests of the same caller that come during a count are added
 * together in the next one, but each gets its own number.
 */
export function countRequest(store: Store, counted: CountedCaller): Promise<RequestCount> {
  return countsOf(store.db)(`${counted.kind}:${counted.id}`, counted)
}

const countsOf = perDatabase((db) =>
  createBatches(async (key, requests: CountedCaller[]) => {
    const row = await addCount({ db }, requests[0]!, key, requests.length)
    return numberRequests({ db }, row, requests.length)
  }),
)

/** What a statement that counts returns. `used` is null if the minute was full. */
export type CountRow = { most: number; used: number | null; resetAt: number; wait: number }

/** Gives each of `n` requests that were added together its own number. */
export function numberRequests(store: Pick<Store, 'db'>, row: CountRow, n: number): RequestCount[] {
  const { most: limit, used, resetAt, wait } = row
  if (resetAt !== purgeOf(store.db).resetAt) void purgeCounts(store, resetAt)
  const before = used === null ? limit : used - n
  return Array.from({ length: n }, (_, i) => ({ limit, used: before + i + 1, resetAt, wait }))
}

/**
 * A single statement, so that any number of processes can count at once. The statement does not contain the
 * word "limit", because such statements are not prepared (see db/connection.ts).
 */
async function addCount(
  store: Pick<Store, 'db'>,
  counted: CountedCaller,
  key: string,
  n: number,
): Promise<CountRow> {
  const isTeam = counted.kind === 'TEAM'
  const limits = limitsOf(store.db)
  const known = isTeam ? limits.find(counted.id) : undefined
  const remember = limits.begin()
  const { rows } = await write(store, (tx) =>
    sql<CountRow>`
    with bound as (select ${known === undefined ? limitOf(counted) : sql`${known}::int`} as n),
      added as (
        insert into request_counts as c (key, minute, used) values (${key}, date_trunc('minute', now()), ${n})
        on conflict (key, minute) do update set used = c.used + excluded.used
          where c.used < (select n from bound)
        returning used)
    select (select n from bound) as most, (select used from added) as used, ${THIS_MINUTE}`.execute(tx),
  )
  const row = rows[0]!
  if (isTeam && known === undefined) remember(counted.id, row.most, `plan:${counted.id}`)
  return row
}

/** The limits of teams. */
const limitsOf = createMemory<number>(10_000)

/** The columns of a CountRow that say when the minute ends. */
export const THIS_MINUTE = sql`extract(epoch from date_trunc('minute', now()))::int + 60 as reset_at,
  ceil(60 - extract(epoch from now() - date_trunc('minute', now())))::int as wait`

/** The limit as it is now, so that a changed plan applies from the next request on. */
function limitOf({ kind, id }: CountedCaller): RawBuilder<number> {
  const fixed = FIXED_LIMITS[kind]
  if (fixed !== undefined) return sql`${sql.lit(fixed)}`
  const plans =
    kind === 'TEAM'
      ? sql`teams t where t.id = ${id}`
      : kind === 'WIDGET'
        ? sql`widgets w join teams t on t.id = w.team_id where w.id = ${id}`
        : sql`members m join teams t on t.id = m.team_id where m.user_id = ${id}`
  return sql`coalesce((select max(${PLAN_LIMIT}) from ${plans}), ${sql.lit(PLAN_LIMITS.FREE)})`
}

/** The requests per minute of the team `t`. */
export const PLAN_LIMIT = sql<number>`case t.plan ${sql.join(
  Object.entries(PLAN_LIMITS).map(([plan, limit]) => sql`when ${sql.lit(plan)} then ${sql.lit(limit)}`),
  sql` `,
)} end`

const purgeOf = perDatabase(() => ({ resetAt: 0 }))

// Called at the first request of a minute: without requests the table does not grow.
async function purgeCounts(store: Pick<Store, 'db'>, resetAt: number): Promise<void> {
  purgeOf(store.db).resetAt = resetAt
  await write(store, (tx) =>
    sql`delete from request_counts where minute < now() - interval '5 minutes'`.execute(tx),
  ).catch(() => {})
}

export type LimitItem = {
  kind: CountedCaller['kind']
  id: string
  /** The name of the team or widget, or the user's e-mail; null for addresses and visitors. */
  name: string | null
  limit: number
  used: number
  remaining: number
  resetAt: Date
}

/**
 * What the requests of this minute count against, the busiest first. Throws FORBIDDEN unless for the
 * instance's admin.
 */
export async function listLimits(scope: Scope, query: PageRequest): Promise<Page<LimitItem>> {
  demandInstance(scope)
  const { db } = scope.store
  const now = sql`request_counts where minute = date_trunc('minute', now())`
  const counted = await sql<{ total: number }>`select count(*) as total from ${now}`.execute(db)
  const { rows } = await sql<Omit<LimitItem, 'remaining'>>`
    with page as (
      select split_part(key, ':', 1) as kind, substr(key, strpos(key, ':') + 1) as id, used,
        minute + interval '1 minute' as reset_at, key
      from ${now} order by used desc, key limit ${query.size} offset ${query.page * query.size})
    select p.kind, p.id, p.used, p.reset_at,
      case p.kind when 'TEAM' then (select name from teams where id = p.id::uuid)
        when 'USER' then (select email from users where id = p.id::uuid)
        when 'FREE_TEAMS' then (select email from users where id = p.id::uuid)
        when 'WIDGET' then (select name from widgets where id = p.id::uuid) end as name,
      case ${sql.join(
        Object.entries(FIXED_LIMITS).map(
          ([kind, most]) => sql`when p.kind = ${sql.lit(kind)} then ${sql.lit(most)}`,
        ),
        sql` `,
      )} else coalesce(
        (select max(${PLAN_LIMIT}) from teams t where t.id in (
          select p.id::uuid where p.kind = 'TEAM'
          union all select team_id from widgets where p.kind = 'WIDGET' and id = p.id::uuid
          union all select team_id from members where p.kind = 'USER' and user_id = p.id::uuid)),
        ${sql.lit(PLAN_LIMITS.FREE)}) end as "limit"
    from page p order by p.used desc, p.key`.execute(db)
  const content = rows.map(({ kind, id, name, limit, used, resetAt }) => {
    // Requests that were added together with the last accepted one are stored too, beyond the limit.
    const taken = Math.min(used, limit)
    return { kind, id, name, limit, used: taken, remaining: limit - taken, resetAt }
  })
  return makePage(content, counted.rows[0]!.total, query)
}
