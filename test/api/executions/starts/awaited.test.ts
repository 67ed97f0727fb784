import { createServer } from 'node:http'
import { afterAll, expect, test } from 'vitest'
import { createMetrics } from '../../../../activities/metrics.ts'
import { keep } from '../../../support/keep.ts'
import { startRunning } from '../../../support/running.ts'

const metrics = createMetrics()
const host = await keep(startRunning({ metrics }))
const { engine } = host
/** What a process leaves behind that dies after Temporal has taken an execution, before it is marked. */
const dying = { ...engine, markAwaited: async () => false }

const held: (() => void)[] = []
const server = createServer((_request, response) => void held.push(() => response.end('{}')))
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
afterAll(() => server.close())
const url = `http://127.0.0.1:${(server.address() as { port: number }).port}`

const start = { id: 'start', type: 'MANUAL_TRIGGER' }
const quick = await host.create({
  nodes: [start, { id: 'set', type: 'SET', config: { values: { x: 1 } } }],
  edges: [{ source: 'start', target: 'set' }],
})
const slow = await host.create({
  nodes: [start, { id: 'call', type: 'HTTP_REQUEST', config: { method: 'GET', url } }],
  edges: [{ source: 'start', target: 'call' }],
})

/** Executes a workflow and waits for its end. */
const executeFor = (ms: number, workflowId = slow) =>
  host.call('POST', `/api/workflows/${workflowId}/execute?waitMs=${ms}`, host.admin, { teamId: host.teamId })

/** Has an execution that Temporal has taken, although its row still says PENDING. */
async function startUnmarked(): Promise<string> {
  host.use(dying)
  const { status, body } = await executeFor(1)
  host.use(engine)
  expect({ status, body }).toMatchObject({ status: 202, body: { status: 'PENDING' } })
  expect((await host.read(body.executionId)).status).toBe('PENDING')
  await expect.poll(() => held.length).toBeGreaterThan(0)
  return body.executionId
}

const errandsOf = async (id: string) =>
  (await host.store.db.selectFrom('outbox').select('kind').where('subjectId', '=', id).execute()).map(
    ({ kind }) => kind,
  )

const release = () => {
  for (const answer of held.splice(0)) answer()
}

async function countStarted(): Promise<number> {
  const { values } = await metrics.runsStarted.get()
  return values.reduce((sum, { value }) => sum + value, 0)
}

test('an execution that ends while its caller waits is written twice: when it is accepted, and when it ends', async () => {
  const before = await countStarted()
  host.use(dying)
  const { status, body } = await executeFor(60_000, quick)
  host.use(engine)
  expect({ status, body }).toMatchObject({ status: 200, body: { status: 'SUCCESS', outputData: { x: 1 } } })
  expect(await errandsOf(body.executionId)).toEqual([])
  expect(body.startedAt >= body.createdAt).toBe(true)
  expect(await countStarted()).toBe(before + 1)
})

test('one whose caller waits no longer is RUNNING for everyone who reads it after the response', async () => {
  const before = await countStarted()
  const { status, body } = await executeFor(1)
  expect({ status, body }).toMatchObject({ status: 202, body: { status: 'RUNNING' } })
  const { executionId: id } = body
  const row = host.store.db.selectFrom('executions').select(['status', 'startedAt', 'createdAt'])
  const running = await row.where('id', '=', id).executeTakeFirstOrThrow()
  expect(running.status).toBe('RUNNING')
  expect(running.startedAt! >= running.createdAt).toBe(true)
  expect(await errandsOf(id)).toEqual([])
  await expect.poll(() => held.length).toBeGreaterThan(0)
  release()
  await host.ended(id)
  expect(await countStarted()).toBe(before + 1)
})

test('one that takes longer is RUNNING for others while its caller still waits', async () => {
  const waiting = executeFor(60_000)
  await expect.poll(() => held.length).toBeGreaterThan(0)
  const [{ id }] = (
    await host.ask<{ content: [{ id: string }] }>('GET', `/api/executions?workflowId=${slow}`)
  ).content
  await host.until(id, ({ status }) => status === 'RUNNING')
  release()
  expect((await waiting).body).toMatchObject({ executionId: id, status: 'SUCCESS' })
})

