import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { nodeOf } from '../../../support/client.ts'
import { edges } from '../../../support/engine/graphs.ts'
import { keep } from '../../../support/keep.ts'
import { startRunning } from '../../../support/running.ts'

const host = await keep(startRunning({ continueAfterEvents: 200 }))

/** The outside world: answers with the number that it is asked for, or 422 while that one is broken. */
async function startShop() {
  const calls: { n: number; key: string }[] = []
  const broken = new Set<number>()
  let [open, most] = [0, 0]
  const server = createServer((request, response) => {
    const n = Number(new URL(request.url!, 'http://shop').searchParams.get('n'))
    calls.push({ n, key: String(request.headers['idempotency-key']) })
    most = Math.max(most, ++open)
    setTimeout(() => {
      open--
      response.writeHead(broken.has(n) ? 422 : 200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ sold: n }))
    }, 20)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    /** What was called since the last time, and how many calls were open at once. */
    read: () => {
      const seen = { calls: calls.splice(0), most }
      most = 0
      return seen
    },
    broken,
    url: `http://127.0.0.1:${port}/`,
    stop: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const shop = await keep(startShop())

const graph = (call: Record<string, unknown> = {}) => ({
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    {
      id: 'sell',
      type: 'HTTP_REQUEST',
      perItem: true,
      retry: { maxAttempts: 1 },
      config: { url: `${shop.url}?n={{ $item.n }}&of={{ $count($input.items) }}`, method: 'POST' },
      ...call,
    },
    {
      id: 'pick',
      type: 'SET',
      perItem: true,
      config: { values: { sold: '{{ $item.body.sold }}' } },
    },
    ...('onError' in call ? [{ id: 'rescue', type: 'NO_OP', perItem: true, config: {} }] : []),
  ],
  edges: edges('start -> sell', 'sell -> pick', ...('onError' in call ? ['sell:error -> rescue'] : [])),
})

const numbers = (count: number) => ({ items: Array.from({ length: count }, (_, n) => ({ n })) })

test('a call is made for each item, one after the other, each with a record and a key of its own', async () => {
  const run = await host.run(graph(), numbers(3))
  expect(run.status).toBe('SUCCESS')
  expect(run.outputData).toEqual({ items: [{ sold: 0 }, { sold: 1 }, { sold: 2 }], from: [0, 1, 2] })
  const { calls, most } = shop.read()
  expect(calls.map(({ n }) => n)).toEqual([0, 1, 2])
  expect(new Set(calls.map(({ key }) => key)).size).toBe(3)
  expect(most).toBe(1)
  const records = run.nodeExecutions.filter(({ nodeId }) => nodeId === 'sell')
  expect(records.map(({ iteration }) => iteration)).toEqual([null, '0', '1', '2'])
  expect(records[2]).toMatchObject({ inputData: { n: 1 }, outputData: { status: 200, body: { sold: 1 } } })
  expect(records[0]!.outputData).toMatchObject({ items: [{ status: 200 }, {}, {}], from: [0, 1, 2] })
  const page = await host.call('GET', `/api/executions/${run.id}/nodes?nodeId=sell`, host.admin)
  expect(page.body.totalElements).toBe(4)
})

test('as many calls are made at once as the concurrency says', async () => {
  const run = await host.run(graph({ perItem: { concurrency: 4 } }), numbers(12))
  expect(run.status).toBe('SUCCESS')
  const { items, from } = run.outputData as { items: unknown[]; from: unknown[] }
  expect(items).toEqual(numbers(12).items.map(({ n }) => ({ sold: n })))
  expect(from).toEqual(numbers(12).items.map(({ n }) => n))
  const { most } = shop.read()
  expect(most).toBeGreaterThan(1)
  expect(most).toBeLessThanOrEqual(4)
})

test('without items nothing is called, and nothing behind it runs', async () => {
  const run = await host.run(graph(), numbers(0))
  expect(run.status).toBe('SUCCESS')
  expect(shop.read().calls).toEqual([])
  expect(run.nodeExecutions.map(({ nodeId }) => nodeId)).toEqual(['start', 'sell'])
})

test('the first call that fails ends the node, and says which item it was', async () => {
  shop.broken.add(1)
  const run = await host.run(graph(), numbers(3))
  expect(run.status).toBe('FAILED')
  expect(run.errorMessage).toMatch(/^Item 1: .*responded with 422/)
  expect(shop.read().calls.map(({ n }) => n)).toEqual([0, 1])
  shop.broken.clear()
})

