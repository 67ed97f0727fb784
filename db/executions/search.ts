import { type RawBuilder, sql } from 'kysely'
import { LRUCache } from 'lru-cache'
import { perDatabase } from '../cache.ts'
import { isShownTo } from '../chat/privacy.ts'
import { type Db, readSnapshot } from '../connection.ts'
import { inLine } from '../operation/lines.ts'
import { containing } from '../page.ts'
import type { Scope } from '../scope.ts'

/** How long a search looks back, from the newest executions on, and how many it finds at most. */
const SEARCH_MS = 1_000
const MOST_FOUND = 1_000

/** One statement looks at this many executions, or at fewer if their inputs together have this many bytes. */
const FIRST_ROWS = 500
const ROWS = 8_000
const BYTES = 4_000_000
const STATEMENT_MS = 2_000

/** PostgreSQL's query_canceled. */
const QUERY_CANCELED = '57014'

/** How many searches a process makes at once: of a team, and of all. They leave connections to everything else. */
const OF_TEAM = 2
const AT_ONCE = 4

/** What took longer than this is not looked for again for the pages after the first, within ten seconds. */
const LONG_MS = 200
const foundOf = perDatabase(() => new LRUCache<string, FoundMatches>({ max: 200, ttl: 10_000 }))

/** The place of an execution in the list; `at` is in milliseconds since 1970. */
type MatchPlace = { at: number; id: string }

/**
 * The executions that were found, the newest first. Those created before `searchedFrom` were not looked at; null if all
 * were.
 */
export type FoundMatches = { ids: string[]; searchedFrom: Date | null }
type MatchesInPart = { found: MatchPlace[]; searchedFrom: Date | null }

/**
 * Whose executions are looked at, and which: `where` is on `executions e`, and an index has it; `span` is the part of it that
 * is about the time.
 */
type Among = { teamId: string; where: RawBuilder<unknown>; span: RawBuilder<unknown>; key: string }

/**
 * Finds the newest executions that have a text in their id, workflow's name, error or input, and that a trigger started:
 * at most 1,000, and as far back as one gets in a second; if only a trigger is asked for, however old they are. One whose id is the text, or begins with it, is found however
 * old it is. What chats hide from the caller, they do not find by it.
 */
export async function searchExecutions(
  scope: Scope,
  { teamId, where, span, key: among }: Among,
  asked: { search?: string | undefined; trigger?: string | undefined; page: number },
): Promise<FoundMatches> {
  const { db } = scope.store
  const found = foundOf(db)
  const key = JSON.stringify([
    teamId,
    among,
    asked.search,
    asked.trigger,
    scope.actor.id,
    scope.roles.get(teamId),
  ])
  const known = asked.page > 0 && found.get(key)
  if (known) return known
  const finish = (result: FoundMatches, began: number) => {
    if (performance.now() - began > LONG_MS) found.set(key, result)
    return result
  }
  const look = async () => {
    const began = performance.now()
    if (!asked.search && asked.trigger !== undefined)
      return finish(await findStarted(db, { teamId, where, span }, asked.trigger), began)
    const all = sql`${where} and ${asked.trigger === undefined ? sql`true` : sql`e.trigger = ${asked.trigger}`}`
    const { found: seen, searchedFrom } = await lookBack(db, where, fits(scope, teamId, asked))
    const places = new Map([...seen, ...(await findById(db, all, asked.search))].map((one) => [one.id, one]))
    const sorted = [...places.values()].sort((a, b) => b.at - a.at || (a.id < b.id ? 1 : -1))
    return finish({ ids: sorted.map(({ id }) => id), searchedFrom }, began)
  }
  return inLine(db, `search ${teamId}`, OF_TEAM, () => inLine(db, 'search', AT_ONCE, look))
}

/**
 * Finds the newest executions that a trigger has started, however old. The index has all that is asked for; without the fence
 * of `offset 0`, PostgreSQL may read the rows by another one.
 */
async function findStarted(
  db: Db,
  { teamId, where, span }: Omit<Among, 'key'>,
  trigger: string,
): Promise<FoundMatches> {
  const { rows } = await sql<MatchPlace>`
    select id, (extract(epoch from created_at) * 1000)::float8 as at from (
      select id, team_id, workflow_id, status, created_at from executions e
      where e.team_id = ${teamId} and e.trigger = ${trigger} and ${span}
      order by created_at desc, id desc offset 0) e
    where ${where} limit ${MOST_FOUND + 1}`.execute(db)
  const end = rows.length > MOST_FOUND ? rows[MOST_FOUND - 1] : undefined
  // As for a search: some of the same millisecond may have been left out.
  const searchedFrom = end ? new Date(end.at + 1) : null
  return { ids: rows.slice(0, MOST_FOUND).map(({ id }) => id), searchedFrom }
}

