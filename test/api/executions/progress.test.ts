import { expect, test } from 'vitest'
import { rebuildExecution } from '../../../activities/temporal/rebuild.ts'
import { nodeOf } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import { readEvents } from '../../support/events.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'
import { startWorld } from '../../support/servers/world.ts'

const host = await keep(shareRunning())
const world = await keep(
  startWorld({
    '/once': ({ response, count }) => response.writeHead(count === 1 ? 400 : 200).end('said'),
    '/fine': ({ response }) => response.writeHead(200).end('said'),
  }),
)
const START = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }

test('a record says until when its node waits, while it does, and how many items a loop has', async () => {
  const graph = {
    nodes: [
      START,
      { id: 'wait', type: 'WAIT', config: { durationMs: 3_600_000 } },
      { id: 'ask', type: 'APPROVAL', config: { timeoutMs: 120_000 } },
      { id: 'event', type: 'WAIT_FOR_EVENT', config: { name: 'go' } },
      { id: 'each', type: 'FOR_EACH', config: { items: '{{ [1, 2, 3, 4, 5] }}', concurrency: 2 } },
      { id: 'body', parentId: 'each', type: 'WAIT_FOR_EVENT', config: { name: 'next' } },
    ],
    edges: edges('start -> wait', 'start -> ask', 'start -> event', 'start -> each'),
  }
  const began = Date.now()
  const id = await host.execute(await host.create(graph))
  const events = readEvents(await host.request(`/api/executions/${id}/events`, { as: host.admin })).all()
  const run = await host.until(id, ({ nodeExecutions }) => {
    const of = (nodeId: string) => nodeExecutions.find((node) => node.nodeId === nodeId)
    return of('wait')?.waitingUntil != null && of('ask')?.waitingUntil != null && of('body') !== undefined
  })
  const left = (nodeId: string) => Date.parse(nodeOf(run, nodeId).waitingUntil!) - began
  expect(Math.round(left('wait') / 60_000)).toBe(60)
  expect(Math.round(left('ask') / 60_000)).toBe(2)
  expect(nodeOf(run, 'event')).toMatchObject({ status: 'RUNNING', waitingUntil: null, itemCount: null })
  expect(nodeOf(run, 'each')).toMatchObject({ status: 'RUNNING', waitingUntil: null, itemCount: 5 })
  expect(nodeOf(run, 'each')).not.toHaveProperty('itemsTaken')

  const { client, sealer } = host.engine
  await rebuildExecution({ store: host.store, client, sealer }, id)
  const again = await host.read(id)
  expect(nodeOf(again, 'wait').waitingUntil).toBe(nodeOf(run, 'wait').waitingUntil)
  expect(nodeOf(again, 'each').itemCount).toBe(5)

  await host.ask('POST', `/api/executions/${id}/cancel`)
  const over = await host.ended(id)
  expect(over.nodeExecutions.map(({ waitingUntil }) => waitingUntil)).toEqual(
    over.nodeExecutions.map(() => null),
  )
  expect(nodeOf(over, 'each').itemCount).toBe(5)
  const told = (await events).map(({ data }) => data)
  expect(told).toContainEqual(
    expect.objectContaining({ nodeId: 'wait', waitingUntil: nodeOf(run, 'wait').waitingUntil }),
  )
  expect(told).toContainEqual(expect.objectContaining({ nodeId: 'each', status: 'RUNNING', itemCount: 5 }))
})

test('a retry says how many items it has taken over; those of values that are not kept are counted too', async () => {
  const graph = {
    nodes: [
      START,
      { id: 'each', type: 'FOR_EACH', config: { items: '{{ [1, 2, 3] }}', concurrency: 1 } },
      {
        ...{ id: 'call', parentId: 'each', type: 'HTTP_REQUEST' },
        config: { url: `${world.url}/{{ $item = 3 ? "once" : "fine" }}` },
      },
    ],
    edges: edges('start -> each'),
  }
  const failed = await host.run(graph)
  expect(failed.status).toBe('FAILED')
  expect(nodeOf(failed, 'each')).toMatchObject({ status: 'FAILED', itemCount: 3 })
  expect(nodeOf(failed, 'each')).not.toHaveProperty('itemsTaken')
  const retry = await host.ask<{ executionId: string }>('POST', `/api/executions/${failed.id}/retry`, {})
  const retried = await host.ended(retry.executionId)
  expect(nodeOf(retried, 'each')).toMatchObject({ status: 'SUCCESS', itemCount: 3, itemsTaken: 2 })
  expect(retried.nodeExecutions.filter(({ nodeId }) => nodeId === 'call')).toHaveLength(1)

  const unkept = await host.run({ ...graph, settings: { saveData: { outputs: false } } })
  expect(nodeOf(unkept, 'each')).toMatchObject({ status: 'SUCCESS', itemCount: 3, outputData: null })
})
