import { Writable } from 'node:stream'
import { sql } from 'kysely'
import { pino } from 'pino'
import { v7 as uuid } from 'uuid'
import { afterAll, expect, test, vi } from 'vitest'
import { nameSchedule } from '../../../activities/schedules/schedules.ts'
import { readZoneRules } from '../../../activities/schedules/zonedata.ts'
import { openPayload } from '../../../activities/temporal/codec.ts'
import { rebuildExecution } from '../../../activities/temporal/rebuild.ts'
import { openSealer } from '../../../activities/temporal/sealer.ts'
import { nameFiring } from '../../../db/schedules/schedules.ts'
import { createForger, plain, sealFor } from '../../support/engine/forger.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'
import { startTarget } from '../../support/servers/target.ts'
import { makeKeys } from '../../support/service.ts'
import { until } from '../../support/until.ts'

const NOT_BOUND = 'it is not bound to a run, as it should be in a run that began this late'

/** Why payloads were refused. Other tests forge in the same namespace, and the sweeper comes across what they do. */
const refusals: string[] = []
const ours = new Set<string>()
const log = pino(
  { level: 'warn' },
  new Writable({
    write(line, _, done) {
      const { msg, workflowId, reason } = JSON.parse(String(line))
      const isOurs = ours.has(workflowId) || workflowId?.includes(running.taskQueue)
      if (msg === 'a payload in Temporal is refused' && isOurs) refusals.push(reason)
      done()
    },
  }),
)

const target = await startTarget()
const running = await keep(startRunning({ log }))
afterAll(() => target.stop())
const { db } = running.store
const forger = createForger(running.engine)

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
const call = { id: 'call', type: 'HTTP_REQUEST', config: { method: 'POST', url: `${target.url}/flaky?key=` } }
/** Waits, then calls something that succeeds at the third attempt, in a loop. */
const long = (key: string) => ({
  nodes: [
    start,
    { id: 'paid', type: 'WAIT_FOR_EVENT', config: { name: 'paid' } },
    { id: 'each', type: 'FOR_EACH', config: { items: '{{ [1, 2] }}' } },
    {
      ...call,
      parentId: 'each',
      config: { ...call.config, url: `${call.config.url}${key}` },
      retry: { maxAttempts: 5, initialIntervalMs: 1 },
    },
  ],
  edges: edges('start -> paid', 'paid -> each'),
})
const ticking = {
  nodes: [
    { id: 'tick', type: 'SCHEDULE_TRIGGER', config: { cron: '0 0 1 1 *' } },
    { id: 'set', type: 'SET', config: { values: { at: '{{ $trigger.scheduledAt }}' } } },
  ],
  edges: edges('tick -> set'),
}

async function startWaiting(key: string): Promise<string> {
  const id = await running.execute(await running.create(long(key)))
  ours.add(id)
  await running.until(id, (run) => run.nodeExecutions.some(({ nodeId }) => nodeId === 'paid'))
  return id
}
const pay = (id: string) => running.ask('POST', `/api/executions/${id}/events/paid`, { amount: 5 })
const versionOf = async (id: string) => (await forger.readInput(id)).data![0]

/** The revision of schedules whose arguments are bound. */
const BOUND = String(new Date().getUTCFullYear() * 1_000_000 + readZoneRules())

const digestOf = async (workflowId: string) => {
  const row = await db.selectFrom('schedules').select('digest').where('workflowId', '=', workflowId)
  return (await row.executeTakeFirst())?.digest.split('.')[0]
}

/** Makes the slot of a year fire, and returns the status of its execution once that has ended. */
async function fire(workflowId: string, year: number): Promise<string> {
  const at = Date.UTC(year)
  const name = nameSchedule(running.taskQueue, workflowId, 'tick')
  const span = { start: new Date(at - 1_000), end: new Date(at + 1_000) }
  await forger.client.schedule.getHandle(name).backfill([span])
  const id = nameFiring(workflowId, 'tick', new Date(at).toISOString())
  await until(async () => (await running.request(`/api/executions/${id}`, { as: running.admin })).ok)
  const { status } = await running.ended(id)
  const firing = forger.client.workflow.getHandle(`${name}-${year}-01-01T00:00:00Z`)
  await until(async () => (await firing.describe()).status.name === 'COMPLETED')
  return status
}

