import { sql } from 'kysely'
import { pino } from 'pino'
import { afterAll, expect, test } from 'vitest'
import { createApp } from '../../../api/app.ts'
import { openBus } from '../../../db/bus.ts'
import { edges } from '../../support/engine/graphs.ts'
import { createRuns } from '../../support/engine/runs.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'
import { type Ask, startService } from '../../support/service.ts'
import { until } from '../../support/until.ts'

// Without an engine: another process ends the executions, and only PostgreSQL tells of it.
const service = await keep(startService({ waiting: { ofPerson: 2 } }))
const runs = createRuns(service)
const host = await keep(startRunning())
const closing: (() => Promise<unknown>)[] = []
afterAll(async () => {
  for (const close of closing.reverse()) await close()
})

const wait = (run: string, how: string, init: Ask = {}) =>
  service.request(`/api/executions/${run}${how}`, { as: service.admin, ...init })
const isWatched = async (run: string) => {
  const found = await service.store.db
    .selectFrom('watches')
    .where('executionId', '=', run)
    .select('watcher')
    .execute()
  return found.length > 0
}
const isOpen = async (asked: Promise<unknown>) => (await Promise.race([asked, 'open'])) === 'open'

/** An API on the same database, as in another process. */
function addProcess() {
  const bus = openBus(service.database.url, { name: 'another' })
  closing.push(() => bus.stop())
  const app = createApp({
    store: service.store,
    bus,
    log: pino({ level: 'silent' }),
    publicUrl: 'http://127.0.0.1:3000',
    isReady: async () => ({ database: true, temporal: true, worker: true }),
    carryOut: async () => false,
  })
  return { app, bus }
}

async function addOpenRun(): Promise<string> {
  const run = await runs.addRun()
  await runs.setRun(run, { status: 'RUNNING' })
  return run
}

test('the response comes when the execution ends, whoever ends it, not before', async () => {
  const run = await addOpenRun()
  const asked = wait(run, '?waitMs=60000')
  await until(() => isWatched(run))
  // A change that is not the end ends no wait.
  await runs.setNode(run, 'a', 'RUNNING')
  expect(await isOpen(asked)).toBe(true)
  await runs.setRun(run, { status: 'SUCCESS' })
  const answer = await asked
  expect([answer.status, await answer.json()]).toEqual([
    200,
    expect.objectContaining({ id: run, status: 'SUCCESS' }),
  ])
  await until(async () => !(await isWatched(run)))
  // What has ended already is shown at once.
  expect((await wait(run, '?waitMs=60000')).status).toBe(200)
})

test('at the limit, the response shows the execution as it is', async () => {
  const run = await addOpenRun()
  const answer = await wait(run, '?waitMs=30')
  expect([answer.status, (await answer.json()) as unknown]).toMatchObject([200, { status: 'RUNNING' }])
})

test('Prefer: wait does the same, in seconds, and the response confirms it', async () => {
  const run = await addOpenRun()
  const asked = wait(run, '', { headers: { prefer: 'respond-async, wait="60"; x=1' } })
  await until(() => isWatched(run))
  await runs.setRun(run, { status: 'FAILED' })
  const answer = await asked
  expect([
    answer.headers.get('preference-applied'),
    ((await answer.json()) as { status: string }).status,
  ]).toEqual(['wait=60', 'FAILED'])
  const applied = async (prefer: string, how = '') =>
    (await wait(run, how, { headers: { prefer } })).headers.get('preference-applied')
  expect(await applied('wait=3600')).toBe('wait=60')
  expect(await applied('Wait = 5')).toBe('wait=5')
  // What is not a preference that we know is no error (RFC 7240), and a parameter of the URL has precedence.
  for (const other of ['wait', 'wait=soon', 'wait=-1', 'handling=lenient', 'await=5', 'wait=0']) {
    expect(await applied(other), other).toBeNull()
  }
  expect(await applied('wait=5', '?waitMs=10')).toBeNull()
})

