import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { edges } from '../../../support/engine/graphs.ts'
import { keep } from '../../../support/keep.ts'
import { startRunning } from '../../../support/running.ts'

const host = await keep(startRunning({ continueAfterEvents: 200 }))

/** The outside world: answers with the number that it is asked for, or 422 while that one is broken. */
async function startShop() {
  const calls: { n: number; key: string }[] = []
  const broken = new Set<number>()
  const server = createServer((request, response) => {
    const n = Number(new URL(request.url!, 'http://shop').searchParams.get('n'))
    calls.push({ n, key: String(request.headers['idempotency-key']) })
    response.writeHead(broken.has(n) ? 422 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ sold: n, text: 'x'.repeat(n % 50 === 0 ? 2_000 : 1) }))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    calls,
    broken,
    url: `http://127.0.0.1:${port}/`,
    stop: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const shop = await keep(startShop())

const graph = (
  loop: Record<string, unknown>,
  more: { id: string; type: string }[] = [],
  path = ['start -> each', 'each -> end'],
) => ({
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    ...more,
    { id: 'each', type: 'FOR_EACH', config: { items: '{{ $trigger.list }}', ...loop } },
    {
      id: 'sell',
      type: 'HTTP_REQUEST',
      parentId: 'each',
      retry: { maxAttempts: 1 },
      config: { url: `${shop.url}?n={{ $item }}`, method: 'POST' },
    },
    {
      id: 'pick',
      type: 'SET',
      parentId: 'each',
      config: { values: { sold: '{{ $input.body.sold }}', at: '{{ $index }}' } },
    },
    { id: 'end', type: 'SET', config: { values: { items: '{{ $input.items }}' } } },
  ],
  edges: edges(...path, 'sell -> pick'),
})

const numbers = (count: number, from = 0) => Array.from({ length: count }, (_, at) => from + at)

/** Retries or reruns an execution, and returns the numbers that the shop was asked for by the new one. */
async function again(id: string, how: 'retry' | 'rerun', version = 'same') {
  const before = shop.calls.length
  const { executionId } = await host.ask<{ executionId: string }>('POST', `/api/executions/${id}/${how}`, {
    version,
  })
  const run = await host.ended(executionId)
  const calls = shop.calls.slice(before)
  return { run, calls, asked: calls.map(({ n }) => n).sort((a, b) => a - b) }
}

const sold = (items: number[]) => items.map((n, at) => ({ sold: n, at }))

test('a retry takes over the iterations that succeeded, and a retry of it those of both', {
  tags: 'long',
}, async () => {
  const list = numbers(120)
  shop.broken.add(100).add(110)
  const first = await host.run(graph({}), { list })
  expect(first.status).toBe('FAILED')

  shop.broken.delete(100)
  const second = await again(first.id, 'retry')
  expect(second.run.status).toBe('FAILED')
  expect(second.asked).toEqual(numbers(11, 100))
  // An answered failure is called again under a new key.
  expect(second.calls[0]!.key).toBe(`${second.run.id}:sell#100`)

  shop.broken.delete(110)
  const third = await again(second.run.id, 'retry')
  expect(third.run.status).toBe('SUCCESS')
  expect(third.asked).toEqual(numbers(10, 110))
  expect(third.run.outputData).toEqual({ items: sold(list) })

  const rerun = await again(first.id, 'rerun')
  expect(rerun.asked).toEqual(list)
  expect(rerun.calls.some(({ key }) => shop.calls.filter((call) => call.key === key).length > 1)).toBe(false)
})

test('of a loop that collects errors, only the items that failed are called again', async () => {
  const list = numbers(30, 500)
  shop.broken.add(503).add(504).add(529)
  const collecting = graph({ concurrency: 4, onItemError: 'collect' })
  const stop = { id: 'stop', type: 'STOP_AND_ERROR', config: { message: 'later' } }
  const first = await host.run(
    { nodes: [...collecting.nodes, stop], edges: [...collecting.edges, ...edges('end -> stop')] },
    { list },
  )
  expect(first.status).toBe('FAILED')
  shop.broken.clear()
  const second = await again(first.id, 'retry')
  expect(second.asked).toEqual([503, 504, 529])
  const { outputData } = second.run.nodeExecutions.find(({ nodeId }) => nodeId === 'end')!
  expect(outputData).toEqual({ items: sold(list) })
})

test('iterations beside the one that failed are done again unless all of their nodes have succeeded', async () => {
  const list = numbers(40, 1_000)
  shop.broken.add(1_020)
  const first = await host.run(graph({ concurrency: 10 }), { list })
  expect(first.status).toBe('FAILED')
  const done = new Set(shop.calls.filter(({ n }) => n >= 1_000 && n < 1_040).map(({ n }) => n))
  shop.broken.clear()
  const second = await again(first.id, 'retry')
  expect(second.run.status).toBe('SUCCESS')
  expect(second.run.outputData).toEqual({ items: sold(list) })
  expect(second.asked).toContain(1_020)
  // All that had not been called are called now, and most that had been called are not.
  for (const n of list) if (!done.has(n)) expect(second.asked).toContain(n)
  expect(second.asked.length).toBeLessThanOrEqual(40 - 10)
})

test('another version, another item, or something done again before the loop takes nothing over', async () => {
  const list = numbers(4, 2_000)
  shop.broken.add(2_003)
  const id = await host.create(graph({}))
  const version = await host.ended(await host.execute(id, { list }))
  expect(version.status).toBe('FAILED')
  shop.broken.clear()
  await host.ask('PUT', `/api/workflows/${id}`, graph({ concurrency: 2 }))
  expect((await again(version.id, 'retry', 'current')).asked).toEqual(list)

  shop.broken.add(2_003)
  const flaky = {
    id: 'flaky',
    type: 'STOP_AND_ERROR',
    onError: 'CONTINUE',
    config: { message: 'handled' },
  }
  const before = await host.run(graph({}, [flaky], ['start -> flaky', 'flaky -> each', 'each -> end']), {
    list,
  })
  expect(before.status).toBe('FAILED')
  shop.broken.clear()
  expect((await again(before.id, 'retry')).asked).toEqual(list)

  shop.broken.add(2_003)
  const other = await host.run(graph({ items: '{{ [$execution.id, 2001, 2003] }}' }), { list })
  expect(other.status).toBe('FAILED')
  shop.broken.clear()
  const { calls } = await again(other.id, 'retry')
  // The first item is the execution's id, so it is another one now.
  expect(calls.map(({ n }) => n)).toEqual([Number.NaN, 2_003])
})
