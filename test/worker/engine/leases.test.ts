import type { Client } from '@temporalio/client'
import { sql } from 'kysely'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { type Db, openDatabase } from '../../../db/connection.ts'
import { holdsLease } from '../../../db/operation/leases.ts'
import type { Store } from '../../../db/scope.ts'
import { startLeases } from '../../../worker/engine/leases.ts'
import { cloneDatabase, onServer } from '../../support/database.ts'
import { makeKeys } from '../../support/service.ts'
import { until } from '../../support/until.ts'

let database: Awaited<ReturnType<typeof cloneDatabase>>
/** Neither pool has more than one connection: the first is everybody's, the second the lease's. */
let shared: ReturnType<typeof openDatabase>
let own: ReturnType<typeof openDatabase>
/** The tests' own, so that they can look while the others are in use. */
let looking: ReturnType<typeof openDatabase>

beforeAll(async () => {
  database = await cloneDatabase()
  shared = openDatabase(database.url, { max: 1, name: 'shared' })
  own = openDatabase(database.url, { max: 1, name: 'own', timeoutMs: 2_000 })
  looking = openDatabase(database.url, { max: 1, name: 'looking' })
})

afterAll(async () => {
  await Promise.all([shared.close(), own.close(), looking.close()])
  await database.drop()
})

const keep = (db: Db): Store => ({ db, keys: makeKeys() })

/** Renews a lease in a database without executions, so that Temporal has nothing to say about a lost process. */
function startAlone(heard: string[] = []) {
  const processId = crypto.randomUUID()
  const log = pino({ level: 'info' }, { write: (line) => void heard.push(JSON.parse(line).msg) })
  const leases = startLeases({
    store: keep(shared.db),
    leaseStore: keep(own.db),
    client: {} as Client,
    processId,
    place: null,
    log,
  })
  return { processId, ...leases }
}

async function readLease(process: string): Promise<{ renewed: string; claimed: boolean } | undefined> {
  const { rows } = await sql<{ renewed: string; claimed: boolean }>`
    select renewed_at::text as renewed, claimed_at is not null as claimed
    from worker_leases where process = ${process}`.execute(looking.db)
  return rows[0]
}

async function addExpired(): Promise<string> {
  const process = crypto.randomUUID()
  await sql`insert into worker_leases (process, renewed_at)
    values (${process}, now() - interval '1 minute')`.execute(looking.db)
  return process
}

test('a lease is renewed while everybody waits for a connection of the pool', async () => {
  const connection = await shared.pool.connect()
  const { processId, stop } = startAlone()
  try {
    const first = await until(() => readLease(processId))
    await until(async () => (await readLease(processId))?.renewed !== first!.renewed)
  } finally {
    connection.release()
    await stop(true)
  }
  expect(await readLease(processId)).toBeUndefined()
})

test('after an outage of PostgreSQL, others have 10 s to renew their leases before they are lost', {
  tags: 'long',
}, async () => {
  const heard: string[] = []
  const { processId, knowsLost, stop } = startAlone(heard)
  await until(() => readLease(processId))
  const other = await addExpired()
  const [server, name] = [new URL(inject('databaseUrl')), new URL(database.url).pathname.slice(1)]
  server.pathname = '/postgres'
  const end = `select pg_terminate_backend(pid) from pg_stat_activity
    where datname = '${name}' and application_name = 'own'`
  const said = (text: string) => heard.filter((line) => line.includes(text)).length
  await onServer(server.href, `alter database ${name} set default_transaction_read_only = on`)
  await onServer(server.href, end)
  await until(() => said('could not be renewed') > 0)
  await onServer(server.href, `alter database ${name} reset default_transaction_read_only`)
  const back = Date.now()
  await until(() => said('is renewed again') > 0)
  expect(await readLease(other)).toMatchObject({ claimed: false })
  // An attempt of its calls that comes here meanwhile gives itself back.
  expect(await holdsLease(keep(looking.db), other, knowsLost())).toBe(true)
  await until(async () => (await readLease(other))?.claimed)
  // The last renewal may have failed a moment before, and the pause after it is 1 s.
  expect(Date.now() - back).toBeGreaterThan(8_000)
  expect([said('could not be renewed'), said('a process was lost')]).toEqual([1, 1])
  expect(await holdsLease(keep(looking.db), other, knowsLost())).toBe(false)
  await stop(true)
})