test.each(['-1', '60001', 'soon', '1.5', ''])('waitMs=%s is refused', async (text) => {
  const { status, body } = await service.call(
    'GET',
    `/api/executions/${await addOpenRun()}?waitMs=${text}`,
    service.admin,
  )
  expect([status, body.errors?.[0].path]).toEqual([400, 'waitMs'])
})

test('somebody who is removed from the team during the wait gets nothing', async () => {
  const run = await addOpenRun()
  const member = await service.signUp('OPERATOR')
  const asked = wait(run, '?waitMs=60000', { as: member.cookie })
  await until(() => isWatched(run))
  await service.call('DELETE', `/api/teams/${service.teamId}/members/${member.id}`, service.admin)
  // A wait that was shorter than this does not read the right again.
  await new Promise((resolve) => setTimeout(resolve, 1_100))
  await runs.setRun(run, { status: 'SUCCESS' })
  const answer = await asked
  expect([answer.status, (await answer.json()) as unknown]).toMatchObject([
    403,
    { message: 'You have no access to this team' },
  ])
})

test('an execution is accepted although its caller may not wait for its end any more', async () => {
  // Starting it in Temporal takes a moment, during which the wait is refused.
  const carryOut = () => new Promise<boolean>((resolve) => setTimeout(() => resolve(false), 50))
  const own = await keep(startService({ waiting: { ofPerson: 1 }, carryOut }))
  const held = await createRuns(own).addRun()
  const hang = new AbortController()
  const hold = () =>
    own.request(`/api/executions/${held}?waitMs=60000`, { as: own.admin, signal: hang.signal })
  // The probe below may have the place for a moment.
  const first = until(hold, { holds: ({ status }) => status !== 429 })
  await until(
    async () => (await own.request(`/api/executions/${held}?waitMs=1`, { as: own.admin })).status === 429,
  )
  const graph = { nodes: [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }], edges: [] }
  const { body } = await own.call('POST', '/api/workflows', own.admin, {
    teamId: own.teamId,
    name: 'w',
    ...graph,
  })
  const path = `/api/workflows/${body.id}/execute?waitMs=1000`
  expect((await own.call('POST', path, own.admin, { teamId: own.teamId })).status).toBe(202)
  hang.abort()
  await first.catch(() => {})
})

test('a person has a bounded number of waiting requests; whoever disconnects frees a place', async () => {
  const base = await service.listen()
  const run = await addOpenRun()
  const gone = new AbortController()
  const headers = { cookie: service.admin }
  const ask = (ms: number, signal?: AbortSignal) =>
    fetch(`${base}/api/executions/${run}?waitMs=${ms}`, { headers, ...(signal ? { signal } : {}) })
  // The probe below may have the place for a moment.
  const hold = (signal?: AbortSignal) =>
    until(() => ask(60_000, signal), { holds: ({ status }) => status !== 429 })
  const lost = hold(gone.signal).catch((error: Error) => error.name)
  const held = hold()
  const refused = await until(() => ask(20), { holds: ({ status }) => status === 429 })
  expect(refused.headers.get('retry-after')).toBe('5')
  expect(((await refused.json()) as { message: string }).message).toBe(
    'You have 2 waiting requests open: close some of them, or wait',
  )
  gone.abort()
  expect(await lost).toBe('AbortError')
  expect((await until(() => ask(20), { holds: ({ status }) => status !== 429 })).status).toBe(200)
  await runs.setRun(run, { status: 'SUCCESS' })
  expect((await held).status).toBe(200)
})

test('a wait counts as one request', async () => {
  const run = await addOpenRun()
  const as = await service.token('VIEWER')
  const count = async () => {
    const answer = await wait(run, '?waitMs=300', { as })
    return [
      Number(answer.headers.get('x-ratelimit-remaining')),
      answer.headers.get('x-ratelimit-reset'),
    ] as const
  }
  const pairs = async () => [await count(), await count()] as const
  // Both in the same minute.
  const [first, second] = await until(pairs, { holds: ([one, other]) => one[1] === other[1] })
  expect(first[0] - second[0]).toBe(1)
})

