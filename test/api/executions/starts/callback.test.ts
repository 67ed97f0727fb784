import { createHmac } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sql } from 'kysely'
import { afterAll, expect, test } from 'vitest'
import { claimCallbacks } from '../../../../db/executions/callbacks.ts'
import { edges } from '../../../support/engine/graphs.ts'
import { keep } from '../../../support/keep.ts'
import { startRunning } from '../../../support/running.ts'
import type { Body } from '../../../support/service.ts'
import { until } from '../../../support/until.ts'

const SECRET = 'the secret of the receiver'
const host = await keep(startRunning())
const { db } = host.store

type Call = { path: string; headers: IncomingHttpHeaders; text: string }

/** A receiver: responds with the status that the path names, `/503,200` first with 503 and then with 200. */
const calls: Call[] = []
const receiver = createServer(async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const path = request.url!
  const before = calls.filter((call) => call.path === path).length
  calls.push({ path, headers: request.headers, text: Buffer.concat(chunks).toString() })
  const statuses = path.split('/')[1]!.split(',')
  const status = Number(statuses[Math.min(before, statuses.length - 1)])
  response.writeHead(status, status === 302 ? { location: '/200/elsewhere' } : {}).end()
})
await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
afterAll(() => receiver.close())
const base = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`
const callsTo = (path: string) => calls.filter((call) => call.path === path)

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
const quick = await host.create({
  nodes: [start, { id: 'set', type: 'SET', config: { values: { sum: '{{ $input.a + 1 }}' } } }],
  edges: edges('start -> set'),
})
const slow = await host.create({
  nodes: [start, { id: 'wait', type: 'WAIT', config: { durationMs: 60_000 } }],
  edges: edges('start -> wait'),
})

const execute = (workflow: string, more: object, headers = {}) =>
  host.call(
    'POST',
    `/api/workflows/${workflow}/execute`,
    host.admin,
    { teamId: host.teamId, data: { a: 1 }, ...more },
    headers,
  )

async function executeWith(callbackUrl: string, workflow = quick): Promise<string> {
  const { status, body } = await execute(workflow, { callbackUrl, callbackSecret: SECRET })
  expect(status, JSON.stringify(body)).toBe(202)
  return body.executionId
}

const read = async (id: string): Promise<Body> => host.read(id)
const untilCallback = (id: string, status: string) =>
  until(async () => (await read(id)).callback, { holds: (one: Body) => one.status === status })
const makeDue = (id: string) =>
  sql`update callbacks set due_at = now() where execution_id = ${id}`.execute(db)

test('the end of an execution is told with a signed POST', async () => {
  const id = await executeWith(`${base}/200/one?token=hidden-from-people`)
  const callback = await untilCallback(id, 'DELIVERED')
  expect(callback).toEqual({
    id: expect.stringMatching(/^[\da-f-]{36}$/),
    url: expect.stringMatching(/\/200\/one\?token=\[redacted\]$/),
    status: 'DELIVERED',
    attempts: 1,
    nextAttemptAt: null,
    deliveredAt: expect.stringMatching(/Z$/),
    lastError: null,
  })
  const [call, ...more] = callsTo('/200/one?token=hidden-from-people')
  expect(more).toEqual([])
  const { headers, text } = call!
  expect([headers['content-type'], headers['x-perdure-delivery']]).toEqual(['application/json', callback.id])
  const [, seconds, signature] = /^t=(\d+),v1=([\da-f]{64})$/.exec(headers['x-perdure-signature'] as string)!
  expect(signature).toBe(createHmac('sha256', SECRET).update(`${seconds}.${text}`).digest('hex'))
  expect(Math.abs(Number(seconds) - Date.now() / 1_000)).toBeLessThan(300)
  const { nodeExecutions: _, ...run } = await read(id)
  expect(JSON.parse(text)).toEqual({
    id: callback.id,
    event: 'execution.ended',
    execution: {
      id,
      workflowId: quick,
      workflowName: run.workflowName,
      workflowVersion: 1,
      status: 'SUCCESS',
      trigger: 'MANUAL',
      errorMessage: null,
      createdAt: run.createdAt,
      startedAt: run.startedAt,
      completedAt: run.completedAt,
      durationMs: run.durationMs,
      outputData: { sum: 2 },
      outputOmitted: false,
    },
  })
  const { rows } = await sql<{
    text: string
  }>`select c::text || encode(target, 'escape') as text from callbacks c`.execute(db)
  expect(rows.map((row) => row.text).join()).not.toMatch(/hidden-from-people|the secret of/)
})

test('it is told however the execution ends, also one that never began', async () => {
  const fails = await host.create({
    nodes: [start, { id: 'stop', type: 'STOP_AND_ERROR', config: { message: 'no stock' } }],
    edges: edges('start -> stop'),
  })
  const failed = await executeWith(`${base}/204/failed`, fails)
  const cancelled = await executeWith(`${base}/200/cancelled`, slow)
  const terminated = await executeWith(`${base}/200/terminated`, slow)
  host.use(undefined)
  const pending = await executeWith(`${base}/200/pending`, slow)
  host.use(host.engine)
  expect((await read(pending)).callback).toMatchObject({
    status: 'WAITING',
    attempts: 0,
    nextAttemptAt: null,
  })
  await host.ask('POST', `/api/executions/${pending}/cancel`)
  await host.ask('POST', `/api/executions/${cancelled}/cancel`)
  await host.engine.client.workflow.getHandle(terminated).terminate('by hand')
  const told = async (id: string, path: string) => {
    await untilCallback(id, 'DELIVERED')
    return callsTo(path).map(({ text }) => [
      JSON.parse(text).execution.status,
      JSON.parse(text).execution.errorMessage,
    ])
  }
  expect(await told(failed, '/204/failed')).toEqual([['FAILED', 'no stock']])
  expect(await told(cancelled, '/200/cancelled')).toEqual([['CANCELLED', expect.any(String)]])
  expect(await told(terminated, '/200/terminated')).toEqual([
    ['CANCELLED', expect.stringContaining('by hand')],
  ])
  expect(await told(pending, '/200/pending')).toEqual([['CANCELLED', expect.any(String)]])
})

test('a receiver that fails is asked again later, with the same id', async () => {
  const id = await executeWith(`${base}/503,200/again`)
  const failed = await until(async () => (await read(id)).callback, {
    holds: (one: Body) => one.lastError !== null,
  })
  expect(failed).toMatchObject({
    status: 'PENDING',
    attempts: 1,
    lastError: expect.stringMatching(/^127.0.0.1:\d+ responded with 503$/),
  })
  const wait = Date.parse(failed.nextAttemptAt) - Date.now()
  expect(wait).toBeGreaterThan(0)
  expect(wait).toBeLessThan(6_000)
  await makeDue(id)
  expect(await untilCallback(id, 'DELIVERED')).toMatchObject({ attempts: 2, lastError: null })
  const [one, two] = callsTo('/503,200/again').map(({ headers }) => headers['x-perdure-delivery'])
  expect([one, two]).toEqual([failed.id, failed.id])
})

test('after a day it is given up, and at once if asking again is of no use', async () => {
  const old = await executeWith(`${base}/500/old`)
  await until(async () => (await read(old)).callback.lastError)
  await sql`update callbacks set ended_at = ended_at - interval '25 hours', due_at = now() where execution_id = ${old}`.execute(
    db,
  )
  expect(await untilCallback(old, 'FAILED')).toMatchObject({
    lastError: expect.stringMatching(/responded with 500 \(tried for 24 hours\)$/),
    deliveredAt: null,
    nextAttemptAt: null,
  })
  const cases: [url: string, error: RegExp][] = [
    [`${base}/410/gone`, /responded with 410$/],
    ['http://10.255.255.1/x', /not a public address \(private\)/],
  ]
  for (const [url, error] of cases) {
    const id = await executeWith(url)
    expect(await untilCallback(id, 'FAILED')).toMatchObject({
      attempts: 1,
      lastError: expect.stringMatching(error),
    })
  }
})

test('a redirect is not followed', async () => {
  const id = await executeWith(`${base}/302/moved`)
  await until(async () => (await read(id)).callback.lastError)
  expect((await read(id)).callback).toMatchObject({
    status: 'PENDING',
    lastError: expect.stringMatching(/responded with 302$/),
  })
  expect(callsTo('/200/elsewhere')).toEqual([])
  await sql`delete from callbacks where execution_id = ${id}`.execute(db)
})

test('what a process has claimed and not delivered, because it died, is delivered later, once', async () => {
  // No engine delivers while the execution ends: its row is ended by hand.
  const id = await executeWith(`${base}/200/lost`, slow)
  await host.until(id, (run) => run.status === 'RUNNING')
  await db.transaction().execute(async (tx) => {
    await tx
      .updateTable('executions')
      .set({ status: 'FAILED', completedAt: new Date() })
      .where('id', '=', id)
      .execute()
    // As a claim leaves it.
    await sql`update callbacks set attempts = 1, due_at = now() + interval '60 seconds' where execution_id = ${id}`.execute(
      tx,
    )
  })
  const none = { limit: 10, ofTeam: 10, leaseMs: 60_000, busy: [] }
  expect(await claimCallbacks(host.store, none)).toEqual([])
  await makeDue(id)
  expect(await untilCallback(id, 'DELIVERED')).toMatchObject({ attempts: 2 })
  expect(callsTo('/200/lost')).toHaveLength(1)
  await host.engine.client.workflow.getHandle(id).terminate()
})

test('with the same Idempotency-Key the first callback stays; the fields are checked', async () => {
  const key = { 'idempotency-key': 'first-wins' }
  const first = await execute(quick, { callbackUrl: `${base}/200/first`, callbackSecret: SECRET }, key)
  const second = await execute(quick, { callbackUrl: `${base}/200/second`, callbackSecret: SECRET }, key)
  expect(second.body.executionId).toBe(first.body.executionId)
  await untilCallback(first.body.executionId, 'DELIVERED')
  expect([callsTo('/200/first').length, callsTo('/200/second').length]).toEqual([1, 0])

  const problems = async (more: object) => {
    const { status, body } = await execute(quick, more)
    return [status, body.errors?.map((problem: { path: string }) => problem.path)]
  }
  const callbackUrl = `${base}/200/x`
  expect(await problems({ callbackUrl })).toEqual([400, ['callbackSecret']])
  expect(await problems({ callbackSecret: SECRET })).toEqual([400, ['callbackSecret']])
  expect(await problems({ callbackUrl, callbackSecret: 'short' })).toEqual([400, ['callbackSecret']])
  for (const url of ['ftp://example.com', 'nowhere', `http://example.com/${'x'.repeat(2_048)}`]) {
    expect(await problems({ callbackUrl: url, callbackSecret: SECRET }), url).toEqual([400, ['callbackUrl']])
  }
  expect((await read((await execute(quick, {})).body.executionId)).callback).toBeNull()
})

test("a webhook of Perdure's own can check the signature, and starts one execution for a delivery", async () => {
  const signature = {
    header: 'X-Perdure-Signature',
    timestampHeader: 'X-Perdure-Signature',
    prefix: 'v1=',
    secret: SECRET,
    deliveryHeader: 'X-Perdure-Delivery',
  }
  const hook = { id: 'in', type: 'WEBHOOK_TRIGGER', config: { path: 'ended', signature } }
  const listener = await host.create({ nodes: [hook], edges: [] })
  await host.ask('PUT', `/api/workflows/${listener}`, { active: true })
  const url = `${await host.listen()}/hooks/${listener}/ended`
  await untilCallback(await executeWith(url), 'DELIVERED')
  const { content } = await host.ask<Body>('GET', `/api/executions?workflowId=${listener}`)
  expect(content).toHaveLength(1)
  expect((await host.ended(content[0].id)).inputData.body).toMatchObject({ event: 'execution.ended' })
})
