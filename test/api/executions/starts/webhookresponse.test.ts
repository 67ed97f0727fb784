import { sql } from 'kysely'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createApp } from '../../../../api/app.ts'
import { openBus } from '../../../../db/bus.ts'
import { awaitAnswer, leaveAnswer } from '../../../../db/executions/starts/webhooks.ts'
import { startHousekeeping } from '../../../../worker/service/housekeeping.ts'
import { startListener } from '../../../../worker/service/listener.ts'
import { type ExecutionBody, nodeOf } from '../../../support/client.ts'
import { type Example, edges } from '../../../support/engine/graphs.ts'
import { brief, readEvents } from '../../../support/events.ts'
import { type Running, startRunning } from '../../../support/running.ts'
import { startTarget, type Target } from '../../../support/servers/target.ts'

let host: Running
let target: Target
let base: string
const closing: (() => Promise<unknown>)[] = []

/**
 * Starts an API as in another process than the worker's: with its own bus, and carrying out its errands
 * itself.
 */
beforeAll(async () => {
  ;[host, target] = await Promise.all([startRunning(), startTarget()])
  const bus = openBus(host.database.url, { name: 'another' })
  const app = createApp({
    store: host.store,
    bus,
    log: pino({ level: 'silent' }),
    publicUrl: 'http://127.0.0.1:3000',
    rateLimits: false,
    isReady: async () => ({ database: true, temporal: true, worker: true }),
    carryOut: (errand) => host.engine.carryOut(errand),
  })
  const listener = await startListener(app.fetch, 0, '127.0.0.1')
  base = `http://127.0.0.1:${listener.port}`
  closing.push(() => bus.stop().then(() => listener.stop(1_000)))
})
afterAll(async () => {
  for (const close of closing) await close()
  await host.stop()
  await target.stop()
})

type Nodes = Example['nodes']

/** Creates an active workflow with a webhook and returns its URL. */
async function activate(response: object, nodes: Nodes, arrows: string[]): Promise<string> {
  const hook = { id: 'in', type: 'WEBHOOK_TRIGGER', config: { path: 'go', ...response } }
  const id = await host.create({ nodes: [hook, ...nodes], edges: edges(...arrows) })
  await host.ask('PUT', `/api/workflows/${id}`, { active: true })
  return `${base}/hooks/${id}/go`
}

// biome-ignore lint/suspicious/noExplicitAny: responses are read field by field
async function call(url: string, body: unknown = {}): Promise<{ answer: Response; text: string; body: any }> {
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  const text = await answer.text()
  const json = answer.headers.get('content-type')?.startsWith('application/json')
  return { answer, text, body: json ? JSON.parse(text) : undefined }
}

const fault = (status: number, error: string, message: string) => ({
  status,
  error,
  message,
  timestamp: expect.stringMatching(/Z$/),
  path: expect.stringMatching(/^\/hooks\/[\da-f-]{36}\/go$/),
  executionId: expect.stringMatching(/^[\da-f-]{36}$/),
})

test('lastNode: the request waits for the execution, whose output is the response', async () => {
  const set = { id: 'set', type: 'SET', config: { values: { sum: '{{ $input.body.n + 1 }}' } } }
  const url = await activate({ responseMode: 'lastNode' }, [set], ['in -> set'])
  const answers = await Promise.all([1, 2, 3].map((n) => call(url, { n })))
  expect(answers.map(({ answer, body }) => [answer.status, body])).toEqual([
    [200, { sum: 2 }],
    [200, { sum: 3 }],
    [200, { sum: 4 }],
  ])
  const location = answers[0]!.answer.headers.get('location')!
  expect(await host.read(location.split('/').pop()!)).toMatchObject({ status: 'SUCCESS', trigger: 'WEBHOOK' })
  await expect.poll(() => host.store.db.selectFrom('watches').selectAll().execute()).toEqual([])
})

