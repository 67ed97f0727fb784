import { Pool } from 'undici'
import { N8N_VERSION, prepareN8n } from '../n8n/program.ts'
import { applyLoad, type Load, median, percentile } from './load.ts'
import type { Stand } from './stand.ts'
import { readUsage } from './usage.ts'
import { FOUR } from './variants.ts'

const WARM_UP_SECONDS = 3
const IN_FLIGHT = 20
const INPUT = { amount: 120 }

/** The same graph as FOUR: Webhook -> Edit Fields -> If -> Edit Fields; the caller gets the last node's output. */
function drawGraph(): unknown {
  const assign = (name: string, value: string, type = 'number') => ({ id: name, name, value, type })
  const set = (name: string, x: number, assignments: unknown[]) => ({
    id: name,
    name,
    type: 'n8n-nodes-base.set',
    typeVersion: 3.4,
    position: [x, 0],
    parameters: { assignments: { assignments }, includeOtherFields: true, options: {} },
  })
  return {
    id: 'perdurebench0001',
    name: 'four',
    active: true,
    settings: { executionOrder: 'v1' },
    nodes: [
      {
        id: 'start',
        name: 'start',
        type: 'n8n-nodes-base.webhook',
        typeVersion: 2,
        position: [0, 0],
        webhookId: 'perdure-bench',
        parameters: { httpMethod: 'POST', path: 'four', responseMode: 'lastNode', options: {} },
      },
      set('order', 200, [
        assign('amount', '={{ $json.body.amount }}'),
        assign('tax', '={{ $json.body.amount * 0.2 }}'),
      ]),
      {
        id: 'large',
        name: 'large',
        type: 'n8n-nodes-base.if',
        typeVersion: 2.2,
        position: [400, 0],
        parameters: {
          conditions: {
            options: { caseSensitive: true, leftValue: '', typeValidation: 'strict', version: 2 },
            conditions: [
              {
                id: 'one',
                leftValue: '={{ $json.amount }}',
                rightValue: 100,
                operator: { type: 'number', operation: 'gte' },
              },
            ],
            combinator: 'and',
          },
          options: {},
        },
      },
      set('review', 600, [
        assign('decision', 'review', 'string'),
        assign('text', '=total: {{ $json.amount + $json.tax }}', 'string'),
      ]),
    ],
    connections: {
      start: { main: [[{ node: 'order', type: 'main', index: 0 }]] },
      order: { main: [[{ node: 'large', type: 'main', index: 0 }]] },
      large: { main: [[{ node: 'review', type: 'main', index: 0 }], []] },
    },
  }
}

/**
 * Compares the throughput of one graph here and in n8n, in turn: a webhook whose caller gets the last node's
 * output. n8n runs as its documentation starts it, one process with its database on the same PostgreSQL, and
 * keeps all executions, as it does by default.
 */
