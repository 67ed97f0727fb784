import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { median } from './load.ts'
import type { Stand } from './stand.ts'
import { createGraphRun } from './variants.ts'

const PAIRS = 20
const CALLS = 10_000
const HEAVY_RUNS = 60
const QUESTIONS = 300

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
    const loading = await stand.addTeam('load')
    const load = createLoad(loading, target, [
      { workflowId: await createGraph(loading, 'heavy', heavyGraph()), runs: heavyRuns },
      {
        workflowId: await createGraph(
          loading,
          'hangs',
          hangingGraph(target.url, Math.min(CALLS_PER_RUN, calls)),
        ),
        runs: Math.ceil(calls / Math.min(CALLS_PER_RUN, calls)),
      },
    ])
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

/**
 * Measures one team's call and its question to a model, calm and beside another team's questions to a model that never
 * answers, in turn: `pairs` times, each time with all of the load begun anew and ended again.
 */
export async function measureModels(stand: Stand, args: string[]): Promise<void> {
  const [pairs = PAIRS, questions = QUESTIONS] = args.map(Number)
  const target = await startHangingTarget()
  try {
    const loading = await stand.addTeam('load')
    const silent = await createGraph(loading, 'silent', await askingGraph(loading, `${target.url}/hang`))
    const load = createLoad(loading, target, [{ workflowId: silent, runs: questions }])
    const call = await createGraphRun(stand, 'call', singleGraph(target.url))
    const question = await createGraphRun(stand, 'question', await askingGraph(stand, `${target.url}/v1`))
    for (let n = 0; n < 5; n++) for (const one of [call, question]) await one.one(1)
    const rows: Record<string, number>[] = []
    for (let pair = 1; pair <= pairs; pair++) {
      const calm = [await call.one(1), await question.one(1)].map(Math.round)
      await load.begin()
      const beside = [await call.one(2), await question.one(2)].map(Math.round)
      rows.push({
        'call, calm': calm[0]!,
        'call, beside': beside[0]!,
        'question, calm': calm[1]!,
        'question, beside': beside[1]!,
        held: target.hanging.size,
      })
      await load.end()
      console.error(`[bench] pair ${pair} of ${pairs}`)
    }
    console.log(
      `One execution with a call and one with a question to a model, calm and beside another team's ${questions} ` +
        'questions to a model that never answers, in turn; in ms',
    )
    console.table(rows)
    const middle = (key: string) => median(rows.map((row) => row[key]!))
    const compare = (what: string) => {
      const [calm, beside] = [middle(`${what}, calm`), middle(`${what}, beside`)]
      return { calm, beside, ratio: Math.round((beside / calm) * 100) / 100 }
    }
    console.table({ call: compare('call'), question: compare('question') })
  } finally {
    await target.stop()
  }
}

/** A graph with one question to a model at `baseUrl`, for which it makes a credential. */
async function askingGraph({ teamId, ask }: Stand, baseUrl: string) {
  const credential = { teamId, name: 'model', type: 'OPENAI_COMPATIBLE', data: { baseUrl, apiKey: 'none' } }
  const { id } = await ask<{ id: string }>('POST', '/api/credentials', credential)
  const config = { credentialId: id, model: 'm', prompt: 'How much is {{ $input.amount }}?', output: 'text' }
  return {
    nodes: [trigger, { id: 'question', type: 'LLM', config, timeoutMs: 3_600_000 }],
    edges: [{ source: 'start', target: 'question' }],
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

async function createGraph({ teamId, ask }: Stand, name: string, graph: object): Promise<string> {
  return (await ask<{ id: string }>('POST', '/api/workflows', { teamId, name, ...graph })).id
}

/** Calls that are never answered, all of them at once. */
function hangingGraph(url: string, calls: number) {
  const hanging = Array.from({ length: calls }, (_, n) => ({
    id: `hang${n}`,
    type: 'HTTP_REQUEST',
    config: { url: `${url}/hang`, timeoutMs: 3_600_000 },
    timeoutMs: 3_600_000,
  }))
  return { nodes: [trigger, ...hanging], edges: hanging.map(({ id }) => ({ source: 'start', target: id })) }
}

/** Each node takes a second of processor time, so a run is busy for minutes. */
function heavyGraph() {
  const loops = Array.from({ length: 100 }, (_, n) => ({
    id: `loop${n}`,
    type: 'SET',
    config: { values: { x: '{{ ($f := function() { $f() }; $f()) }}' } },
    onError: 'CONTINUE',
  }))
  const edges = loops.map(({ id }, n) => ({ source: n === 0 ? 'start' : `loop${n - 1}`, target: id }))
  return { nodes: [trigger, ...loops], edges }
}

/** The other team's load. `begin` resolves once it holds all that it can get, `end` once nothing of it is left. */
function createLoad(
  stand: Stand,
  target: Awaited<ReturnType<typeof startHangingTarget>>,
  graphs: { workflowId: string; runs: number }[],
) {
  const { teamId } = stand
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
      for (const { workflowId, runs } of graphs) for (let n = 0; n < runs; n++) await start(workflowId)
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

const ANSWER = [
  { choices: [{ index: 0, delta: { role: 'assistant', content: 'Much.' } }] },
  { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
  { choices: [], usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 } },
]

/** How often a model that never answers says that it is still there. */
const ALIVE_MS = 10_000

/** A server that answers at `/ok`, as a model below `/v1`, and elsewhere never. */
async function startHangingTarget() {
  const hanging = new Set<ServerResponse>()
  const server = createServer((request, response) => {
    if (request.url === '/ok') {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}')
      return
    }
    if (request.method === 'POST') response.writeHead(200, { 'content-type': 'text/event-stream' })
    if (request.url?.startsWith('/v1')) {
      const events = ANSWER.map((part) =>
        JSON.stringify({ id: 'a', object: 'chat.completion.chunk', ...part }),
      )
      response.end([...events, '[DONE]'].map((data) => `data: ${data}\n\n`).join(''))
      return
    }
    const alive = setInterval(() => request.method === 'POST' && response.write(': alive\n\n'), ALIVE_MS)
    hanging.add(response)
    response.once('close', () => {
      clearInterval(alive)
      hanging.delete(response)
    })
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
