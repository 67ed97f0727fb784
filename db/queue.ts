import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { type RawBuilder, sql } from 'kysely'
import { write } from './change.ts'
import type { Tx } from './connection.ts'
import type { Store } from './scope.ts'

type Sql = RawBuilder<unknown>

/**
 * A table whose rows processes claim to work on them. A claim moves the time from which a row is due: if the process dies,
 * the row is due again when its lease ends. With a token, only the process with the latest claim can change the row.
 */
export type Queue = {
  table: string
  /** The column with the key. */
  id: string
  /** Which rows are not settled, written as in the table's indexes. In all parts of a statement the table is `q`. */
  open: Sql
  /** The column with the time from which a row is due. */
  due: string
  /** The column with the end of a claim, if that is not `due`. */
  until?: string
  token?: 'claim' | 'lease'
  /** The column that counts the claims, if they are counted. */
  tries?: string
  /** Assigns the time from which a row is due, if that is more than the column `due`. */
  setDue?: (time: Sql) => Sql
}

/** A row that a process has claimed, with the token if its queue has one. */
export type HeldRow = { id: string; claim?: string; lease?: string }

/** As SQL: the time in so many milliseconds, by the database's clock. */
export function later(ms: number) {
  return sql<Date>`(now() + ${ms} * interval '1 millisecond')`
}

/** As SQL: whether a time has come. Due times are rounded to milliseconds, so that `now` may lie half of one ahead. */
export function isDue(time: Sql) {
  return sql<boolean>`${time} <= now() + interval '500 microseconds'`
}

type FreeRows = { columns?: Sql; join?: Sql; which: Sql; order?: Sql; limit?: number }

/** A select that locks rows until the end of the transaction, and leaves out those that others have locked. */
export function selectFree(table: string, { columns, join, which, order, limit }: FreeRows) {
  return sql`select ${columns ?? sql`q.id`} from ${sql.table(table)} q ${join ?? sql``} where ${which}
    ${order ? sql`order by ${order}` : sql``} ${limit === undefined ? sql`` : sql`limit ${limit}`}
    for update of q skip locked`
}

type Turns = {
  limit: number
  /** How many a team may have at once, with those that it has by `busy`. */
  ofTeam: number
  busy?: ReadonlyMap<string, number>
  /** The number of rows from which the free ones are chosen: more than `limit` if others claim at the same time. */
  lookedAt?: number
  /** A condition besides that the row is open and due. */
  which?: Sql
}

/** Selects due rows for `claim`: the teams take turns, each with its rows in the order in which they are due. */
export function selectByTurns(queue: Queue, { limit, ofTeam, busy = new Map(), lookedAt, which }: Turns) {
  const { open } = queue
  const [table, id, due] = [sql.table(queue.table), sql.ref(`q.${queue.id}`), sql.ref(`q.${queue.due}`)]
  const chosen = selectFree(queue.table, {
    columns: id,
    join: sql`join next on next.row_id = ${id}`,
    which: sql`${open} and ${isDue(due)}`,
    order: sql`next.turn, next.due, ${id}`,
    limit,
  })
  return sql`
    with recursive ${selectTeams(queue)},
    held as (select * from unnest(${[...busy.keys()]}::uuid[], ${[...busy.values()]}::int[]) as h (team_id, count)),
    waiting as (
      select w.row_id, w.due, row_number() over (partition by t.team_id order by w.due, w.row_id) as turn
      from teams t left join held h on h.team_id = t.team_id cross join lateral (
        select ${id} as row_id, ${due} as due from ${table} q
        where q.team_id = t.team_id and ${open} and ${isDue(due)} and ${which ?? sql`true`}
        order by ${due}, ${id} limit greatest(0, ${ofTeam}::int - coalesce(h.count, 0))) w),
    next as materialized (
      select row_id, turn, due from waiting order by turn, due, row_id limit ${lookedAt ?? limit})
    ${chosen}`
}

/** As part of a `with recursive`: `teams`, each read from the index in one step, so that many rows of one cost nothing. */
export function selectTeams({ table, open }: Queue) {
  return sql`teams as (
      (select q.team_id from ${sql.table(table)} q where ${open} order by q.team_id limit 1)
      union all
      select (select q.team_id from ${sql.table(table)} q where ${open} and q.team_id > t.team_id
        order by q.team_id limit 1)
      from teams t where t.team_id is not null)`
}

