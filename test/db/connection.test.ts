import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDatabase } from '../../db/connection.ts'
import { cloneDatabase } from '../support/database.ts'

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
