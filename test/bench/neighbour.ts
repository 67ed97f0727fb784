import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { median } from './load.ts'
import type { Stand } from './stand.ts'
import { createGraphRun } from './variants.ts'

const PAIRS = 20
const CALLS = 10_000
const HEAVY_RUNS = 60

/** As many as a run has under way at once. */
const CALLS_PER_RUN = 64

/** The load has all that it can get when fewer than this are turned away a second, for some seconds. */
const AGAIN = 20
const SETTLED_SECONDS = 3
const AIM = { times: 2, ms: 200 }

const trigger = { id: 'start', type: 'WEBHOOK_TRIGGER', config: { path: 'in' } }

/**
 * Measures one team's single execution, calm and beside another team's hanging calls and heavy expressions, in
 * turn: `pairs` times, each time with all of the load begun anew and ended again.
 */
export async function measureNeighbour(stand: Stand, args: string[]): Promise<void> {
  const [pairs = PAIRS, calls = CALLS, heavyRuns = HEAVY_RUNS] = args.map(Number)
  const target = await startHangingTarget()
  try {
    const load = await createLoad(await stand.addTeam('load'), target, { calls, heavyRuns })
    const single = await createGraphRun(stand, 'single', singleGraph(target.url))
    for (let n = 0; n < 5; n++) await single.one(1)
    const rows: { calm: number; beside: number; 'calls held': number; 'turned away a second': number }[] = []
    for (let pair = 1; pair <= pairs; pair++) {
      const calm = await single.one(1)
      await load.begin()
      const [before, since] = [await load.countTurnedAway(), performance.now()]
      await sleep(2_000)
      const beside = await single.one(2)
      const seconds = (performance.now() - since) / 1_000
      const away = ((await load.countTurnedAway()) - before) / seconds
      rows.push({
        calm: Math.round(calm),
        beside: Math.round(beside),
        'calls held': target.hanging.size,
        'turned away a second': Math.round(away),
      })
      await load.end()
      console.error(`[bench] pair ${pair} of ${pairs}`)
    }
    printRows(rows, { calls, heavyRuns })
  } finally {
    await target.stop()
  }
}

function printRows(
  rows: { calm: number; beside: number }[],
  { calls, heavyRuns }: { calls: number; heavyRuns: number },
): void {
  const calm = median(rows.map((row) => row.calm))
  const beside = median(rows.map((row) => row.beside))
  const aim = AIM.times * calm + AIM.ms
  console.log(
    `One execution with a call and an expression, calm and beside another team's ${calls} hanging calls and ${heavyRuns} ` +
      'executions with heavy expressions, in turn; in ms',
  )
  console.table(rows)
  console.table({
    median: {
      calm,
      beside,
      ratio: Math.round((beside / calm) * 100) / 100,
      aim: `<= ${AIM.times} x + ${AIM.ms} ms = ${aim}`,
      met: beside <= aim ? 'yes' : 'no',
    },
  })
}

function singleGraph(url: string) {
  return {
    nodes: [
      trigger,
      { id: 'order', type: 'SET', config: { values: { amount: '{{ $input.amount * 2 }}' } } },
      { id: 'call', type: 'HTTP_REQUEST', config: { url: `${url}/ok` } },
      { id: 'sum', type: 'SET', config: { values: { sum: '{{ $sum([$nodes.order.amount, 1]) }}' } } },
    ],
    edges: [
      { source: 'start', target: 'order' },
      { source: 'order', target: 'call' },
      { source: 'call', target: 'sum' },
    ],
  }
}

/** The other team's load. `begin` resolves once it holds all that it can get, `end` once nothing of it is left. */
async function createLoad(
  stand: Stand,
  target: Awaited<ReturnType<typeof startHangingTarget>>,
  { calls, heavyRuns }: { calls: number; heavyRuns: number },
) {
  const { teamId } = stand
  const create = async (name: string, nodes: unknown[], edges: unknown[]) => {
    const graph = { teamId, name, nodes: [trigger, ...nodes], edges }
    return (await stand.ask<{ id: string }>('POST', '/api/workflows', graph)).id
  }
  const perRun = Math.min(CALLS_PER_RUN, calls)
  const hanging = Array.from({ length: perRun }, (_, n) => ({
    id: `hang${n}`,
    type: 'HTTP_REQUEST',
    config: { url: `${target.url}/hang`, timeoutMs: 3_600_000 },
    timeoutMs: 3_600_000,
  }))
  const fan = hanging.map(({ id }) => ({ source: 'start', target: id }))
  const hangs = await create('hangs', hanging, fan)
  // Each node takes a second of processor time, so a run is busy for minutes.
  const loops = Array.from({ length: 100 }, (_, n) => ({
    id: `loop${n}`,
    type: 'SET',
    config: { values: { x: '{{ ($f := function() { $f() }; $f()) }}' } },
    onError: 'CONTINUE',
  }))
  const row = loops.map(({ id }, n) => ({ source: n === 0 ? 'start' : `loop${n - 1}`, target: id }))
  const heavy = await create('heavy', loops, row)

  let running: string[] = []
  const start = async (workflowId: string) => {
    const path = `/api/workflows/${workflowId}/execute`
    const body = { teamId, data: { amount: 1 } }
    running.push((await stand.ask<{ executionId: string }>('POST', path, body)).executionId)
  }
  const countTurnedAway = () => readMetric(stand, 'perdure_turned_away_total')
  return {
    countTurnedAway,
    async begin(): Promise<void> {
      for (let n = 0; n < heavyRuns; n++) await start(heavy)
      for (let n = 0; n < Math.ceil(calls / perRun); n++) await start(hangs)
      // All have come once when no more are turned away than those who come again.
      for (let calm = 0, last = 0; calm < SETTLED_SECONDS; ) {
        const now = await countTurnedAway()
        calm = target.hanging.size > 0 && now - last < AGAIN ? calm + 1 : 0
        last = now
        await sleep(1_000)
      }
    },
    async end(): Promise<void> {
      for (const id of running) await stand.ask('POST', `/api/executions/${id}/cancel`)
      for (const id of running) {
        const read = () => stand.ask<{ status: string }>('GET', `/api/executions/${id}`)
        while (['PENDING', 'RUNNING'].includes((await read()).status)) await sleep(50)
      }
      running = []
      while ((await readMetric(stand, 'perdure_worker_slots_used')) > 0) await sleep(100)
    },
  }
}

/** The sum of a metric over all its labels. */
async function readMetric(stand: Stand, name: string): Promise<number> {
  const text = await (await fetch(`${stand.url}/metrics`)).text()
  const values = text.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\d+)$`, 'gm'))
  return [...values].reduce((sum, [, value]) => sum + Number(value), 0)
}

/** A server that answers at `/ok`, and elsewhere never. */
async function startHangingTarget() {
  const hanging = new Set<ServerResponse>()
  const server = createServer((request, response) => {
    if (request.url === '/ok') {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}')
      return
    }
    hanging.add(response)
    response.once('close', () => hanging.delete(response))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    hanging,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
