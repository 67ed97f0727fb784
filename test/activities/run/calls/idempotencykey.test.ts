import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { edges } from '../../../support/engine/graphs.ts'
import { keep } from '../../../support/keep.ts'
import { shareRunning } from '../../../support/running.ts'
import { until } from '../../../support/until.ts'

const host = await keep(shareRunning())

/** The outside world: answers what `says` has for the path, a status or nothing at all, and otherwise 200. */
async function startWorld() {
  const calls: { path: string; key: string; seen: string }[] = []
  const says = new Map<string, number | 'nothing' | 'cut'>()
  const hanging = new Map<string, ServerResponse>()
  const server = createServer(async (request, response) => {
    const path = request.url!.split('?')[0]!
    const seen = `${request.method} ${request.url} ${await text(request)}`
    calls.push({ path, key: String(request.headers['idempotency-key']), seen })
    const answer = says.get(path) ?? 200
    if (answer === 'nothing') return hanging.set(path, response)
    if (answer === 'cut') return request.socket.destroy()
    return response.writeHead(answer, { 'content-type': 'application/json' }).end('{}')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    says,
    url: `http://127.0.0.1:${port}`,
    /** Answers the newest request that hangs. */
    answer: (path: string, status: number) => hanging.get(path)!.writeHead(status).end('{}'),
    of: (path: string) => calls.filter((call) => call.path === path),
    stop: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const world = await keep(startWorld())

const call = (path: string, config: Record<string, unknown> = {}, more: Record<string, unknown> = {}) => ({
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    {
      id: 'pay',
      type: 'HTTP_REQUEST',
      retry: { maxAttempts: 1 },
      ...more,
      config: { url: `${world.url}${path}`, method: 'POST', body: { amount: 5 }, timeoutMs: 400, ...config },
    },
  ],
  edges: edges('start -> pay'),
})

async function start(id: string, how: 'retry' | 'rerun'): Promise<string> {
  const path = `/api/executions/${id}/${how}`
  return (await host.ask<{ executionId: string }>('POST', path, { version: 'same' })).executionId
}

const again = async (id: string, how: 'retry' | 'rerun' = 'retry') => host.ended(await start(id, how))
const keysOf = (path: string) => world.of(path).map(({ key }) => key)

test('a retry sends a request that was not answered under the first key, and a retry of that too', {
  tags: 'long',
}, async () => {
  world.says.set('/slow', 'nothing')
  const first = await host.run(call('/slow'))
  expect(first.status).toBe('FAILED')
  const key = `${first.id}:pay`
  const second = await again(first.id)
  expect(second.status).toBe('FAILED')
  const third = await again(second.id)
  expect(keysOf('/slow')).toEqual([key, key, key])

  const rerun = await again(first.id, 'rerun')
  expect(keysOf('/slow').at(-1)).toBe(`${rerun.id}:pay`)

  world.says.set('/slow', 500)
  const fourth = await again(third.id)
  expect(keysOf('/slow').at(-1)).toBe(key)
  // Now it was answered.
  const fifth = await again(fourth.id)
  expect(keysOf('/slow').at(-1)).toBe(`${fifth.id}:pay`)
})

test('so it does after the limit of the node and after a lost connection', async () => {
  world.says.set('/limit', 'nothing').set('/cut', 'cut')
  const limited = await host.run(call('/limit', { timeoutMs: 60_000 }, { timeoutMs: 400 }))
  const cut = await host.run(call('/cut'))
  expect([limited.status, cut.status]).toEqual(['FAILED', 'FAILED'])
  world.says.clear()
  expect((await again(limited.id)).status).toBe('SUCCESS')
  expect((await again(cut.id)).status).toBe('SUCCESS')
  expect(keysOf('/limit')).toEqual([`${limited.id}:pay`, `${limited.id}:pay`])
  expect(keysOf('/cut')).toEqual([`${cut.id}:pay`, `${cut.id}:pay`])
})

test.each([
  ['500', '/broken', 500],
  ['404', '/absent', 404],
])('a failure that was answered with %s gets a new key', async (_, path, status) => {
  world.says.set(path, status)
  const first = await host.run(call(path))
  const second = await again(first.id)
  expect(keysOf(path)).toEqual([`${first.id}:pay`, `${second.id}:pay`])
})

test('the last of several attempts decides', async () => {
  world.says.set('/late', 'nothing')
  const two = { retry: { maxAttempts: 2, initialIntervalMs: 1_000 } }
  const running = await host.execute(await host.create(call('/late', {}, two)))
  await until(() => keysOf('/late').length === 1)
  world.says.set('/late', 503)
  expect((await host.ended(running)).status).toBe('FAILED')
  const second = await again(running)
  const keys = keysOf('/late')
  expect(keys.slice(0, 2)).toEqual([`${running}:pay`, `${running}:pay`])
  expect(keys.slice(2).every((key) => key === `${second.id}:pay`)).toBe(true)
})

test('an answer that came slowly is an answer', async () => {
  world.says.set('/sleepy', 'nothing')
  const running = await host.execute(await host.create(call('/sleepy', { timeoutMs: 60_000 })))
  await until(() => noted(running))
  world.answer('/sleepy', 502)
  expect((await host.ended(running)).status).toBe('FAILED')
  world.says.clear()
  const second = await again(running)
  expect(keysOf('/sleepy')).toEqual([`${running}:pay`, `${second.id}:pay`])
})

test.each([
  ['body', { body: { amount: '{{ $vars.amount }}' } }],
  ['URL', { query: { amount: '{{ $vars.amount }}' } }],
  ['method', { method: '{{ $vars.amount = "six" ? "PUT" : "POST" }}' }],
])('another %s is another request', async (what, config) => {
  const path = `/another${what}`
  world.says.set(path, 'nothing')
  const variable = { teamId: host.teamId, key: 'amount', value: 'five' }
  const { id } = await host.ask<{ id: string }>('POST', '/api/variables', variable)
  const first = await host.run(call(path, config))
  expect(first.status).toBe('FAILED')
  await host.ask('PUT', `/api/variables/${id}`, { value: 'six' })
  const { seen } = world.of(path)[0]!
  // The value of a variable may be a second old.
  const second = await until(() => again(first.id), { holds: () => world.of(path).at(-1)!.seen !== seen })
  await host.ask('DELETE', `/api/variables/${id}`)
  const keys = keysOf(path)
  expect(keys.pop()).toBe(`${second.id}:pay`)
  expect(new Set(keys)).toEqual(new Set([`${first.id}:pay`]))
})

test.each(['at once', 'later'])(
  'a call that a cancel broke off %s is sent again under its key',
  async (when) => {
    const path = `/cancelled${when.length}`
    world.says.set(path, 'nothing')
    const running = await host.execute(await host.create(call(path, { timeoutMs: 60_000 })))
    await until(() => keysOf(path).length === 1)
    if (when === 'later') await until(() => noted(running))
    await host.ask('POST', `/api/executions/${running}/cancel`)
    expect((await host.ended(running)).status).toBe('CANCELLED')
    // The execution does not wait for its call.
    await until(() => noted(running))
    world.says.clear()
    expect((await again(running)).status).toBe('SUCCESS')
    expect(keysOf(path)).toEqual([`${running}:pay`, `${running}:pay`])
  },
)

test('in a loop each iteration has its own', async () => {
  const { nodes } = call('/loop/{{ $item }}')
  const graph = {
    nodes: [
      nodes[0]!,
      { id: 'each', type: 'FOR_EACH', config: { items: '{{ $trigger.list }}', onItemError: 'collect' } },
      { ...nodes[1]!, parentId: 'each' },
      { id: 'stop', type: 'STOP_AND_ERROR', config: { message: 'later' } },
    ],
    edges: edges('start -> each', 'each -> stop'),
  }
  world.says.set('/loop/1', 'nothing').set('/loop/2', 503)
  const first = await host.run(graph, { list: [0, 1, 2] })
  expect(first.status).toBe('FAILED')
  const second = await again(first.id)
  expect(keysOf('/loop/0')).toEqual([`${first.id}:pay#0`])
  expect(keysOf('/loop/1')).toEqual([`${first.id}:pay#1`, `${first.id}:pay#1`])
  expect(keysOf('/loop/2')).toEqual([`${first.id}:pay#2`, `${second.id}:pay#2`])
})

test('a retry that never came to the call does not lose the first key', async () => {
  const { nodes } = call('/lost/{{ $item }}')
  const graph = {
    nodes: [
      nodes[0]!,
      { id: 'each', type: 'FOR_EACH', config: { items: '{{ $trigger.list }}' } },
      { ...nodes[1]!, parentId: 'each' },
      { ...nodes[1]!, id: 'ask', parentId: 'each', config: { url: `${world.url}/price` } },
    ],
    edges: edges('start -> each', 'ask -> pay'),
  }
  world.says.set('/lost/7', 'nothing')
  const first = await host.run(graph, { list: [7] })
  world.says.set('/price', 404)
  const second = await again(first.id)
  expect([first.status, second.status]).toEqual(['FAILED', 'FAILED'])
  world.says.clear()
  expect((await again(second.id)).status).toBe('SUCCESS')
  expect(keysOf('/lost/7')).toEqual([`${first.id}:pay#0`, `${first.id}:pay#0`])
})

/** Whether the key of the call is noted. */
async function noted(executionId: string): Promise<boolean> {
  const { store } = host
  const row = await store.db
    .selectFrom('nodeExecutions')
    .select('requestKey')
    .where('executionId', '=', executionId)
    .where('nodeId', '=', 'pay')
    .executeTakeFirst()
  return Boolean(row?.requestKey)
}