test('one whose row is held for long is PENDING for its caller, who does not wait for that', async () => {
  const before = await countStarted()
  const waiting = executeFor(600)
  await expect.poll(() => held.length).toBeGreaterThan(0)
  const id = await host.store.db.transaction().execute(async (tx) => {
    const newest = tx.selectFrom('executions').select('id').where('workflowId', '=', slow)
    const { id } = await newest.orderBy('createdAt', 'desc').limit(1).forUpdate().executeTakeFirstOrThrow()
    const { status, body } = await waiting
    expect({ status, body }).toMatchObject({ status: 202, body: { executionId: id, status: 'PENDING' } })
    return id
  })
  await host.until(id, ({ status }) => status === 'RUNNING')
  release()
  await host.ended(id)
  expect(await countStarted()).toBe(before + 1)
})

test('the sweeper marks one whose process died before it did, and starts it no second time', async () => {
  const id = await startUnmarked()
  expect(await errandsOf(id)).toEqual(['START'])
  await host.store.db
    .updateTable('outbox')
    .set({ dueAt: new Date(0) })
    .where('subjectId', '=', id)
    .execute()
  await host.engine.sweep()
  expect((await host.read(id)).status).toBe('RUNNING')
  expect(held).toHaveLength(1)
  release()
  expect(await host.ended(id)).toMatchObject({ status: 'SUCCESS' })
})

test('one that is cancelled before it is marked ends CANCELLED, and so does its run', async () => {
  const id = await startUnmarked()
  await host.ask('POST', `/api/executions/${id}/cancel`)
  expect((await host.read(id)).status).toBe('CANCELLED')
  const handle = host.engine.client.workflow.getHandle(id)
  await expect.poll(async () => (await handle.describe()).status.name).not.toBe('RUNNING')
  await host.until(id, ({ nodeExecutions }) =>
    nodeExecutions.some(({ nodeId, status }) => nodeId === 'call' && status === 'CANCELLED'),
  )
  expect((await host.read(id)).status).toBe('CANCELLED')
  release()
})

test('the end of one that was cancelled before it was marked does not undo that', async () => {
  const id = await startUnmarked()
  host.use(undefined)
  await host.ask('POST', `/api/executions/${id}/cancel`)
  release()
  const handle = host.engine.client.workflow.getHandle(id)
  await expect.poll(async () => (await handle.describe()).status.name).toBe('COMPLETED')
  await host.until(id, ({ nodeExecutions }) => nodeExecutions.some(({ nodeId }) => nodeId === 'call'))
  expect(await host.read(id)).toMatchObject({ status: 'CANCELLED' })
  host.use(engine)
})

test('the run of one that is deleted with its workflow before it is marked is ended too', async () => {
  const workflowId = await host.create({
    nodes: [start, { id: 'call', type: 'HTTP_REQUEST', config: { method: 'GET', url } }],
    edges: [{ source: 'start', target: 'call' }],
  })
  host.use(dying)
  const { body } = await executeFor(1, workflowId)
  host.use(engine)
  await expect.poll(() => held.length).toBeGreaterThan(0)
  await host.ask('DELETE', `/api/workflows/${workflowId}`)
  const handle = host.engine.client.workflow.getHandle(body.executionId)
  const status = () =>
    handle.describe().then(
      (run) => run.status.name,
      () => 'GONE',
    )
  await expect.poll(status).not.toBe('RUNNING')
  release()
})

test('one that has a place at a limit is marked at once, since the places are counted by the rows', async () => {
  const settings = { concurrency: { limit: 1, whenFull: 'replace' } }
  await host.ask('PUT', `/api/workflows/${slow}`, { settings })
  host.use(dying)
  const { body } = await executeFor(1)
  host.use(engine)
  expect((await host.read(body.executionId)).status).toBe('RUNNING')
  await host.ask('POST', `/api/executions/${body.executionId}/cancel`)
  release()
})
