import pg from 'pg'
import { expect, test } from 'vitest'
import { edges } from '../../support/engine/graphs.ts'
import { startInstallation } from '../../support/engine/installation.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf } from '../../support/running.ts'

const host = await keep(startInstallation())
const database = new pg.Client({ connectionString: host.holder().addresses.databaseUrl })
database.on('error', () => {})
await database.connect()
await keep(Promise.resolve({ stop: () => database.end() }))

const patient = { timeout: 60_000 }

async function count(what: string): Promise<number> {
  const { rows } = await database.query(`select count(*)::int as n from ${what}`)
  return rows[0].n
}

/** A table, and a workflow that adds two rows to it. */
async function prepare(name: string) {
  const columns = [{ name: 'a', type: 'number' }]
  const body = { teamId: host.teamId, name, columns }
  const { id: table } = await host.ask<{ id: string }>('POST', '/api/tables', body)
  const workflow = await host.create({
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'add', type: 'DATA_TABLE', config: { table, operation: 'insert', rows: [{ a: 1 }, { a: 2 }] } },
    ],
    edges: edges('start -> add'),
  })
  return { table, workflow }
}

test('killed after the commit, the worker outputs the rows that were written when it is back', {
  tags: 'long',
}, async () => {
  const { table, workflow } = await prepare('after')
  // The commit takes a while, and goes on without the worker that has asked for it.
  await database.query(`create function rest() returns trigger language plpgsql as
    $$ begin perform pg_sleep(4); return null; end $$`)
  await database.query(`create constraint trigger rest after insert on message_notes
    deferrable initially deferred for each row execute function rest()`)
  const id = await host.execute(workflow)
  await expect.poll(() => count(`pg_stat_activity where wait_event = 'PgSleep'`), patient).toBe(1)
  const was = host.kill('service')
  await expect.poll(() => count(`data_rows where table_id = '${table}'`), patient).toBe(2)
  await database.query('drop trigger rest on message_notes')
  await host.recovered('service', was)
  const { status, outputData, retryCount } = nodeOf(await host.ended(id, 120_000), 'add')
  const written = await database.query('select id from data_rows where table_id = $1 order by id', [table])
  expect(written.rows).toHaveLength(2)
  expect(status).toBe('SUCCESS')
  expect(retryCount).toBeGreaterThan(0)
  const { rows } = outputData as { rows: { id: string }[] }
  expect(rows.map((row) => row.id)).toEqual(written.rows.map((row) => row.id))
})

test('killed before the commit, the worker writes the rows when it is back, once', {
  tags: 'long',
}, async () => {
  const { table, workflow } = await prepare('before')
  await database.query('begin')
  await database.query('lock table message_notes in share mode')
  const id = await host.execute(workflow)
  const waiting = `pg_locks where relation = 'message_notes'::regclass and not granted`
  await expect.poll(() => count(waiting), patient).toBeGreaterThan(0)
  const was = host.kill('service')
  await database.query(
    `select pg_terminate_backend(pid) from pg_locks where relation = 'message_notes'::regclass and not granted`,
  )
  await database.query('rollback')
  await host.recovered('service', was)
  expect(nodeOf(await host.ended(id, 120_000), 'add').status).toBe('SUCCESS')
  expect(await count(`data_rows where table_id = '${table}'`)).toBe(2)
})
