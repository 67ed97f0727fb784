import { pino } from 'pino'
import { afterAll, expect, test } from 'vitest'
import { createApp } from '../../../api/app.ts'
import type { ApiDeps } from '../../../api/env.ts'
import { openBus } from '../../../db/bus.ts'
import { type Db, openDatabase } from '../../../db/connection.ts'
import { startListener } from '../../../worker/service/listener.ts'
import { createRuns } from '../../support/engine/runs.ts'
import { brief, readEvents } from '../../support/events.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const closing: (() => Promise<unknown>)[] = []
const service = await keep(startService({ rateLimits: false, streams: { heartbeatMs: 200, checkMs: 100 } }))
const runs = createRuns(service)
afterAll(async () => {
  for (const close of closing.reverse()) await close()
})

const ask = (run: string, lastEventId?: string, as = service.admin) =>
  service.request(`/api/executions/${run}/events`, {
    as,
    ...(lastEventId === undefined ? {} : { headers: { 'last-event-id': lastEventId } }),
  })
const follow = async (run: string, lastEventId?: string) => readEvents(await ask(run, lastEventId))

/** Starts a second API on the same database, as in another process. */
async function addProcess(wrap: (db: Db) => Db = (db) => db, streams?: ApiDeps['streams']) {
  const { db, close } = openDatabase(service.database.url, { max: 5, name: 'another' })
  const bus = openBus(service.database.url, { name: 'another' })
  const app = createApp({
    store: { db: wrap(db), keys: service.store.keys },
    bus,
    log: pino({ level: 'silent' }),
    publicUrl: 'http://127.0.0.1:3000',
    rateLimits: false,
    ...(streams ? { streams } : {}),
    isReady: async () => ({ database: true, temporal: true, worker: true }),
    carryOut: async () => false,
  })
  const listener = await startListener(app.fetch, 0, '127.0.0.1')
  let stopped: Promise<void> | undefined
  const stop = () => (stopped ??= bus.stop().then(() => listener.stop(4_000)))
  closing.push(async () => {
    await stop()
    await close()
  })
  const base = `http://127.0.0.1:${listener.port}`
  return {
    app,
    stop,
    ask: (run: string, more: RequestInit = {}) =>
      fetch(`${base}/api/executions/${run}/events`, { headers: { cookie: service.admin }, ...more }),
  }
}

const watched = async (run: string) => {
  const rows = await service.store.db
    .selectFrom('watches')
    .select('watcher')
    .where('executionId', '=', run)
    .execute()
  return rows.length
}

test('an ended execution is sent completely, then `end`; a client can resume after any event', async () => {
  const run = await runs.addRun()
  await runs.setRun(run, { status: 'RUNNING' })
  for (const node of ['a', 'b', 'c']) await runs.setNode(run, node, 'SUCCESS')
  await runs.setRun(run, { status: 'SUCCESS' })
  const answer = await ask(run)
  expect([answer.status, answer.headers.get('content-type'), answer.headers.get('cache-control')]).toEqual([
    200,
    'text/event-stream; charset=utf-8',
    'no-store',
  ])
  expect(answer.headers.get('x-ratelimit-limit')).toMatch(/^\d+$/)
  const events = await readEvents(answer).all()
  expect(events.slice(0, 3).map(brief).sort()).toEqual(['node a SUCCESS', 'node b SUCCESS', 'node c SUCCESS'])
  expect(events.slice(3).map(brief)).toEqual(['execution SUCCESS', 'end SUCCESS'])
  expect(events[3]!.data).toEqual({
    id: run,
    status: 'SUCCESS',
    startedAt: null,
    completedAt: expect.stringMatching(/Z$/),
    durationMs: 0,
    errorMessage: null,
    cancelRequested: false,
  })
  expect(events.find(({ data }) => data.nodeId === 'a')!.data).toEqual({
    id: expect.stringMatching(/^[\da-f-]{36}$/),
    nodeId: 'a',
    iteration: null,
    step: null,
    tool: null,
    nodeName: 'a',
    nodeType: 'NO_OP',
    status: 'SUCCESS',
    startedAt: expect.stringMatching(/Z$/),
    completedAt: null,
    durationMs: null,
    errorMessage: null,
    handle: null,
    retryCount: 0,
    nextAttemptAt: null,
    waitingUntil: null,
    itemCount: null,
  })
  for (const [at, { id }] of events.slice(0, -1).entries()) {
    expect((await (await follow(run, id)).all()).map(brief)).toEqual(events.slice(at + 1).map(brief))
  }
  const done = await ask(run, events.at(-1)!.id)
  expect([done.status, await done.text()]).toEqual([204, ''])
  // A header that was sent twice, joined as some proxies do, and ids that the service never sent.
  expect((await ask(run, `x, ${events.at(-1)!.id}`)).status).toBe(204)
  for (const garbage of [
    'x',
    '5:3:',
    '1:2:9',
    '/end',
    '9'.repeat(300),
    '7:7:/8:8:/x',
    '999999999:999999999:',
  ]) {
    expect((await (await follow(run, garbage)).all()).length, garbage).toBe(5)
  }
})