/** Claims the rows that `chosen` selects, for `leaseMs`. Assigns `set` too, and returns the columns of `returning`. */
export async function claim<T>(
  tx: Tx,
  queue: Queue,
  { chosen, leaseMs, set, returning }: { chosen: Sql; leaseMs: number; set?: Sql; returning: Sql },
): Promise<T[]> {
  const changes = [hold(queue, leaseMs)]
  if (queue.tries) changes.push(sql`${sql.ref(queue.tries)} = ${sql.ref(queue.tries)} + 1`)
  if (queue.token) changes.push(sql`${sql.ref(queue.token)} = ${randomUUID()}`)
  // An array is computed once, and its few rows are found by the index of the key.
  const { rows } = await sql<T>`update ${sql.table(queue.table)} q set ${list(changes, set)}
    where ${sql.ref(`q.${queue.id}`)} = any(array(${chosen})) returning ${returning}`.execute(tx)
  return rows
}

/**
 * Holds a row for `leaseMs` more. Resolves to false, and changes nothing, if the claim is lost, or the row is not
 * `where`.
 */
export function renew(
  tx: Tx,
  queue: Queue,
  held: HeldRow,
  leaseMs: number,
  { set, where }: { set?: Sql; where?: Sql } = {},
): Promise<boolean> {
  return updateHeld(tx, queue, held, list([hold(queue, leaseMs)], set), where)
}

/** Gives a row back, which is due again after `delayMs`. Resolves to false if the claim is lost. */
export function postpone(tx: Tx, queue: Queue, held: HeldRow, delayMs: number, set?: Sql): Promise<boolean> {
  return updateHeld(tx, queue, held, list([...release(queue), setDue(queue, later(delayMs))], set))
}

/** Ends the work on a row; `set` makes it one that is not open. Resolves to false if the claim is lost. */
export function settle(tx: Tx, queue: Queue, held: HeldRow, set: Sql): Promise<boolean> {
  return updateHeld(tx, queue, held, list(release(queue), set))
}

/** Changes a row that is held. Resolves to false if the claim is lost. */
export async function updateHeld(
  tx: Tx,
  queue: Queue,
  held: HeldRow,
  set: Sql,
  where: Sql = sql`true`,
): Promise<boolean> {
  const { table, open, token } = queue
  const id = sql.ref(`q.${queue.id}`)
  const isHeld = token ? sql`${sql.ref(`q.${token}`)} = ${held[token]}` : sql`true`
  const { rows } = await sql`update ${sql.table(table)} q set ${set}
    where ${id} = ${held.id} and ${isHeld} and ${open} and ${where} returning ${id}`.execute(tx)
  return rows.length > 0
}

function setDue(queue: Queue, time: Sql): Sql {
  return queue.setDue?.(time) ?? sql`${sql.ref(queue.due)} = ${time}`
}

function hold(queue: Queue, leaseMs: number): Sql {
  return queue.until ? sql`${sql.ref(queue.until)} = ${later(leaseMs)}` : setDue(queue, later(leaseMs))
}

function release({ token, until }: Queue): Sql[] {
  const columns = [token, until].filter((column) => column !== undefined)
  return columns.map((column) => sql`${sql.ref(column)} = null`)
}

function list(changes: Sql[], set: Sql | undefined): Sql {
  return sql.join(set ? [...changes, set] : changes)
}

const REST_MS = 20

/**
 * Deletes the rows that are `which`, in small statements with rests in between, at most `pieces` of them. Several processes
 * may do so. Stops early when `signal` is aborted. Returns how many it deleted.
 */
export async function purge(
  store: Pick<Store, 'db'>,
  table: string,
  query: { which: Sql; order?: Sql; piece: number; pieces?: number; signal?: AbortSignal | undefined },
): Promise<number> {
  const { which, order, piece, pieces = Number.POSITIVE_INFINITY, signal } = query
  const chosen = selectFree(table, { columns: sql`q.ctid`, which, ...(order && { order }), limit: piece })
  let purged = 0
  for (let done = 0; done < pieces && !signal?.aborted; done++) {
    if (done > 0) await pause(REST_MS)
    const { numAffectedRows = 0n } = await write(store, (tx) =>
      sql`delete from ${sql.table(table)} where ctid = any(array(${chosen}))`.execute(tx),
    )
    purged += Number(numAffectedRows)
    if (numAffectedRows < piece) break
  }
  return purged
}