test('a wait outlasts the loss of all connections to PostgreSQL', async () => {
  const run = await addOpenRun()
  const asked = wait(run, '?waitMs=60000')
  await until(() => isWatched(run))
  await sql`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`.execute(service.store.db)
  await until(() =>
    runs
      .setRun(run, { status: 'SUCCESS' })
      .then(() => true)
      .catch(() => false),
  )
  expect(((await (await asked).json()) as { status: string }).status).toBe('SUCCESS')
})

test('a process that stops responds to waiting requests at once', async () => {
  const run = await addOpenRun()
  const { app, bus } = addProcess()
  const headers = { cookie: service.admin }
  const asked = app.request(`/api/executions/${run}?waitMs=60000`, { headers })
  await until(() => isWatched(run))
  await bus.stop()
  expect([(await asked).status, await (await asked).json()]).toMatchObject([200, { status: 'RUNNING' }])
})

test('execute waits if it is asked to; the response is the ended execution, or 202 if that takes longer', async () => {
  const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
  const set = { id: 'set', type: 'SET', config: { values: { sum: '{{ $input.a + 1 }}' } } }
  const id = await host.create({ nodes: [start, set], edges: edges('start -> set') })
  const execute = (how: string, more: Ask = {}, workflow = id) =>
    host.request(`/api/workflows/${workflow}/execute${how}`, {
      method: 'POST',
      as: host.admin,
      json: { teamId: host.teamId, data: { a: 1 } },
      ...more,
    })
  // The first is told by PostgreSQL, and from then on the process knows that executions end in it.
  for (const how of ['?waitMs=60000', '?waitMs=60000', '']) {
    const headers = how ? {} : { prefer: 'wait=60' }
    const answer = await execute(how, { headers })
    const body = (await answer.json()) as Record<string, unknown>
    expect([answer.status, answer.headers.get('preference-applied')]).toEqual([200, how ? null : 'wait=60'])
    expect(body).toMatchObject({ status: 'SUCCESS', outputData: { sum: 2 }, nodeExecutionsTotal: 2 })
    expect(answer.headers.get('location')).toBe(`/api/executions/${body.executionId}`)
    expect(body.id).toBe(body.executionId)
  }
  const repeated = { headers: { 'idempotency-key': 'once' } }
  const [first, second] = [await execute('', repeated), await execute('?waitMs=60000', repeated)]
  expect([first.status, second.status]).toEqual([202, 200])
  expect(((await second.json()) as { id: string }).id).toBe(
    ((await first.json()) as { executionId: string }).executionId,
  )

  const pause = { id: 'wait', type: 'WAIT', config: { durationMs: 60_000 } }
  const long = await host.create({ nodes: [start, pause], edges: edges('start -> wait') })
  const answer = await execute('?waitMs=400', {}, long)
  expect([answer.status, await answer.json()]).toEqual([
    202,
    { executionId: expect.any(String), status: 'RUNNING', startedAt: expect.any(String) },
  ])
})

test('in the process that ends it, an execution is waited for in memory, however it ends', async () => {
  const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
  const pause = { id: 'wait', type: 'WAIT', config: { durationMs: 60_000 } }
  const id = await host.create({ nodes: [start, pause], edges: edges('start -> wait') })
  for (const how of ['cancel', 'terminate']) {
    const run = await host.execute(id)
    const asked = host.request(`/api/executions/${run}?waitMs=60000`, { as: host.admin })
    if (how === 'cancel') await host.ask('POST', `/api/executions/${run}/cancel`)
    else await host.engine.client.workflow.getHandle(run).terminate('by hand')
    expect(((await (await asked).json()) as { status: string }).status, how).toBe('CANCELLED')
  }
})