test('changes are sent as they happen, by every API process', async () => {
  const run = await runs.addRun()
  const another = await addProcess()
  const streams = [await follow(run), readEvents(await another.ask(run))]
  const steps: [() => Promise<void>, string[]][] = [
    [async () => {}, ['execution PENDING']],
    [() => runs.setRun(run, { status: 'RUNNING' }), ['execution RUNNING']],
    [() => runs.setNode(run, 'a', 'RUNNING'), ['node a RUNNING']],
    [
      () =>
        service.store.db.transaction().execute(async (tx) => {
          await runs.setRun(run, {}, tx)
          await runs.setNode(run, 'a', 'SUCCESS', tx)
          // Writing the same state again is not a change.
          await runs.setNode(run, 'a', 'SUCCESS', tx)
        }),
      ['node a SUCCESS'],
    ],
    [() => runs.setRun(run, { status: 'FAILED' }), ['execution FAILED', 'end FAILED']],
  ]
  for (const [change, expected] of steps) {
    await change()
    for (const stream of streams) {
      for (const event of expected) expect(brief((await stream.next())!)).toBe(event)
    }
  }
  for (const stream of streams) expect(await stream.next()).toBeUndefined()
  await expect.poll(() => watched(run)).toBe(0)
})

test('a change that is committed late is sent, even after changes that were begun later', async () => {
  const run = await runs.addRun()
  const stream = await follow(run)
  await stream.next()
  const { db, close } = openDatabase(service.database.url, { max: 1, name: 'slow' })
  const begun = Promise.withResolvers<void>()
  const commit = Promise.withResolvers<void>()
  const late = db.transaction().execute(async (tx) => {
    await runs.setNode(run, 'late', 'RUNNING', tx)
    begun.resolve()
    await commit.promise
  })
  await begun.promise
  await runs.setNode(run, 'early', 'RUNNING')
  const early = (await stream.next())!
  expect(brief(early)).toBe('node early RUNNING')
  commit.resolve()
  await late
  expect(brief((await stream.next())!)).toBe('node late RUNNING')
  await stream.cancel()
  // A client that was disconnected when it was committed receives it too.
  const resumed = await follow(run, early.id)
  expect(brief((await resumed.next())!)).toBe('node late RUNNING')
  await resumed.cancel()
  await close()
})

test('a slow client receives the latest state, not every change', async () => {
  const run = await runs.addRun()
  const stream = await follow(run)
  await stream.next()
  for (let at = 0; at < 50; at++) await runs.setNode(run, 'a', at % 2 ? 'RUNNING' : 'FAILED')
  await runs.setRun(run, { status: 'SUCCESS' })
  const events = await stream.all()
  expect(events.length).toBeLessThan(6)
  expect(events.map(brief).slice(-3)).toEqual(['node a RUNNING', 'execution SUCCESS', 'end SUCCESS'])
})