export async function compareWithN8n(stand: Stand, args: string[]): Promise<void> {
  const rounds = Number(args[0] ?? 5)
  const seconds = Number(args[1] ?? 4)
  const n8n = await startN8n(stand)
  const ours = await createWebhook(stand)
  try {
    const both = { perdure: ours, n8n }
    const results: Record<keyof typeof both, { alone: Load[]; loaded: Load[]; cpu: number[] }> = {
      perdure: { alone: [], loaded: [], cpu: [] },
      n8n: { alone: [], loaded: [], cpu: [] },
    }
    for (const { one } of Object.values(both)) await applyLoad(one, IN_FLIGHT, WARM_UP_SECONDS)
    for (let round = 1; round <= rounds; round++) {
      for (const [name, { one, readCpu }] of Object.entries(both)) {
        const of = results[name as keyof typeof both]
        of.alone.push(await applyLoad(one, 1, seconds / 2))
        const before = readCpu()
        const load = await applyLoad(one, IN_FLIGHT, seconds)
        of.loaded.push(load)
        of.cpu.push((readCpu() - before) / load.total)
      }
      console.error(`[bench] round ${round} of ${rounds}`)
    }
    const round = (value: number) => Math.round(value * 10) / 10
    console.table(
      Object.fromEntries(
        Object.entries(results).map(([name, { alone, loaded, cpu }]) => [
          name,
          {
            [`runs/s at ${IN_FLIGHT}`]: round(median(loaded.map(({ perSecond }) => perSecond))),
            [`p50 at ${IN_FLIGHT}`]: round(median(loaded.flatMap(({ latencies }) => latencies))),
            [`p99 at ${IN_FLIGHT}`]: round(
              percentile(
                loaded.flatMap(({ latencies }) => latencies),
                0.99,
              ),
            ),
            'p50 alone': round(median(alone.flatMap(({ latencies }) => latencies))),
            'CPU ms/run': round(median(cpu)),
          },
        ]),
      ),
    )
    const ratios = results.perdure.loaded.map(
      ({ perSecond }, i) => perSecond / results.n8n.loaded[i]!.perSecond,
    )
    console.log(
      `throughput perdure / n8n ${N8N_VERSION}: ${median(ratios).toFixed(2)} (aim: >= 3); the rounds: ${ratios.map((ratio) => ratio.toFixed(2)).join(' ')}`,
    )
  } finally {
    await ours.stop()
    await n8n.stop()
  }
}

type Measured = { one(): Promise<number>; readCpu(): number; stop(): Promise<void> }

/** CPU time in ms that a load has cost: the programs that serve it, without this client. */
const sumCpu = (usage: { cpu: number }[]) => usage.reduce((sum, { cpu }) => sum + cpu, 0)

async function createWebhook(stand: Stand): Promise<Measured> {
  const [start, order, ...nodes] = FOUR.nodes
  const answering = { ...start, config: { path: 'four', method: 'POST', responseMode: 'lastNode' } }
  const values = { amount: '{{ $input.body.amount }}', tax: '{{ $input.body.amount * 0.2 }}' }
  const graph = { nodes: [answering, { ...order, config: { values } }, ...nodes], edges: FOUR.edges }
  const { teamId } = stand
  const workflow = await stand.ask<{ id: string }>('POST', '/api/workflows', {
    teamId,
    name: 'four',
    ...graph,
  })
  await stand.ask('PUT', `/api/workflows/${workflow.id}`, { active: true })
  const pool = new Pool(stand.url, { connections: 64 })
  return {
    one: createCaller(pool, `/hooks/${workflow.id}/four`),
    readCpu: () => sumCpu(Object.values(stand.readUsage())),
    stop: () => pool.destroy(),
  }
}

/** A call of a webhook; resolves with its duration in ms. Throws if the answer is not the last node's output. */
function createCaller(pool: Pool, path: string): () => Promise<number> {
  const body = JSON.stringify(INPUT)
  const headers = { 'content-type': 'application/json' }
  return async () => {
    const since = performance.now()
    const response = await pool.request({ method: 'POST', path, headers, body })
    const text = await response.body.text()
    if (response.statusCode !== 200 || !text.includes('total: 144'))
      throw new Error(`POST ${path} responded with ${response.statusCode}: ${text}`)
    return performance.now() - since
  }
}

async function startN8n(stand: Stand): Promise<Measured> {
  const n8n = await prepareN8n(stand.databaseUrl)
  n8n.importAll([drawGraph()])
  n8n.publish('perdurebench0001')
  const pool = new Pool(n8n.url, { connections: 64 })
  const one = createCaller(pool, '/webhook/four')
  const child = await n8n.start(one).catch(async (error) => {
    await pool.destroy()
    throw error
  })
  const { postgres } = stand.readUsage()
  if (!postgres) throw new Error('the bench has no PostgreSQL')
  return {
    one,
    readCpu: () => sumCpu([readUsage(child.pid!, { children: true }), stand.readUsage().postgres!]),
    stop: async () => {
      await pool.destroy()
      await n8n.stop()
    },
  }
}
