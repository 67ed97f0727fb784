import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { record } from '../../db/change.ts'
import { isDatabaseAway, openDatabase } from '../../db/connection.ts'
import { cloneDatabase, endUnnoticed, onServer } from '../support/database.ts'
import { makeKeys } from '../support/service.ts'

let database: Awaited<ReturnType<typeof cloneDatabase>>
let opened: ReturnType<typeof openDatabase>

beforeAll(async () => {
  database = await cloneDatabase()
  // One connection, so that each statement below sees what the others left on it.
  opened = openDatabase(database.url, { max: 1, name: 'test' })
})

afterAll(async () => {
  await opened.close()
  await database.drop()
})

async function listPrepared(): Promise<string[]> {
  const { rows } = await sql<{ statement: string }>`select statement from pg_prepared_statements`.execute(
    opened.db,
  )
  return rows.map(({ statement }) => statement)
}

test('a statement is prepared once and executed with different values', async () => {
  const add = (n: number) => sql<{ sum: number }>`select ${n}::int + 1 as sum`.execute(opened.db)
  for (const n of [1, 2, 3]) expect((await add(n)).rows).toEqual([{ sum: n + 1 }])
  expect(await listPrepared()).toEqual(['select $1::int + 1 as sum'])
})

test('a statement with a limit is not prepared: it is planned with its values each time', async () => {
  await opened.db.selectFrom('teams').select('id').where('name', '=', 'a').limit(1).execute()
  expect((await listPrepared()).join()).not.toContain('limit')
})

test('a statement that fails does not affect the next one', async () => {
  const divide = (n: number) => sql<{ of: number }>`select 6 / ${n}::int as of`.execute(opened.db)
  await expect(divide(0)).rejects.toThrow('division by zero')
  expect((await divide(2)).rows).toEqual([{ of: 3 }])
  await expect(sql`select nothing from nowhere where a = ${1}`.execute(opened.db)).rejects.toThrow('nowhere')
  await expect(sql`select nothing from nowhere where a = ${1}`.execute(opened.db)).rejects.toThrow('nowhere')
  expect((await divide(3)).rows).toEqual([{ of: 2 }])
})

test('a prepared statement still works after its table has changed', async () => {
  const read = () => sql<{ v: unknown }>`select v from moving where ${true}`.execute(opened.db)
  await sql`create table moving (v int)`.execute(opened.db)
  await sql`insert into moving values (1)`.execute(opened.db)
  expect((await read()).rows).toEqual([{ v: 1 }])
  await sql`alter table moving add column w text`.execute(opened.db)
  await sql`create index on moving (v)`.execute(opened.db)
  expect((await read()).rows).toEqual([{ v: 1 }])
})

const double = (value: unknown, on = opened.db) =>
  sql<{ of: number }>`select 2 * ${value}::int as of`.execute(on).then(({ rows }) => rows[0]!.of)
const readPid = async () =>
  (await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(opened.db)).rows[0]!.pid

/** As a string that is too long for V8: thrown while pg binds the parameters. */
const unbindable = {
  toPostgres() {
    throw new RangeError('Invalid string length')
  },
}

test('a statement that cannot be bound fails alone: others that share its name and connection do not', async () => {
  expect(await double(1)).toBe(2)
  const before = await readPid()
  await expect(double(unbindable)).rejects.toMatchObject({
    code: 'STATEMENT_NOT_BUILT',
    cause: { message: 'Invalid string length' },
  })
  expect(await double(2)).toBe(4)
  expect(await readPid()).not.toBe(before)
  // The same where the statement was not known before, and in a transaction.
  const rare = (value: unknown) => sql`select 'rare', ${value}::text`.execute(opened.db)
  await expect(rare(unbindable)).rejects.toThrow('could not be built')
  await rare('a')
  const inside = opened.db.transaction().execute(async (tx) => {
    expect(await double(3, tx)).toBe(6)
    return double(unbindable, tx)
  })
  await expect(inside).rejects.toThrow('could not be built')
  expect(await double(4)).toBe(8)
})