test('ten thousand records are sent in batches, each once, even if the client is cut off', async () => {
  const run = await runs.addRun()
  const rows = Array.from({ length: 10_000 }, (_, at) => ({
    id: crypto.randomUUID(),
    executionId: run,
    nodeId: 'body',
    iteration: String(at),
    nodeName: 'body',
    nodeType: 'NO_OP',
    status: 'SUCCESS',
    startedAt: new Date(1_700_000_000_000 + (at % 700)),
    settled: true,
  }))
  for (let at = 0; at < rows.length; at += 1_000)
    await service.store.db
      .insertInto('nodeExecutions')
      .values(rows.slice(at, at + 1_000))
      .execute()
  await runs.setRun(run, { status: 'SUCCESS' })
  const seen: string[] = []
  let last: string | undefined
  let ended = false
  for (let cut = 700; !ended; cut += 1_300) {
    const stream = await follow(run, last)
    for (let at = 0; at < cut && !ended; at++) {
      const event = (await stream.next())!
      last = event.id
      if (event.event === 'node') seen.push(event.data.iteration as string)
      ended = event.event === 'end'
    }
    await stream.cancel()
  }
  expect([seen.length, new Set(seen).size]).toEqual([10_000, 10_000])
  expect((await ask(run, last)).status).toBe(204)
})

test('a thousand readers of an execution cost one query for each change', { tags: 'long' }, async () => {
  let queries = 0
  const countAll = (db: Db) =>
    db.withPlugin({
      transformQuery: ({ node }) => {
        queries++
        return node
      },
      transformResult: async ({ result }) => result,
    })
  // Checks of the right to follow would count as queries, so there are none during this test.
  const another = await addProcess(countAll, { checkMs: 600_000 })
  const run = await runs.addRun()
  const streams: ReturnType<typeof readEvents>[] = []
  // 250 at a time: more would be reset if the process is slow to accept connections.
  while (streams.length < 1_000) {
    const some = Array.from({ length: 250 }, async () => readEvents(await another.ask(run)))
    streams.push(...(await Promise.all(some)))
  }
  for (const stream of streams) expect(brief((await stream.next())!)).toBe('execution PENDING')
  expect(await watched(run)).toBe(1)
  const before = queries
  await runs.setRun(run, { status: 'RUNNING' })
  for (const stream of streams) expect(brief((await stream.next())!)).toBe('execution RUNNING')
  // Open transactions of other test files make the bus look a few more times.
  expect(queries - before).toBeLessThan(50)
  await runs.setRun(run, { status: 'SUCCESS' })
  for (const stream of streams)
    expect((await stream.all()).map(brief)).toEqual(['execution SUCCESS', 'end SUCCESS'])
  expect(queries - before).toBeLessThan(100)
  await expect.poll(() => watched(run)).toBe(0)
})

test('nothing remains of a client that disconnects', async () => {
  const another = await addProcess()
  const run = await runs.addRun()
  const gone = new AbortController()
  const streams = [
    readEvents(await another.ask(run)),
    readEvents(await another.ask(run, { headers: { cookie: service.admin }, signal: gone.signal })),
  ]
  for (const stream of streams) await stream.next()
  await expect.poll(() => watched(run)).toBe(1)
  await streams[0]!.cancel()
  gone.abort()
  await expect.poll(() => watched(run)).toBe(0)
  const head = await service.request(`/api/executions/${run}/events`, { method: 'HEAD', as: service.admin })
  expect([head.status, await watched(run)]).toEqual([200, 0])
})