test('lastNode: if the execution fails or is cancelled, the response is 500 without details', async () => {
  const stop = { id: 'stop', type: 'STOP_AND_ERROR', config: { message: 'secret {{ $input.method }}' } }
  const failing = await activate({ responseMode: 'lastNode' }, [stop], ['in -> stop'])
  const failed = await call(failing)
  expect([failed.answer.status, failed.body]).toEqual([
    500,
    fault(500, 'Internal Server Error', 'The execution failed'),
  ])
  const wait = { id: 'wait', type: 'WAIT', config: { durationMs: 60_000 } }
  const waiting = await activate({ responseMode: 'lastNode' }, [wait], ['in -> wait'])
  const cancelled = call(waiting)
  const { content } = await vi.waitFor(async () => {
    const workflowId = waiting.split('/').at(-2)
    const list = await host.ask<{ content: { id: string }[] }>(
      'GET',
      `/api/executions?workflowId=${workflowId}`,
    )
    expect(list.content.length).toBe(1)
    return list
  }, 20_000)
  await host.ask('POST', `/api/executions/${content[0]!.id}/cancel`)
  const { answer, body } = await cancelled
  expect([answer.status, body.message, body.executionId]).toEqual([
    500,
    'The execution was cancelled',
    content[0]!.id,
  ])
})

test('an execution continues after the time limit (504), and if the caller disconnects', async () => {
  const url = await activate(
    { responseMode: 'lastNode', responseTimeoutMs: 300 },
    [{ id: 'wait', type: 'WAIT', config: { durationMs: 1_200 } }],
    ['in -> wait'],
  )
  const { answer, body } = await call(url)
  expect([answer.status, body]).toEqual([
    504,
    fault(504, 'Gateway Timeout', 'The execution has not responded within 300 ms; the execution continues'),
  ])
  const gone = fetch(url, { method: 'POST', signal: AbortSignal.timeout(150) })
  await expect(gone).rejects.toThrow()
  const workflowId = url.split('/').at(-2)
  const { content } = await host.ask<{ content: { id: string }[] }>(
    'GET',
    `/api/executions?workflowId=${workflowId}`,
  )
  expect(content.length).toBe(2)
  for (const { id } of content) expect((await host.ended(id)).status).toBe('SUCCESS')
})

test('responseNode: the first RESPOND_TO_WEBHOOK is sent at once, whatever follows', async () => {
  const respond = {
    id: 'respond',
    type: 'RESPOND_TO_WEBHOOK',
    config: {
      status: '{{ $input.body.status }}',
      headers: {
        'X-Order': 'n-{{ $input.body.n }}',
        'Content-Type': 'text/html',
        'X-None': '{{ $input.none }}',
      },
      body: '<b>{{ $input.body.n }}</b>',
    },
  }
  const later = { id: 'later', type: 'RESPOND_TO_WEBHOOK', config: { body: 'too late' } }
  const nodes = [respond, { id: 'wait', type: 'WAIT', config: { durationMs: 1_500 } }, later]
  const url = await activate({ responseMode: 'responseNode' }, nodes, [
    'in -> respond',
    'respond -> wait',
    'wait -> later',
  ])
  const took: number[] = []
  const time = async (n: number) => {
    const began = performance.now()
    const called = await call(url, { status: 418, n })
    took.push(performance.now() - began)
    return called
  }
  for (const n of [0, 1, 2]) await time(n)
  const { answer, text } = await time(7)
  // The answer does not wait for the projection, which a running execution gets only after a second. The
  // fastest request counts, because a busy machine may be slow.
  expect(Math.min(...took)).toBeLessThan(900)
  expect([answer.status, text]).toEqual([418, '<b>7</b>'])
  const { headers } = answer
  expect([headers.get('content-type'), headers.get('x-order'), headers.get('x-none')]).toEqual([
    'text/html',
    'n-7',
    null,
  ])
  // A page from a workflow never runs in the origin of the console.
  expect(headers.get('content-security-policy')).toMatch(/^sandbox (?!.*same-origin)/)
  expect([headers.get('x-content-type-options'), headers.get('x-ratelimit-limit')]).toEqual([
    'nosniff',
    expect.anything(),
  ])
  const id = headers.get('location')!.split('/').pop()!
  expect((await host.read(id)).status).toBe('RUNNING')
  const run = await host.ended(id)
  expect([run.status, run.outputData]).toEqual(['SUCCESS', { status: 200, headers: {}, body: 'too late' }])
})

