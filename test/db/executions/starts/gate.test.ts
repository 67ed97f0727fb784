import { expect, test } from 'vitest'
import { edges } from '../../../support/engine/graphs.ts'
import { keep } from '../../../support/keep.ts'
import { shareRunning } from '../../../support/running.ts'
import { startTarget } from '../../../support/servers/target.ts'

const target = await keep(startTarget())
const host = await keep(shareRunning())

/** Creates a workflow that calls the path once, with the execution's id in its idempotency key. */
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

test('queued executions start one after the other, in the order they were accepted', async () => {
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

test('the next execution starts, however the one before it ended', async () => {
  const id = await create('/hang', { concurrency: { limit: 1 }, timeoutMs: 1_500 })
  const ids: string[] = []
  for (let n = 0; n < 4; n++) ids.push(await host.execute(id, { n }))
  await hangs(ids[0]!)
  await cancel(ids[0]!)
  await hangs(ids[1]!)
  await host.engine.client.workflow.getHandle(ids[1]!).terminate('by hand')
  await host.ended(ids[1]!)
  await hangs(ids[2]!)
  // The third execution ends at its time limit, which starts the fourth.
  await hangs(ids[3]!)
  expect(await statusOf(ids[2]!)).toBe('CANCELLED')
  await cancel(ids[3]!)
  await host.ended(ids[3]!)
})

test('the policy replace cancels the open execution, and then starts the new one', async () => {
  const id = await create('/hang', { concurrency: { limit: 1, key: '{{ $trigger.n }}', policy: 'replace' } })
  const first = await host.execute(id, { n: 'a' })
  const bystander = await host.execute(id, { n: 'b' })
  await hangs(first)
  await hangs(bystander)
  const second = await host.execute(id, { n: 'a' })
  await hangs(second)
  const ended = await host.read(first)
  expect(ended).toMatchObject({ status: 'CANCELLED', errorMessage: 'A newer execution took its place' })
  const { startedAt } = await host.read(second)
  expect(startedAt! >= ended.completedAt!).toBe(true)
  expect(await statusOf(bystander)).toBe('RUNNING')
  for (const run of [second, bystander]) await cancel(run)
  await Promise.all([second, bystander].map((run) => host.ended(run)))
})

test('removing the limit starts all queued executions at once', async () => {
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