test('a stream sends heartbeats, and ends with the token, the role or the execution', async () => {
  const { db } = service.store
  const run = await runs.addRun()
  const token = await service.token('VIEWER')
  const byToken = readEvents(await ask(run, undefined, token))
  const member = await service.signUp('OPERATOR')
  const byMember = readEvents(await ask(run, undefined, member.cookie))
  const stays = await follow(run)
  for (const stream of [byToken, byMember, stays]) await stream.next()
  await db.updateTable('sdkTokens').set({ revokedAt: new Date() }).execute()
  expect(await byToken.next()).toBeUndefined()
  await db.deleteFrom('members').where('userId', '=', member.id).execute()
  expect(await byMember.next()).toBeUndefined()
  await db.deleteFrom('executions').where('id', '=', run).execute()
  expect(await stays.next()).toBeUndefined()
  const quiet = await follow(await runs.addRun())
  await quiet.next()
  void quiet.next()
  await expect.poll(quiet.comments).toBeGreaterThan(1)
  await quiet.cancel()
})

test('a person, with all their tokens, and a team have only so many streams, and get those back that end', async () => {
  const another = await addProcess((db) => db, { ofPerson: 2, ofTeam: 3 })
  const run = await runs.addRun()
  const colleague = await service.signUp('OPERATOR')
  const open = async (as: string) => {
    const headers = as.startsWith('sdk_') ? { authorization: `Bearer ${as}` } : { cookie: as }
    const response = await another.ask(run, { headers })
    const text = response.status === 200 ? '' : ((await response.json()) as { message: string }).message
    const stream = response.status === 200 ? readEvents(response) : undefined
    await stream?.next()
    return { status: response.status, text, stream }
  }
  const token = await service.token('VIEWER')
  const [first] = [await open(service.admin), await open(token)]
  const third = await open(service.admin)
  expect([third.status, third.text]).toEqual([429, expect.stringContaining('You have 2 event streams')])
  expect((await open(colleague.cookie)).status).toBe(200)
  const fourth = await open(colleague.cookie)
  expect([fourth.status, fourth.text]).toEqual([429, expect.stringContaining('The team has 3 event streams')])
  // What belongs to another team is not concerned.
  const other = await service.otherTeam()
  expect((await another.ask(run, { headers: { cookie: other.cookie } })).status).toBe(403)
  await first!.stream!.cancel()
  await expect.poll(async () => (await open(colleague.cookie)).status).toBe(200)
  await runs.setRun(run, { status: 'SUCCESS' })
  await expect.poll(() => watched(run)).toBe(0)
  const next = await runs.addRun()
  expect((await another.ask(next)).status).toBe(200)
})

test('a client that reads nothing is cut off', async () => {
  const another = await addProcess((db) => db, { checkMs: 50, stallMs: 1_500 })
  const run = await runs.addRun()
  const path = `/api/executions/${run}/events`
  const answer = await another.app.request(path, { headers: { cookie: service.admin } })
  const reader = answer.body!.getReader()
  // The retry time, then the state of the execution.
  await reader.read()
  await reader.read()
  // A process that has only just begun may stream before PostgreSQL knows what it watches.
  await expect.poll(() => watched(run)).toBe(1)
  await expect.poll(() => watched(run)).toBe(0)
  await runs.setRun(run, { status: 'RUNNING' })
  expect(await reader.read()).toEqual({ done: true })
})

test('stopping the process ends its streams at once', async () => {
  const another = await addProcess()
  const run = await runs.addRun()
  const stream = readEvents(await another.ask(run))
  await stream.next()
  const began = performance.now()
  const rest = stream.all()
  await another.stop()
  expect(await rest).toEqual([])
  expect(performance.now() - began).toBeLessThan(3_000)
})

test('only those who can read the execution can follow it', async () => {
  const run = await runs.addRun()
  const other = await service.otherTeam()
  const statuses = [
    (await ask(run, undefined, other.cookie)).status,
    (await service.request(`/api/executions/${run}/events`)).status,
    (await ask(crypto.randomUUID())).status,
    (await ask('x')).status,
  ]
  expect(statuses).toEqual([403, 401, 404, 400])
})
