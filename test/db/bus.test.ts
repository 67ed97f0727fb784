import { sql } from 'kysely'
import pg from 'pg'
import { afterEach, expect, test, vi } from 'vitest'
import { type Bus, openBus } from '../../db/bus.ts'
import { openDatabase } from '../../db/connection.ts'
import { createExposure } from '../../db/operation/exposure.ts'
import { createRuns } from '../support/engine/runs.ts'
import { keep } from '../support/keep.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'

/** pg warns only once in a process, so this listens before there is a connection. */
const warnings: string[] = []
process.on('warning', ({ message }) => warnings.push(message))

const service = await keep(startService())
const runs = createRuns(service)

const open: Bus[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((bus) => bus.stop()))
  // One that is stopped while it has no connection leaves its watches behind, for others to remove later.
  await service.store.db.deleteFrom('watches').execute()
})

function openOne(options: Partial<Parameters<typeof openBus>[1]> = {}): Bus {
  const bus = openBus(service.database.url, { name: 'own', ...options })
  open.push(bus)
  return bus
}

const watches = async () => {
  const rows = await service.store.db.selectFrom('watches').select('executionId').execute()
  return rows.map((row) => row.executionId)
}

const terminate = (name = 'own bus') =>
  sql`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and application_name = ${name}`.execute(service.store.db)

/** Opens a bus and waits until it is connected, which it shows by waking for errands. */
async function openConnected(options: Partial<Parameters<typeof openBus>[1]> = {}): Promise<Bus> {
  const bus = openOne(options)
  await new Promise<void>((resolve) => {
    const leave = bus.onErrands(() => {
      leave()
      resolve()
    })
  })
  return bus
}

test('what a process tells, all processes hear; after a lost connection each hears that it may have missed some', async () => {
  const heard: Record<string, (string | null)[]> = { one: [], two: [] }
  const one = openOne({ name: 'bus one' })
  const two = openOne({ name: 'bus two' })
  one.onTold((text) => heard.one!.push(text))
  two.onTold((text) => heard.two!.push(text))
  await vi.waitFor(() => expect(heard).toEqual({ one: [null], two: [null] }))
  one.tell("it's 'quoted'")
  await vi.waitFor(() =>
    expect(heard).toEqual({ one: [null, "it's 'quoted'"], two: [null, "it's 'quoted'"] }),
  )
  await terminate('bus two bus')
  await vi.waitFor(() => expect(heard.two).toEqual([null, "it's 'quoted'", null]), 10_000)
  expect(heard.one).toHaveLength(2)
})

test('what was committed before the time until which a bus has heard, it has heard', async () => {
  const bus = await openConnected()
  const heard: (string | null)[] = []
  bus.onTold((text) => heard.push(text))
  for (const text of ['1', '2', '3']) {
    await sql`select pg_notify('processes', ${text})`.execute(service.store.db)
    const committed = performance.now()
    await until(() => bus.heardUntil() >= committed)
    expect(heard).toContain(text)
  }
  // As after a sleep of the machine.
  vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 3_600_000)
  expect(bus.heardUntil()).toBe(Number.NEGATIVE_INFINITY)
  await until(() => bus.heardUntil() > 0)
  vi.restoreAllMocks()
  await bus.stop()
  expect(bus.heardUntil()).toBe(Number.NEGATIVE_INFINITY)
})

test('an exposure that one process notes is known to all, also to those that start or come back later', async () => {
  const noted: string[] = []
  const open = (name: string) =>
    createExposure({
      bus: openOne({ name }),
      isDecided: async () => false,
      onChange: (why) => noted.push(`${name}: ${why}`),
    })
  const [api, worker] = [open('exposed api'), open('exposed worker')]
  expect([api.why(), worker.why()]).toEqual([null, null])
  await vi.waitFor(async () => {
    const { rows } =
      await sql`select 1 from pg_stat_activity where application_name like 'exposed %'`.execute(
        service.store.db,
      )
    expect(rows).toHaveLength(2)
  })
  api.note('somebody came')
  api.note('another came')
  expect(api.why()).toBe('somebody came')
  await vi.waitFor(() => expect(worker.why()).toBe('somebody came'))
  const late = open('exposed late')
  await vi.waitFor(() => expect(late.why()).toBe('somebody came'))
  expect(noted.sort()).toEqual(
    ['exposed api', 'exposed late', 'exposed worker'].map((name) => `${name}: somebody came`),
  )
})