test('items whose call has failed leave by error, with the item; the others go on', async () => {
  shop.broken.add(1)
  const run = await host.run(graph({ onError: 'BRANCH' }), numbers(3))
  shop.broken.clear()
  shop.read()
  expect(run.status).toBe('SUCCESS')
  expect(nodeOf(run, 'sell').handles).toEqual([null, 'error'])
  expect(nodeOf(run, 'pick').outputData).toEqual({ items: [{ sold: 0 }, { sold: 2 }], from: [0, 1] })
  expect(nodeOf(run, 'rescue').outputData).toEqual({
    items: [{ n: 1, error: { type: 'Http422', nodeId: 'sell', message: expect.stringContaining('422') } }],
    from: [0],
  })
})

test('a retry makes only the calls again that had not succeeded', async () => {
  shop.broken.add(2)
  const run = await host.run(graph(), numbers(5))
  expect(run.status).toBe('FAILED')
  shop.read()
  shop.broken.clear()
  const { body } = await host.call('POST', `/api/executions/${run.id}/retry`, host.admin, {})
  const again = await host.ended(String(body.executionId))
  expect(again.status).toBe('SUCCESS')
  expect(again.outputData).toEqual({
    items: [0, 1, 2, 3, 4].map((sold) => ({ sold })),
    from: [0, 1, 2, 3, 4],
  })
  expect(shop.read().calls.map(({ n }) => n)).toEqual([2, 3, 4])
})

test('within a loop, and where a node is executed alone, each item is called for too', async () => {
  const run = await host.run(
    {
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        { id: 'each', type: 'FOR_EACH', config: { items: [{ items: [{ n: 1 }, { n: 2 }] }, [{ n: 3 }]] } },
        {
          id: 'sell',
          parentId: 'each',
          type: 'HTTP_REQUEST',
          perItem: true,
          config: { url: `${shop.url}?n={{ $item.n }}&of={{ $count($input.items) }}` },
        },
        {
          id: 'pick',
          parentId: 'each',
          type: 'SET',
          perItem: true,
          config: { values: { sold: '{{ $item.body.sold }}' } },
        },
      ],
      edges: edges('start -> each', 'sell -> pick'),
    },
    {},
  )
  expect(run.status).toBe('SUCCESS')
  expect(run.outputData).toEqual({
    items: [
      { items: [{ sold: 1 }, { sold: 2 }], from: [0, 1] },
      { items: [{ sold: 3 }], from: [0] },
    ],
  })
  const inner = run.nodeExecutions.filter(({ nodeId }) => nodeId === 'sell').map(({ iteration }) => iteration)
  expect(inner.sort()).toEqual(['0', '0.0', '0.1', '1', '1.0'])
  const workflowId = await host.create(graph())
  const { body } = await host.call('POST', `/api/workflows/${workflowId}/nodes/sell/run`, host.admin, {
    input: numbers(2),
  })
  const alone = await host.ended(String(body.executionId))
  expect(alone.status).toBe('SUCCESS')
  expect(alone.outputData).toMatchObject({
    items: [{ body: { sold: 0 } }, { body: { sold: 1 } }],
    from: [0, 1],
  })
})

test('a sub-workflow is started for each item, or once for all of them', async () => {
  const child = await host.create({
    nodes: [
      { id: 'in', type: 'SUB_WORKFLOW_TRIGGER', config: {} },
      { id: 'out', type: 'SET', config: { values: { got: '{{ $trigger }}' } } },
    ],
    edges: edges('in -> out'),
  })
  const parent = (more: Record<string, unknown>) => ({
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'sub', type: 'SUB_WORKFLOW', config: { workflowId: child }, ...more },
    ],
    edges: edges('start -> sub'),
  })
  const each = await host.run(parent({ perItem: { concurrency: 2 } }), numbers(2))
  expect(each.status, each.errorMessage!).toBe('SUCCESS')
  expect(each.outputData).toEqual({ items: [{ got: { n: 0 } }, { got: { n: 1 } }], from: [0, 1] })
  const once = await host.run(parent({ allItems: true }), numbers(2))
  expect(once.outputData).toEqual({ items: [{ got: numbers(2) }], from: [[0, 1]] })
})
