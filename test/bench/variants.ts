import { fork } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { Done, Order } from './floor.ts'
import { createPoller } from './load.ts'
import { listNodeOptions, type Stand } from './stand.ts'
import { readUsage } from './usage.ts'

/**
 * Something that is measured. `one` runs it once, as one of
 * `inFlight` at the same time, and resolves with its ms.
 */
export type Variant = {
  name: string
  what: string
  one: (inFlight: number) => Promise<number>
  /** It takes so long that only few are in flight, even under load. */
  heavy?: true
  /** The number of GETs so far; undefined if this variant does not poll. */
  polls?: () => number
}

type Node = { id: string; type: string; config: unknown; parentId?: string }

const trigger: Node = { id: 'start', type: 'WEBHOOK_TRIGGER', config: { path: 'in' } }

/** WEBHOOK_TRIGGER -> SET -> IF_ELSE -> SET. */
export const FOUR = {
  nodes: [
    trigger,
    {
      id: 'order',
      type: 'SET',
      config: { values: { amount: '{{ $input.amount }}', tax: '{{ $input.amount * 0.2 }}' } },
    },
    { id: 'large', type: 'IF_ELSE', config: { condition: '$input.amount >= 100' } },
    {
      id: 'review',
      type: 'SET',
      config: { values: { decision: 'review', text: 'total: {{ $input.amount + $input.tax }}' } },
    },
  ],
  edges: [
    { source: 'start', target: 'order' },
    { source: 'order', target: 'large' },
    { source: 'large', sourceHandle: 'true', target: 'review' },
  ],
}

/** A loop of a thousand iterations with one pure node in it. */
const LOOP = {
  nodes: [
    trigger,
    { id: 'each', type: 'FOR_EACH', config: { items: '{{ [1..1000] }}' } },
    { id: 'set', parentId: 'each', type: 'SET', config: { values: { amount: '{{ $item + 1 }}' } } },
  ],
  edges: [{ source: 'start', target: 'each' }],
}

/** 10,000 items, and what they are worked on with. */
const ITEMS: Node = {
  id: 'list',
  type: 'SET',
  config: { values: { items: '{{ [1..10000].{"id": $, "name": "n" & $} }}' } },
}
const ON_ITEMS: [name: string, what: string, node?: Node][] = [
  ['g', '10,000 items, made by JSONata'],
  [
    'h',
    'g, and MAP over them',
    {
      id: 'map',
      type: 'MAP',
      config: { items: '{{ $input.items }}', expression: '{"id": $item.id, "name": $uppercase($item.name)}' },
    },
  ],
  [
    'i',
    'g, and CODE once for all',
    {
      id: 'all',
      type: 'CODE',
      config: { code: 'return $input.items.map(({ id, name }) => ({ id, name: name.toUpperCase() }))' },
    },
  ],
  [
    'j',
    'g, and CODE once for each',
    {
      id: 'each',
      type: 'CODE',
      config: { mode: 'each', code: 'return { id: $item.id, name: $item.name.toUpperCase() }' },
    },
  ],
]

const INPUT = { amount: 120 }

/**
 * Creates a workflow whose `one` executes it over HTTP: POST execute, then GET until the status is SUCCESS.
 */
export async function createGraphRun(stand: Stand, name: string, graph: { nodes: Node[]; edges: unknown[] }) {
  const { teamId } = stand
  const workflow = await stand.ask<{ id: string }>('POST', '/api/workflows', { teamId, name, ...graph })
  const body = { teamId, data: INPUT }
  const ended = async (id: string) => {
    const path = `/api/executions/${id}`
    const run = await stand.ask<{ status: string; errorMessage: string | null }>('GET', path)
    if (run.status === 'SUCCESS') return true
    if (run.status === 'PENDING' || run.status === 'RUNNING') return false
    throw new Error(`an execution of ${name} ended as ${run.status}: ${run.errorMessage}`)
  }
  // One poller per load, because what it learns from executions that are alone does not hold among many.
  const pollers = new Map<number, ReturnType<typeof createPoller>>()
  return {
    workflowId: workflow.id,
    polls: () => [...pollers.values()].reduce((sum, { polls }) => sum + polls, 0),
    async one(inFlight: number): Promise<number> {
      const poller = pollers.get(inFlight) ?? createPoller(ended)
      pollers.set(inFlight, poller)
      const since = performance.now()
      const path = `/api/workflows/${workflow.id}/execute`
      const { executionId } = await stand.ask<{ executionId: string }>('POST', path, body)
      return poller.await(executionId, since)
    },
  }
}

