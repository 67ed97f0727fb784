import { afterAll, beforeAll, expect, test } from 'vitest'
import { edges } from '../graphs.ts'
import { type Running, startRunning } from '../running.ts'
import { startTarget, type Target } from '../target.ts'

let host: Running
let target: Target
beforeAll(async () => {
  target = await startTarget()
  host = await startRunning()
})
afterAll(async () => {
  await host.stop()
  await target.stop()
})

/** Calls the path once, with the run's id in its idempotency key. */
const create = (path: string, settings: Record<string, unknown>) =>
  host.create({
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'call', type: 'HTTP_REQUEST', config: { method: 'POST', url: target.url + path } },
    ],
    edges: edges('start -> call'),
    settings,
  })
const called = (id: string) => target.calls.some(({ key }) => key?.startsWith(id))
const hangs = (id: string) => target.until(() => called(id))
const cancel = (id: string) => host.ask('POST', `/api/executions/${id}/cancel`)
const statusOf = async (id: string) => (await host.read(id)).status

test('one after the other, in the order they came', async () => {
  const id = await create('/slow?ms=20', { concurrency: { limit: 1 } })
  const ids: string[] = []
  for (let n = 0; n < 6; n++) ids.push(await host.execute(id, { n }))
  const ended = await Promise.all(ids.map((run) => host.ended(run)))
  expect(new Set(ended.map(({ status }) => status))).toEqual(new Set(['SUCCESS']))
  const order = target.calls.map(({ key }) => ids.findIndex((run) => key?.startsWith(run)))
  expect(order.filter((at) => at >= 0)).toEqual([0, 1, 2, 3, 4, 5])
  for (const [at, run] of ended.entries()) {
    const before = ended[at - 1]
    if (before) expect(run.startedAt! >= before.completedAt!).toBe(true)
  }
})

test('however a run ends, the next begins', async () => {
  const id = await create('/hang', { concurrency: { limit: 1 }, timeoutMs: 1_500 })
  const ids: string[] = []
  for (let n = 0; n < 4; n++) ids.push(await host.execute(id, { n }))
  await hangs(ids[0]!)
  await cancel(ids[0]!)
  await hangs(ids[1]!)
  await host.engine.client.workflow.getHandle(ids[1]!).terminate('by hand')
  await host.ended(ids[1]!)
  await hangs(ids[2]!)
  // This one is late.
  await hangs(ids[3]!)
  expect(await statusOf(ids[2]!)).toBe('CANCELLED')
  await cancel(ids[3]!)
  await host.ended(ids[3]!)
})

test('replace cancels what runs, and begins when it has ended', async () => {
  const id = await create('/hang', { concurrency: { limit: 1, key: '{{ $trigger.n }}', policy: 'replace' } })
  const first = await host.execute(id, { n: 'a' })
  const bystander = await host.execute(id, { n: 'b' })
  await hangs(first)
  await hangs(bystander)
  const second = await host.execute(id, { n: 'a' })
  const third = await host.execute(id, { n: 'a' })
  await hangs(third)
  const errorMessage = 'A newer run took its place'
  expect(await host.read(first)).toMatchObject({ status: 'CANCELLED', errorMessage })
  expect(await host.read(second)).toMatchObject({ status: 'CANCELLED', errorMessage, nodeExecutions: [] })
  expect(await statusOf(bystander)).toBe('RUNNING')
  expect(called(second)).toBe(false)
  for (const run of [third, bystander]) await cancel(run)
  await Promise.all([third, bystander].map((run) => host.ended(run)))
})

test('a limit that is lifted starts those who wait, at once', async () => {
  const id = await create('/hang', { concurrency: { limit: 1 } })
  const ids: string[] = []
  for (let n = 0; n < 3; n++) ids.push(await host.execute(id, { n }))
  await hangs(ids[0]!)
  await host.engine.sweep()
  expect(await Promise.all(ids.map(statusOf))).toEqual(['RUNNING', 'PENDING', 'PENDING'])
  await host.ask('PUT', `/api/workflows/${id}`, { settings: { concurrency: null } })
  await Promise.all(ids.map(hangs))
  await host.ask('DELETE', `/api/workflows/${id}`)
})
