import { type RawBuilder, sql } from 'kysely'
import type { Db } from './connection.ts'
import { makePage, type Page, type PageRequest } from './page.ts'
import { demandInstance, type Scope, type Store } from './scope.ts'
import type { Plan } from './teams.ts'

/** Requests a minute by a team's plan; the least first. */
export const LIMITS = {
  FREE: 60,
  TEAM: 300,
  BUSINESS: 1_000,
  ENTERPRISE: 5_000,
} as const satisfies Record<Plan, number>

/** Of an address that sends no valid credentials. */
export const ADDRESS_LIMIT = 300

/** Who a request counts against. */
export type Counted = { kind: 'TEAM' | 'USER' | 'IP'; id: string }

/** What a request found: `used` of `limit` requests with itself, `resetAt` in Unix seconds, `wait` seconds until then. */
export type Count = { limit: number; used: number; resetAt: number; wait: number }

type Waiting = { resolve: (count: Count) => void; reject: (error: unknown) => void }

const lanes = new WeakMap<Db, Map<string, Waiting[]>>()

/**
 * Counts one request in the present clock minute, which is the database's. It is refused where `used` > `limit`;
 * refused ones are not kept. What comes for one caller while a count is under way goes together into the next,
 * each with its own number.
 */
export function countRequest(store: Store, counted: Counted): Promise<Count> {
  const open = lanes.get(store.db) ?? new Map<string, Waiting[]>()
  lanes.set(store.db, open)
  const key = `${counted.kind}:${counted.id}`
  return new Promise((resolve, reject) => {
    const waiting = open.get(key)
    if (waiting) waiting.push({ resolve, reject })
    else {
      open.set(key, [{ resolve, reject }])
      void countAll(store, counted, key, open)
    }
  })
}

async function countAll(
  store: Store,
  counted: Counted,
  key: string,
  open: Map<string, Waiting[]>,
): Promise<void> {
  for (let batch = open.get(key)!; batch.length > 0; batch = open.get(key)!) {
    open.set(key, [])
    try {
      const { most: limit, used, resetAt, wait } = await addCount(store, counted, key, batch.length)
      const before = used === null ? limit : used - batch.length
      for (const [i, { resolve }] of batch.entries()) resolve({ limit, used: before + i + 1, resetAt, wait })
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }
  open.delete(key)
}

/**
 * One statement, so that any number of processes may count at once. `used` is null where the minute was full. A text
 * without the word limit: those are prepared (db/connection.ts).
 */
async function addCount(store: Store, counted: Counted, key: string, n: number) {
  const { rows } = await sql<{ most: number; used: number | null; resetAt: number; wait: number }>`
    with bound as (select ${limitOf(counted)} as n),
      added as (
        insert into request_counts as c (key, minute, used) values (${key}, date_trunc('minute', now()), ${n})
        on conflict (key, minute) do update set used = c.used + excluded.used
          where c.used < (select n from bound)
        returning used)
    select (select n from bound) as most, (select used from added) as used,
      extract(epoch from date_trunc('minute', now()))::int + 60 as reset_at,
      ceil(60 - extract(epoch from now() - date_trunc('minute', now())))::int as wait`.execute(store.db)
  const row = rows[0]!
  if (row.resetAt !== purgedAt.get(store.db)) void purgeCounts(store, row.resetAt)
  return row
}

/** The limit as it is now: a changed plan counts from the next request on. */
function limitOf({ kind, id }: Counted): RawBuilder<number> {
  if (kind === 'IP') return sql`${sql.lit(ADDRESS_LIMIT)}`
  const plans =
    kind === 'TEAM'
      ? sql`teams t where t.id = ${id}`
      : sql`members m join teams t on t.id = m.team_id where m.user_id = ${id}`
  return sql`coalesce((select max(${PLAN_LIMIT}) from ${plans}), ${sql.lit(LIMITS.FREE)})`
}

const PLAN_LIMIT = sql<number>`case t.plan ${sql.join(
  Object.entries(LIMITS).map(([plan, limit]) => sql`when ${sql.lit(plan)} then ${sql.lit(limit)}`),
  sql` `,
)} end`

const purgedAt = new WeakMap<Db, number>()

// With the first request of a minute: where nobody asks, nothing grows.
async function purgeCounts(store: Store, resetAt: number): Promise<void> {
  purgedAt.set(store.db, resetAt)
  await sql`delete from request_counts where minute < now() - interval '5 minutes'`
    .execute(store.db)
    .catch(() => {})
}

export type LimitItem = {
  kind: Counted['kind']
  id: string
  /** The team's name, the user's e-mail. */
  name: string | null
  limit: number
  used: number
  remaining: number
  resetAt: Date
}

/** What this minute's requests count against, the busiest first. For the instance's admin, else FORBIDDEN. */
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
        when 'USER' then (select email from users where id = p.id::uuid) end as name,
      case when p.kind = 'IP' then ${sql.lit(ADDRESS_LIMIT)} else coalesce(
        (select max(${PLAN_LIMIT}) from teams t where t.id in (
          select p.id::uuid where p.kind = 'TEAM'
          union all select team_id from members where p.kind = 'USER' and user_id = p.id::uuid)),
        ${sql.lit(LIMITS.FREE)}) end as "limit"
    from page p order by p.used desc, p.key`.execute(db)
  const content = rows.map(({ kind, id, name, limit, used, resetAt }) => {
    // What came in one go with the last that was admitted is kept too.
    const taken = Math.min(used, limit)
    return { kind, id, name, limit, used: taken, remaining: limit - taken, resetAt }
  })
  return makePage(content, counted.rows[0]!.total, query)
}