/** Creates all variants of the table. `stop` ends what was started for them. */
export async function createVariants(stand: Stand) {
  const floor = await startFloor(stand)
  const target = await startTarget()
  const sets = Array.from({ length: 40 }, (_, i) => ({
    id: `set${i}`,
    type: 'SET',
    config: { values: { amount: '{{ $input.amount + 1 }}' } },
  }))
  const calls = Array.from({ length: 5 }, (_, i) => ({
    id: `call${i}`,
    type: 'HTTP_REQUEST',
    config: { method: 'GET', url: target.url },
  }))
  const variants: Variant[] = [
    { name: 'a', what: 'floor: one local activity, handwritten', one: () => floor.one('runFloor', INPUT) },
    { name: 'b', what: '4 nodes over HTTP', ...(await createGraphRun(stand, 'four', FOUR)) },
    { name: 'c', what: '40 SET nodes over HTTP', ...(await createGraphRun(stand, 'forty', chain(sets))) },
    {
      name: 'd',
      what: '5 HTTP_REQUEST nodes over HTTP',
      ...(await createGraphRun(stand, 'five', chain(calls))),
    },
    {
      name: 'e',
      what: 'FOR_EACH over 1,000 items, with one SET',
      heavy: true,
      ...(await createGraphRun(stand, 'loop', LOOP)),
    },
    {
      name: 'f',
      what: '100 HTTP_REQUEST nodes in parallel',
      heavy: true,
      ...(await createGraphRun(stand, 'fan', fanOut(target.url))),
    },
    ...(await Promise.all(
      ON_ITEMS.map(async ([name, what, node]) => ({
        name,
        what,
        heavy: true as const,
        ...(await createGraphRun(stand, name, chain(node ? [ITEMS, node] : [ITEMS]))),
      })),
    )),
    {
      name: 'fan',
      what: '100 activities in parallel, handwritten',
      heavy: true,
      one: () => floor.one('runFan', { url: target.url }),
    },
    {
      name: 'twin',
      what: '5 activities, handwritten',
      one: () => floor.one('runCalls', { url: target.url }),
    },
  ]
  return {
    variants,
    readUsage: () => ({
      ...stand.readUsage(),
      handwritten: floor.readUsage(),
      client: readUsage(process.pid, { children: false }),
    }),
    async stop() {
      floor.stop()
      await target.stop()
    },
  }
}

function fanOut(url: string) {
  const calls = Array.from({ length: 100 }, (_, i) => ({
    id: `call${i}`,
    type: 'HTTP_REQUEST',
    config: { method: 'GET', url },
  }))
  const join = { id: 'join', type: 'MERGE', config: { mode: 'append' } }
  const edges = calls.flatMap(({ id }) => [
    { source: 'start', target: id },
    { source: id, target: 'join' },
  ])
  return { nodes: [trigger, ...calls, join], edges }
}

/** A trigger and the nodes one after the other. */
export function chain(nodes: Node[]) {
  const all = [trigger, ...nodes]
  const edges = nodes.map((node, i) => ({ source: all[i]!.id, target: node.id }))
  return { nodes: all, edges }
}

/** Starts the process of the handwritten workflows, floor.ts. */
export async function startFloor(stand: Stand) {
  const path = fileURLToPath(new URL('./floor.ts', import.meta.url))
  const child = fork(path, [stand.temporalAddress, stand.dataDir], {
    execArgv: listNodeOptions(),
  })
  const waiting = new Map<number, (done: Done) => void>()
  let last = 0
  const ready = new Promise<Done>((resolve, reject) => {
    waiting.set(0, resolve)
    child.once('exit', (code) => reject(new Error(`floor.ts ended with code ${code}`)))
  })
  child.on('message', (done: Done) => waiting.get(done.id)?.(done))
  await ready
  return {
    async one(run: Order['run'], input: unknown): Promise<number> {
      const since = performance.now()
      const id = ++last
      const done = await new Promise<Done>((resolve) => {
        waiting.set(id, resolve)
        child.send({ id, run, input } satisfies Order)
      })
      waiting.delete(id)
      if (done.error) throw new Error(`${run} failed: ${done.error}`)
      return performance.now() - since
    },
    readUsage: () => readUsage(child.pid ?? 0, { children: false }),
    stop: () => child.disconnect(),
  }
}

/** A server that answers every request at once. */
export async function startTarget() {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
