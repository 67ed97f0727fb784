import { setTimeout as sleep } from 'node:timers/promises'
import { applyLoad, type Load, median, percentile } from './load.ts'
import type { Stand } from './stand.ts'
import { chain, startFloor, startTarget } from './variants.ts'

const WARM_UP_SECONDS = 2
const WAIT_MS = 60_000
const POLL_MS = 100
const INPUT = { amount: 120 }

type Graph = { nodes: { id: string; type: string; config: unknown }[]; edges: unknown[] }

/** One of the things that are measured in turn: `one` runs it once, and resolves when its caller knows the end. */
type Awaited = { name: string; what: string; one: () => Promise<unknown>; inFlight: number[] }

/**
 * Measures executions whose callers wait for them instead of polling, in turn with handwritten workflows: `awaited
 * [rounds] [seconds]`.
 */
export async function measureAwaited(stand: Stand, args: string[]): Promise<void> {
  const rounds = Number(args[0] ?? 5)
  const seconds = Number(args[1] ?? 4)
  const { variants, stop } = await createAwaited(stand)
  const measured = variants.flatMap((variant) =>
    variant.inFlight.map((inFlight) => ({ ...variant, inFlight })),
  )
  const loads = new Map<string, Load[]>(measured.map(({ name, inFlight }) => [`${name} ${inFlight}`, []]))
  try {
    for (const { one } of variants) await applyLoad(timed(one), 5, Math.min(seconds, WARM_UP_SECONDS))
    for (let round = 1; round <= rounds; round++) {
      for (const { name, one, inFlight } of measured) {
        const load = await applyLoad(timed(one), inFlight, inFlight === 1 ? seconds / 2 : seconds)
        loads.get(`${name} ${inFlight}`)!.push(load)
      }
      console.error(`[bench] round ${round} of ${rounds}`)
    }
  } finally {
    await stop()
  }
  printLoads(variants, loads)
  printAims(loads)
  console.log(`
${rounds} rounds of all in turn, each ${seconds / 2} s alone and ${seconds} s with many in flight. Times are in ms, medians of the
rounds; p99 is over all runs. Each time is that of the caller: from the request that starts until the response that
shows the end. floor and twin: the same server, codec and worker options; one connection, eager starts, one long poll.`)
}

const timed = (one: () => Promise<unknown>) => async () => {
  const since = performance.now()
  await one()
  return performance.now() - since
}

async function createAwaited(stand: Stand) {
  const floor = await startFloor(stand)
  const target = await startTarget()
  const sets = Array.from({ length: 40 }, (_, i) => ({
    id: `set${i}`,
    type: 'SET',
    config: { values: { amount: i === 0 ? '{{ $input.body.amount + 1 }}' : '{{ $input.amount + 1 }}' } },
  }))
  const calls = Array.from({ length: 5 }, (_, i) => ({
    id: `call${i}`,
    type: 'HTTP_REQUEST',
    config: { method: 'GET', url: target.url },
  }))
  const four = await createCallers(stand, 'awaited four', FOUR_AWAITED)
  const forty = await createCallers(stand, 'awaited forty', chain(sets))
  const five = await createCallers(stand, 'awaited five', chain(calls))
  const variants: Awaited[] = [
    {
      name: 'floor',
      what: 'one local activity, handwritten',
      one: () => floor.one('runFloor', INPUT),
      inFlight: [1, 20],
    },
    { name: 'hook', what: '4 nodes, webhook lastNode', one: four.fire, inFlight: [1, 20, 80, 200] },
    { name: 'wait', what: '4 nodes, execute?waitMs', one: four.executeAndWait, inFlight: [1, 20, 80, 200] },
    { name: 'get', what: '4 nodes, execute, then GET ?waitMs', one: four.executeThenWait, inFlight: [1, 20] },
    // Polling adds up to its interval to each run, so that it takes more of them to keep the service busy.
    { name: 'poll', what: `4 nodes, polled each ${POLL_MS} ms`, one: four.executeAndPoll, inFlight: [80] },
    { name: 'forty', what: '40 SET nodes, execute?waitMs', one: forty.executeAndWait, inFlight: [1, 20] },
    {
      name: 'five',
      what: '5 HTTP_REQUEST nodes, execute?waitMs',
      one: five.executeAndWait,
      inFlight: [1, 20],
    },
    {
      name: 'twin',
      what: '5 activities, handwritten',
      one: () => floor.one('runCalls', { url: target.url }),
      inFlight: [1, 20],
    },
  ]
  return {
    variants,
    async stop() {
      floor.stop()
      await target.stop()
    },
  }
}

/** WEBHOOK_TRIGGER -> SET -> IF_ELSE -> SET. */
const FOUR_AWAITED: Graph = {
  nodes: [
    { id: 'start', type: 'WEBHOOK_TRIGGER', config: { path: 'in' } },
    {
      id: 'order',
      type: 'SET',
      config: { values: { amount: '{{ $input.body.amount }}', tax: '{{ $input.body.amount * 0.2 }}' } },
    },
    { id: 'large', type: 'IF_ELSE', config: { condition: '$input.amount >= 100' } },
    { id: 'review', type: 'SET', config: { values: { text: 'total: {{ $input.amount + $input.tax }}' } } },
  ],
  edges: [
    { source: 'start', target: 'order' },
    { source: 'order', target: 'large' },
    { source: 'large', sourceHandle: 'true', target: 'review' },
  ],
}