test('runs and schedules of the release before go on over the upgrade; what begins after it is bound', {
  tags: 'long',
}, async () => {
  const endOf = (id: string) =>
    forger.client.workflow
      .getHandle(id)
      .result()
      .then(() => 'COMPLETED')
      .catch(() => 'FAILED')

  // Two processes, as they were before anybody bound payloads.
  await running.engine.stop()
  await sql`delete from seal_versions`.execute(db)
  const before = await running.addEngine({ binds: false })
  running.use(before)
  const ended = await running.run({ nodes: [start, call], edges: edges('start -> call') })
  ours.add(ended.id)
  const inFlight = await startWaiting('inFlight')
  expect(await versionOf(inFlight)).toBe(1)
  const workflowId = await running.create(ticking)
  await running.ask('PUT', `/api/workflows/${workflowId}`, { active: true })
  await until(async () => (await digestOf(workflowId)) === '1')
  expect(await fire(workflowId, 2001)).toBe('SUCCESS')

  // The first process that binds. The other one opens what it seals, and leaves its schedules alone.
  const first = await running.addEngine({ binds: true })
  running.use(first)
  const mixed = await startWaiting('mixed')
  expect(await versionOf(mixed)).toBe(2)
  await first.reconcile()
  expect(await digestOf(workflowId)).toBe(BOUND)
  const { since } = await db.selectFrom('sealVersions').select('since').executeTakeFirstOrThrow()
  expect(since.getTime()).toBeGreaterThan(Date.now() + 60_000)
  running.use(before)
  await before.reconcile()
  expect(await digestOf(workflowId)).toBe(BOUND)
  await pay(mixed)
  expect((await running.ended(mixed)).status).toBe('SUCCESS')
  expect(await fire(workflowId, 2002)).toBe('SUCCESS')

  // The time of the upgrade is over: this process is told by the database alone.
  await Promise.all([before.stop(), first.stop()])
  await sql`update seal_versions set since = now()`.execute(db)
  const after = await running.addEngine({ binds: false })
  running.use(after)
  expect(refusals).toEqual([])
  await pay(inFlight)
  expect((await running.ended(inFlight)).status).toBe('SUCCESS')
  const deps = { store: running.store, client: after.client, sealer: after.sealer }
  expect(await rebuildExecution(deps, ended.id)).toBe(ended.status)
  expect(await running.read(ended.id)).toEqual(ended)
  expect(await fire(workflowId, 2003)).toBe('SUCCESS')
  expect(await fire(workflowId, 2004)).toBe('SUCCESS')
  expect(refusals).toEqual([])

  // A run that begins now gets nothing that was sealed before.
  const late = await startWaiting('late')
  expect(await versionOf(late)).toBe(2)
  await forger.signal(late, [await sealFor(before.sealer, late, 'paid#')])
  await until(() => refusals.length === 1)
  const stranger = uuid()
  ours.add(stranger)
  await forger.start(stranger, running.taskQueue, 'runGraph', await forger.readInput(ended.id))
  expect(await endOf(stranger)).toBe('FAILED')
  const name = nameSchedule(running.taskQueue, workflowId, 'tick')
  const firing = { workflowId, nodeId: 'tick', cron: '0 0 1 1 *', timezone: 'UTC' }
  const future = `${name}-2999-01-01T00:00:00Z`
  await forger.start(future, running.taskQueue, 'fire', await sealFor(before.sealer, future, firing))
  expect(await endOf(future)).toBe('FAILED')
  const memo = 'it is not sealed'
  expect(new Set(refusals)).toEqual(new Set([memo, NOT_BOUND]))

  // What was sealed before is opened in the firing of a time before, but not for another schedule.
  const past = `${name}-1999-01-01T00:00:00Z`
  const wrong = await sealFor(before.sealer, past, { ...firing, nodeId: 'tock' })
  await forger.start(past, running.taskQueue, 'fire', wrong)
  expect(await endOf(past)).toBe('FAILED')
  await pay(late)
  expect((await running.ended(late)).status).toBe('SUCCESS')
  await running.ask('PUT', `/api/workflows/${workflowId}`, { active: false })
})

test('a key that another process has is waited for; one that nobody has is refused', async () => {
  const place = { namespace: 'default', workflowId: uuid() }
  const with2 = { db, keys: { current: 'k2', byId: makeKeys().byId } }
  with2.keys.byId = new Map([['k2', with2.keys.byId.get('k1')!]])
  const options = { binds: true, log, watches: false }
  const open = (payload: Awaited<ReturnType<typeof sealFor>>) => openPayload(own, place, payload)
  const own = await openSealer({ store: running.store, ...options })
  const sealed = await sealFor({ ...own, keys: with2.keys }, place.workflowId, 'psst')
  expect(String((await open(sealed)).data)).toContain('a key that is not ours')
  const other = await openSealer({ store: with2, ...options })
  const again = await openSealer({ store: running.store, ...options })
  await expect(openPayload(again, place, sealed)).rejects.toThrow('PERDURE_KEYS has no key k2')
  expect(await openPayload(other, place, sealed)).toMatchObject(plain('psst'))
})

test('a process that does not bind by itself does so once another one has noted the time', async () => {
  await sql`delete from seal_versions`.execute(db)
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  try {
    const told = await openSealer({ store: running.store, binds: false, log })
    const teller = await openSealer({ store: running.store, binds: true, log })
    expect([told.binds(), teller.binds()]).toEqual([false, true])
    expect(await told.mayBeUnbound(uuid())).toBe(true)
    await told.settle()
    await teller.settle()
    vi.advanceTimersByTime(15_000)
    await until(() => told.binds())
    expect(await told.mayBeUnbound(uuid())).toBe(false)
    expect(vi.getTimerCount()).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})