/** Whether an execution `e` is one of those that are looked for. */
function fits(
  scope: Scope,
  teamId: string,
  { search, trigger }: { search?: string | undefined; trigger?: string | undefined },
): RawBuilder<unknown> {
  const started = trigger === undefined ? sql`true` : sql`e.trigger = ${trigger}`
  if (!search) return started
  // ASCII has the same letters in every collation, and "C" is by far the fastest.
  const collation = /^[\x20-\x7e]*$/.test(search) ? sql`collate "C"` : sql``
  const has = (text: RawBuilder<unknown>, part: string) =>
    sql`(${text}) ${collation} ilike ${containing(part)}`
  // The parts are joined by a character that is not searched for: to look once at a long text is faster than at three
  // short ones.
  const known = sql`e.workflow_name || chr(1) || e.id::text`
  const said = sql`coalesce(chr(1) || e.error_message, '') || chr(1) || e.input_data::text`
  const shown = isShownTo(scope, teamId, 'e')
  // A text within the input is stored as JSON writes it.
  const written = JSON.stringify(search).slice(1, -1)
  const asWritten =
    written === search ? sql`false` : sql`(${shown} and ${has(sql`e.input_data::text`, written)})`
  return sql`${started} and (${has(sql`${known} || case when ${shown} then ${said} else '' end`, search)}
    or ${asWritten})`
}

const ID = 'xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx'
const MOST_NAMED = 100

/** Those whose ids are the text or begin with it, if it has eight digits or more: their index knows them, however old. */
async function findById(db: Db, where: RawBuilder<unknown>, search = ''): Promise<MatchPlace[]> {
  const text = search.trim().toLowerCase()
  const fill = (digit: string) => text + ID.slice(text.length).replaceAll('x', digit)
  if (text.length < 8 || !/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(fill('0'))) return []
  const { rows } = await sql<MatchPlace>`
    select id, (extract(epoch from created_at) * 1000)::float8 as at from (
      select * from executions where id >= ${fill('0')}::uuid and id <= ${fill('f')}::uuid
      order by id desc limit 10000) e
    where ${where} limit ${MOST_NAMED}`.execute(db)
  return rows
}

/** Looks at the executions from the newest one back, statement by statement, until the time is over. */
async function lookBack(
  db: Db,
  where: RawBuilder<unknown>,
  fit: RawBuilder<unknown>,
): Promise<MatchesInPart> {
  const until = performance.now() + SEARCH_MS
  const found: MatchPlace[] = []
  /** The last one that was looked at. Before the first statement none was. */
  let last = { at: Date.now(), id: '' }
  let whole = false
  try {
    await readSnapshot(db).execute(async (tx) => {
      await sql`select set_config('statement_timeout', ${String(STATEMENT_MS)}, true)`.execute(tx)
      let after: MatchPlace | undefined
      for (let rows = FIRST_ROWS; !whole && found.length <= MOST_FOUND; rows = Math.min(2 * rows, ROWS)) {
        if (performance.now() > until) return
        const looked = await lookAt(tx, where, fit, after, rows)
        found.push(...looked.found)
        whole = looked.whole
        last = after = looked.last ?? last
      }
    })
  } catch (error) {
    // A statement took too long: the earlier results are kept.
    if ((error as { code?: string }).code !== QUERY_CANCELED) throw error
  }
  const cut = found.length > MOST_FOUND
  const end = cut ? found[MOST_FOUND - 1]! : last
  // Some of those created in the same millisecond may not have been looked at.
  const searchedFrom = whole && !cut ? null : new Date(end.at + 1)
  return { found: found.slice(0, MOST_FOUND), searchedFrom }
}

/** Looks at the next executions: at `rows` of them, or until their inputs have BYTES together, but at one at least. */
async function lookAt(
  tx: Db,
  where: RawBuilder<unknown>,
  fit: RawBuilder<unknown>,
  after: MatchPlace | undefined,
  rows: number,
): Promise<{ found: MatchPlace[]; last: MatchPlace | undefined; whole: boolean }> {
  const older = after
    ? sql`(e.created_at, e.id) < (${new Date(after.at)}::timestamptz, ${after.id}::uuid)`
    : sql`true`
  // An input that does not fit in here is not even fetched: it may be megabytes, elsewhere.
  const { rows: looked } = await sql<MatchPlace & { fit: boolean; n: number; fetched: number }>`
    with near as materialized (
      select id, (extract(epoch from created_at) * 1000)::float8 as at, n,
        case when before < ${BYTES} or n = 1 then coalesce((${fit}), false) end as fit
      from (
        select *, row_number() over placed as n,
          sum(input_bytes) over (placed rows unbounded preceding) - input_bytes as before
        from (
          select * from executions e where ${where} and ${older}
          order by e.created_at desc, e.id desc limit ${rows}) newest
        window placed as (order by created_at desc, id desc)) e)
    select id, at, fit, n, fetched from near,
      (select count(*) as fetched, max(n) filter (where fit is not null) as seen from near) all_near
    where fit or n = seen order by n`.execute(tx)
  const last = looked.at(-1)
  const place = ({ at, id }: MatchPlace) => ({ at, id })
  return {
    found: looked.filter((one) => one.fit).map(place),
    last: last && place(last),
    whole: !last || (last.n === last.fetched && last.fetched < rows),
  }
}