test.each([
  ['an object', { body: { a: [1, null] } }, 200, 'application/json', '{"a":[1,null]}'],
  ['a string', { body: 'a\u20ac' }, 200, 'text/plain; charset=utf-8', 'a\u20ac'],
  ['nothing', { status: 202 }, 202, null, ''],
  ['no content', { status: 204, body: 'x' }, 204, null, ''],
  ['a redirect', { status: 303, headers: { Location: '/elsewhere' } }, 303, null, ''],
  [
    'a body too big to be inline',
    { body: { text: 'x'.repeat(100_000) } },
    200,
    'application/json',
    undefined,
  ],
])('responseNode responds with %s', async (_what, config, status, type, text) => {
  const url = await activate(
    { responseMode: 'responseNode' },
    [{ id: 'r', type: 'RESPOND_TO_WEBHOOK', config }],
    ['in -> r'],
  )
  const answer = await fetch(url, { method: 'POST', redirect: 'manual' })
  expect([answer.status, answer.headers.get('content-type')]).toEqual([status, type])
  const given = await answer.text()
  expect(given).toBe(text ?? JSON.stringify((config as { body: unknown }).body))
  // The stored answer is removed once it has been sent.
  await expect.poll(() => host.store.db.selectFrom('hookAnswers').selectAll().execute()).toEqual([])
})

test('an execution that no request waits for stores no answer', async () => {
  const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
  const respond = { id: 'r', type: 'RESPOND_TO_WEBHOOK', config: { status: 201, body: '{{ $input.a }}' } }
  const run = await host.run({ nodes: [start, respond], edges: edges('start -> r') }, { a: [1] })
  expect([run.status, run.outputData]).toEqual(['SUCCESS', { status: 201, headers: {}, body: [1] }])
  expect(await host.store.db.selectFrom('hookAnswers').selectAll().execute()).toEqual([])
})

test('responseNode: if the execution ends or fails without an answer, the response is 500', async () => {
  const respond = { id: 'r', type: 'RESPOND_TO_WEBHOOK', config: {} }
  const branch = { id: 'if', type: 'IF_ELSE', config: { condition: '$input.body.answer' } }
  const arrows = ['in -> if', 'if:true -> r']
  const url = await activate({ responseMode: 'responseNode' }, [branch, respond], arrows)
  const silent = await call(url, { answer: false })
  expect([silent.answer.status, silent.body.message]).toEqual([500, 'The execution ended without a response'])
  const broken = { ...respond, config: { headers: { 'X-A': '{{ $input.body.value }}' } } }
  const failing = await activate({ responseMode: 'responseNode' }, [broken], ['in -> r'])
  const failed = await call(failing, { value: 'a\r\nSet-Cookie: b=c' })
  expect([failed.answer.status, failed.body.message, failed.answer.headers.get('set-cookie')]).toEqual([
    500,
    'The execution failed',
    null,
  ])
  expect((await host.ended(failed.body.executionId)).errorMessage).toBe(
    'headers.X-A has characters that a header cannot have',
  )
})

test('responseNode: a parallel branch can answer while another one is still at work', async () => {
  const slow = { id: 'slow', type: 'HTTP_REQUEST', config: { url: `${target.url}/slow` } }
  const respond = {
    id: 'r',
    type: 'RESPOND_TO_WEBHOOK',
    config: { body: '{{ $input.body }}' },
    timeoutMs: 5_000,
  }
  const url = await activate({ responseMode: 'responseNode' }, [slow, respond], ['in -> slow', 'in -> r'])
  const { answer, body } = await call(url, { a: 1 })
  expect([answer.status, body]).toEqual([200, { a: 1 }])
})

test('a process that stops responds to waiting requests; their executions continue', async () => {
  const bus = openBus(host.database.url, { name: 'stopping' })
  const app = createApp({
    store: host.store,
    bus,
    log: pino({ level: 'silent' }),
    publicUrl: 'http://127.0.0.1:3000',
    isReady: async () => ({ database: true, temporal: true, worker: true }),
    carryOut: (errand) => host.engine.carryOut(errand),
  })
  const wait = { id: 'wait', type: 'WAIT', config: { durationMs: 1_000 } }
  const url = await activate({ responseMode: 'lastNode' }, [wait], ['in -> wait'])
  const answering = app.request(new URL(url).pathname, { method: 'POST' })
  await expect.poll(() => host.store.db.selectFrom('watches').selectAll().execute()).toHaveLength(1)
  await bus.stop()
  const answer = await answering
  const body = (await answer.json()) as { message: string; executionId: string }
  expect([answer.status, body.message]).toEqual([504, 'The service is stopping; the execution continues'])
  expect((await host.ended(body.executionId)).status).toBe('SUCCESS')
})