test('an exposure that is noted while PostgreSQL is away is told when it is back', async () => {
  const open = (name: string) =>
    createExposure({ bus: openOne({ name }), isDecided: async () => false, onChange: () => {} })
  const early = open('early')
  // Its connection does not stand yet.
  early.note('somebody came')
  const late = open('late')
  await vi.waitFor(() => expect(late.why()).toBe('somebody came'), 10_000)
})

test('a watch wakes for every change of its execution, and for no other execution', async () => {
  const bus = await openConnected()
  const [run, other] = [await runs.addRun(), await runs.addRun()]
  // Listens to PostgreSQL itself, because the bus also wakes if a transaction may have hidden a change.
  const notified: (string | undefined)[] = []
  const listener = new pg.Client({ connectionString: service.database.url })
  listener.on('notification', ({ payload }) => notified.push(payload))
  await listener.connect()
  await listener.query('listen run')
  const wake = vi.fn()
  const leave = await bus.watch(run, wake)
  expect(await watches()).toEqual([run])
  for (const [i, act] of [
    () => runs.setRun(run, { status: 'RUNNING' }),
    () => runs.setNode(run, 'a', 'RUNNING'),
    () => runs.setRun(run, {}),
    () => runs.setRun(run, { status: 'SUCCESS' }),
  ].entries()) {
    wake.mockClear()
    await act()
    await expect.poll(() => wake.mock.calls.length).toBeGreaterThan(0)
    await expect.poll(() => notified).toEqual(Array(i + 1).fill(run))
  }
  await runs.setRun(other, { status: 'RUNNING' })
  // A change of `checked_at` alone notifies nobody: the sweeper sets it on every execution now and then.
  await sql`update executions set checked_at = now() where id = ${run}`.execute(service.store.db)
  leave()
  wake.mockClear()
  await expect.poll(watches).toEqual([])
  await runs.setRun(run, {})
  await bus.watch(other, () => {})
  expect(wake).not.toHaveBeenCalled()
  // Notifications arrive before the result of a query.
  await listener.query('select')
  await listener.end()
  expect(notified).toEqual(Array(4).fill(run))
})

test('a bus whose connection is killed reconnects and misses no change', async () => {
  const lost = vi.fn()
  const bus = await openConnected({ onLost: lost })
  const run = await runs.addRun()
  const seen: string[] = []
  const read = async () => {
    const { status } = await service.store.db
      .selectFrom('executions')
      .select('status')
      .where('id', '=', run)
      .executeTakeFirstOrThrow()
    seen.push(status)
  }
  await bus.watch(run, () => void read())
  for (const status of ['RUNNING', 'SUCCESS']) {
    await terminate()
    await runs.setRun(run, { status })
    await expect.poll(() => seen).toContain(status)
  }
  expect(lost).toHaveBeenCalled()
  // The table is unlogged, so a crash of PostgreSQL empties it: reconnecting saves the watch again.
  expect(await watches()).toEqual([run])
})

test('a watch that begins while the database is away works once it is back', async () => {
  const bus = await openConnected()
  const run = await runs.addRun()
  await terminate()
  const wake = vi.fn()
  await bus.watch(run, wake)
  await expect.poll(watches).toEqual([run])
  wake.mockClear()
  await runs.setRun(run, { status: 'RUNNING' })
  await expect.poll(() => wake.mock.calls.length).toBeGreaterThan(0)
})

test('a change in a transaction that began before the watch wakes it once it is committed', async () => {
  const bus = await openConnected()
  const run = await runs.addRun()
  const { db, close } = openDatabase(service.database.url, { max: 1, name: 'slow' })
  const begun = Promise.withResolvers<void>()
  const commit = Promise.withResolvers<void>()
  const change = db.transaction().execute(async (tx) => {
    await runs.setRun(run, { status: 'RUNNING' }, tx)
    begun.resolve()
    await commit.promise
  })
  await begun.promise
  let status = ''
  const look = async () => {
    const found = await service.store.db
      .selectFrom('executions')
      .select('status')
      .where('id', '=', run)
      .execute()
    status = found[0]!.status
  }
  await bus.watch(run, () => void look())
  await look()
  expect(status).toBe('PENDING')
  commit.resolve()
  await change
  await expect.poll(() => status).toBe('RUNNING')
  await close()
})