test('a prepared statement that the connection has lost is executed on another one', async () => {
  const forget = () => sql`deallocate all`.execute(opened.db)
  expect(await double(1)).toBe(2)
  await forget()
  expect(await double(2)).toBe(4)
  // A transaction fails as a whole, and a door of change.ts begins it anew.
  await forget()
  await expect(opened.db.transaction().execute((tx) => double(3, tx))).rejects.toMatchObject({
    code: '26000',
  })
  expect(await double(4)).toBe(8)
  await forget()
  expect(await record({ db: opened.db, keys: makeKeys() }, (tx) => double(5, tx))).toBe(10)
})

test('connections that were ended while nobody used them are handed out to nobody', async () => {
  const wide = openDatabase(database.url, { max: 10, name: 'wide' })
  await sql`create table noted (n int)`.execute(wide.db)
  try {
    for (let round = 1; round <= 3; round++) {
      await Promise.all(Array.from({ length: 10 }, () => sql`select pg_sleep(0.05)`.execute(wide.db)))
      endUnnoticed(database.url, 'wide')
      const many = Array.from({ length: 20 }, (_, n) => [
        double(n, wide.db),
        wide.db.transaction().execute((tx) => double(n, tx)),
        sql`insert into noted values (${n})`.execute(wide.db),
      ]).flat()
      const failed = (await Promise.allSettled(many)).filter(({ status }) => status === 'rejected')
      expect(failed).toEqual([])
      const { rows } = await sql<{ count: number }>`select count(*) from noted`.execute(wide.db)
      expect(rows[0]!.count).toBe(20 * round)
    }
  } finally {
    await wide.close()
  }
})

test('a lone statement passes by all connections of its pool that were ended', async () => {
  const wide = openDatabase(database.url, { max: 10, name: 'alone' })
  try {
    for (let round = 1; round <= 5; round++) {
      await Promise.all(Array.from({ length: 10 }, () => sql`select pg_sleep(0.05)`.execute(wide.db)))
      endUnnoticed(database.url, 'alone')
      expect(await double(round, wide.db)).toBe(2 * round)
    }
  } finally {
    await wide.close()
  }
})

test('a connection that is ended under a statement is not handed out once more', async () => {
  const before = await readPid()
  const slow = sql`select pg_sleep(60), ${1}::int`.execute(opened.db).catch((error) => error)
  await onServer(
    database.url,
    `do $$ begin
      while not exists (select 1 from pg_stat_activity where pid = ${before} and query like 'select pg_sleep%') loop
        perform pg_sleep(0.01); perform pg_stat_clear_snapshot();
      end loop;
    end $$`,
  )
  // The statement had begun, so it is not repeated.
  await onServer(database.url, `select pg_terminate_backend(${before})`)
  expect(await slow).toMatchObject({ code: '57P01' })
  expect(await double(1)).toBe(2)
})

test('where time is limited, a statement and a server that is not heard of any more are given up', async () => {
  const { hostname, port } = new URL(database.url)
  let isDeaf = false
  const sockets: Socket[] = []
  const proxy = createServer((near) => {
    const far = connect(Number(port || 5432), hostname)
    sockets.push(near, far)
    near.on('error', () => far.destroy()).pipe(far)
    far.on('error', () => near.destroy()).on('data', (data) => isDeaf || near.write(data))
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const url = new URL(database.url)
  url.host = `127.0.0.1:${(proxy.address() as AddressInfo).port}`
  const { db, close } = openDatabase(url.href, { max: 1, name: 'limited', timeoutMs: 500 })
  const fail = async (statement: Promise<unknown>) => {
    const error = await statement.then(
      () => undefined,
      (error: Error) => error,
    )
    return [error?.message, isDatabaseAway(error)]
  }
  try {
    const tooLong = 'canceling statement due to statement timeout'
    expect(await fail(sql`select pg_sleep(30)`.execute(db))).toEqual([tooLong, true])
    expect(await double(2, db)).toBe(4)
    isDeaf = true
    expect(await fail(double(2, db))).toEqual(['Query read timeout', true])
    const [message, isAway] = await fail(double(2, db))
    expect([message, isAway]).toEqual([expect.stringContaining('timeout'), true])
    isDeaf = false
    expect(await double(3, db)).toBe(6)
  } finally {
    await close()
    for (const socket of sockets) socket.destroy()
    proxy.close()
  }
})