test('answers that a killed process waited for are removed, and outputs that are not kept', async () => {
  const { db } = host.store
  const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
  const wait = { id: 'wait', type: 'WAIT', config: { durationMs: 500 } }
  const settings = { saveData: { inputs: true, outputs: false } }
  const workflowId = await host.create({ nodes: [start, wait], edges: edges('start -> wait'), settings })
  const ids = [await host.execute(workflowId, { a: 1 }), await host.execute(workflowId, { a: 1 })] as const
  for (const id of ids) await awaitAnswer(host.store, id)
  const outputs = async (id: string) =>
    (await host.ended(id)).nodeExecutions.map(({ outputData }) => outputData)
  for (const id of ids) expect(await outputs(id)).toEqual([{ a: 1 }, { a: 1 }])

  const createdAt = new Date(Date.now() - 11 * 60_000)
  await db.updateTable('executions').set({ createdAt }).where('id', '=', ids[0]).execute()
  const stop = startHousekeeping(host.store, pino({ level: 'silent' }), { at: '* * * * * *' })
  // No request waits as long as 11 minutes. Somebody may still wait for the other execution.
  await expect
    .poll(() => db.selectFrom('hookAnswers').select('executionId').execute(), { timeout: 5_000 })
    .toEqual([{ executionId: ids[1] }])
  await stop()
  expect(await outputs(ids[0])).toEqual([null, null])
  expect(await outputs(ids[1])).toEqual([{ a: 1 }, { a: 1 }])
  await db.deleteFrom('hookAnswers').execute()
})

test('a request that gives up while its execution ends leaves no outputs that are not kept', async () => {
  const { db } = host.store
  const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
  const wait = { id: 'wait', type: 'WAIT', config: { durationMs: 60_000 } }
  const settings = { saveData: { inputs: true, outputs: false } }
  const id = await host.execute(
    await host.create({ nodes: [start, wait], edges: edges('start -> wait'), settings }),
    { secret: 'psst' },
  )
  await awaitAnswer(host.store, id)
  const recorded = (run: ExecutionBody) => run.nodeExecutions.some(({ nodeId }) => nodeId === 'wait')
  expect(nodeOf(await host.until(id, recorded), 'start').outputData).toEqual({ secret: 'psst' })
  let left: Promise<void> | undefined
  await db.transaction().execute(async (tx) => {
    const ended = { status: 'FAILED', completedAt: new Date() }
    await tx.updateTable('executions').set(ended).where('id', '=', id).execute()
    let done = false
    left = leaveAnswer(host.store, id).finally(() => {
      done = true
    })
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx)
    const isWaiting = sql`select from pg_stat_activity where ${rows[0]!.pid} = any(pg_blocking_pids(pid))`
    await expect.poll(async () => done || (await isWaiting.execute(db)).rows.length > 0).toBe(true)
  })
  await left
  expect(nodeOf(await host.read(id), 'start').outputData).toBeNull()
  await host.engine.client.workflow.getHandle(id).terminate()
})

test('an execution can be followed through another process than the one that runs it', async () => {
  const nodes = [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    { id: 'slow', type: 'HTTP_REQUEST', config: { url: `${target.url}/slow?ms=400` } },
    { id: 'wait', type: 'WAIT', config: { durationMs: 1_300 } },
    { id: 'set', type: 'SET', config: { values: { a: 1 } } },
  ]
  const run = await host.execute(
    await host.create({ nodes, edges: edges('start -> slow', 'slow -> wait', 'wait -> set') }),
  )
  const headers = { cookie: host.admin }
  const stream = readEvents(await fetch(`${base}/api/executions/${run}/events`, { headers }))
  const seen = (await stream.all()).map(brief)
  // The attempt is reported while it runs, and the end of each node is reported once.
  expect(seen).toContain('node slow RUNNING')
  const ends = ['start', 'slow', 'wait', 'set'].map((id) => `node ${id} SUCCESS`)
  expect(seen.filter((one) => one.startsWith('node') && one.endsWith('SUCCESS')).sort()).toEqual(ends.sort())
  expect(seen.slice(-2)).toEqual(['execution SUCCESS', 'end SUCCESS'])
  expect(seen.filter((one) => one.startsWith('execution')).length).toBeLessThanOrEqual(3)
})

test('an errand that is due at once is carried out without waiting for the sweeper', async () => {
  const own = await startRunning({ sweepEveryMs: 3_600_000 })
  try {
    const id = await own.create({ nodes: [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }], edges: [] })
    own.use(undefined)
    const run = await own.execute(id)
    await own.store.db.updateTable('outbox').set({ dueAt: new Date() }).where('subjectId', '=', run).execute()
    expect((await own.ended(run)).status).toBe('SUCCESS')
  } finally {
    own.use(own.engine)
    await own.stop()
  }
})