test('errands that are due at once wake; those that their writer carries out itself do not', async () => {
  const bus = await openConnected()
  const wake = vi.fn()
  bus.onErrands(wake)
  const add = (kind: string, due: string) =>
    sql`insert into outbox (kind, subject_id, due_at) values (${kind}, ${crypto.randomUUID()}, now() + ${due}::interval)`.execute(
      service.store.db,
    )
  await add('START', '5 s')
  await add('SIGNAL', '0 s')
  await expect.poll(() => wake.mock.calls.length).toBe(1)
  await add('SIGNAL', '0 s')
  await expect.poll(() => wake.mock.calls.length).toBe(2)
})

test('the watches of a dead process expire; a process that slept saves its own again and wakes', async () => {
  const bus = await openConnected({ refreshMs: 30 })
  const run = await runs.addRun()
  const wake = vi.fn()
  await bus.watch(run, wake)
  const { db } = service.store
  const stale = { executionId: crypto.randomUUID(), watcher: crypto.randomUUID(), seenAt: new Date(0) }
  await db.insertInto('watches').values(stale).execute()
  await expect.poll(watches).toEqual([run])
  wake.mockClear()
  await db.deleteFrom('watches').execute()
  await expect.poll(watches).toEqual([run])
  await expect.poll(() => wake.mock.calls.length).toBeGreaterThan(0)
})

test('a bus that stops removes its watches and aborts `stopping`', async () => {
  const bus = await openConnected()
  const left = await watches()
  await bus.watch(await runs.addRun(), () => {})
  expect((await watches()).length).toBe(left.length + 1)
  await bus.stop()
  expect(bus.stopping.aborted).toBe(true)
  expect(await watches()).toEqual(left)
})

test('no query of the bus waits inside of its connection, which pg will no longer allow', async () => {
  const bus = await openConnected({ refreshMs: 5 })
  const ids = await Promise.all(Array.from({ length: 5 }, () => runs.addRun()))
  for (let round = 0; round < 5; round++) {
    const watched = ids.map((id) => bus.watch(id, () => {}))
    for (const id of ids) bus.tell(id)
    const leaves = await Promise.all(watched)
    for (const leave of leaves) leave()
  }
  await bus.watch(ids[0]!, () => {})
  await bus.stop()
  expect(await watches()).toEqual([])
  expect(warnings.filter((text) => text.includes('already executing a query'))).toEqual([])
})

test('a process that ends executions itself is woken in memory, and PostgreSQL learns of a wait only if it lasts', async () => {
  const [first, short, long] = [await runs.addRun(), await runs.addRun(), await runs.addRun()]
  const bus = await openConnected()
  // While transactions of others are open, PostgreSQL may wake more often than needed.
  const woken: Record<string, number> = { first: 0, short: 0, long: 0 }
  // As long as nothing has ended here, PostgreSQL is told at once, and what came before that is looked for.
  const leave = bus.watchEnd(first, () => woken.first!++)
  await vi.waitFor(() => expect(woken.first).toBeGreaterThan(0))
  expect(await watches()).toEqual([first])
  const before = woken.first!
  bus.tellEnd(first, true)
  expect(woken.first).toBe(before + 1)
  leave()
  await vi.waitFor(async () => expect(await watches()).toEqual([]))

  const leaveShort = bus.watchEnd(short, () => woken.short!++)
  const leaveLong = bus.watchEnd(long, () => woken.long!++)
  bus.tellEnd(short, true)
  leaveShort()
  expect(woken).toMatchObject({ short: 1, long: 0 })
  await vi.waitFor(() => expect(woken.long).toBeGreaterThan(0))
  expect(await watches()).toEqual([long])
  const wokenBefore = woken.long!
  await runs.setRun(long, { status: 'RUNNING' })
  await vi.waitFor(() => expect(woken.long).toBeGreaterThan(wokenBefore))
  leaveLong()
  await vi.waitFor(async () => expect(await watches()).toEqual([]))
})