/** Creates an active workflow, and the ways to execute it and learn of its end. Each throws if it did not succeed. */
async function createCallers({ ask, teamId }: Stand, name: string, graph: Graph) {
  type Run = { executionId: string; status: string; errorMessage?: string | null }
  const nodes = graph.nodes.map((node) =>
    node.type === 'WEBHOOK_TRIGGER' ? { ...node, config: { path: 'in', responseMode: 'lastNode' } } : node,
  )
  const { id } = await ask<{ id: string }>('POST', '/api/workflows', {
    teamId,
    name,
    nodes,
    edges: graph.edges,
  })
  await ask('PUT', `/api/workflows/${id}`, { active: true })
  const execute = (how = '') =>
    ask<Run>('POST', `/api/workflows/${id}/execute${how}`, { teamId, data: { body: INPUT } })
  const hasSucceeded = ({ status, errorMessage }: Run): boolean => {
    if (status === 'SUCCESS') return true
    if (status === 'PENDING' || status === 'RUNNING') return false
    throw new Error(`an execution of ${name} ended as ${status}: ${errorMessage}`)
  }
  const demand = (run: Run) => {
    if (!hasSucceeded(run)) throw new Error(`an execution of ${name} takes longer than ${WAIT_MS} ms`)
  }
  return {
    fire: () => ask('POST', `/hooks/${id}/in`, INPUT),
    executeAndWait: async () => demand(await execute(`?waitMs=${WAIT_MS}`)),
    async executeThenWait() {
      const { executionId } = await execute()
      demand(await ask<Run>('GET', `/api/executions/${executionId}?waitMs=${WAIT_MS}`))
    },
    async executeAndPoll() {
      const { executionId } = await execute()
      do await sleep(POLL_MS)
      while (!hasSucceeded(await ask<Run>('GET', `/api/executions/${executionId}`)))
    },
  }
}

function printLoads(variants: Awaited[], loads: Map<string, Load[]>): void {
  const rows = variants.flatMap(({ name, what, inFlight }) =>
    inFlight.map((flying) => {
      const all = loads.get(`${name} ${flying}`)!
      const row = {
        what,
        'runs/s': round(median(all.map(({ perSecond }) => perSecond))),
        p50: round(p50(all)),
        p99: round(p99(all)),
        runs: all.reduce((sum, { total }) => sum + total, 0),
      }
      return [`${name} at ${flying}`, row]
    }),
  )
  console.table(Object.fromEntries(rows))
}

/** The medians over the rounds of what each is beside its counterpart in the same round, and what is aimed at. */
function printAims(loads: Map<string, Load[]>): void {
  const ratio = (one: string, other: string, read: (load: Load) => number) => {
    const under = loads.get(other)!.map(read)
    return median(loads.get(one)!.map((load, i) => read(load) / under[i]!))
  }
  const speed = (one: string, other = 'floor 20') => ratio(one, other, ({ perSecond }) => perSecond)
  const latency = (one: string, other: string) => ratio(one, other, ({ latencies }) => median(latencies))
  const tail = (one: string) => p99(loads.get(one)!) / p50(loads.get(one)!)
  const rows: [string, number, '>=' | '<=', number][] = [
    ['throughput hook / floor, at 20', speed('hook 20'), '>=', 0.85],
    ['throughput wait / floor, at 20', speed('wait 20'), '>=', 0.85],
    ['latency hook / floor, alone', latency('hook 1', 'floor 1'), '<=', 1.3],
    ['latency wait / floor, alone', latency('wait 1', 'floor 1'), '<=', 1.3],
    ['throughput forty / floor, at 20', speed('forty 20'), '>=', 0.7],
    ['latency five / twin, alone', latency('five 1', 'twin 1'), '<=', 1.15],
    ['latency five / twin, at 20', latency('five 20', 'twin 20'), '<=', 1.15],
    ['throughput poll at 80 / floor at 20', speed('poll 80'), '>=', 0.8],
    ...['hook', 'wait'].flatMap((name) =>
      [20, 80, 200].map((flying): [string, number, '<=', number] => {
        return [`p99 / p50 of ${name}, at ${flying}`, tail(`${name} ${flying}`), '<=', 2]
      }),
    ),
  ]
  console.table(
    Object.fromEntries(
      rows.map(([what, value, sign, aim]) => {
        const met = sign === '>=' ? value >= aim : value <= aim
        return [
          what,
          { ratio: Math.round(value * 100) / 100, aim: `${sign} ${aim}`, met: met ? 'yes' : 'no' },
        ]
      }),
    ),
  )
}

const p50 = (loads: Load[]) => median(loads.map(({ latencies }) => median(latencies)))
const p99 = (loads: Load[]) =>
  percentile(
    loads.flatMap(({ latencies }) => latencies),
    0.99,
  )
const round = (value: number) => Math.round(value * 10) / 10
