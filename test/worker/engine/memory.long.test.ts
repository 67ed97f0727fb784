import { randomBytes } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { Client, Connection } from '@temporalio/client'
import { pino } from 'pino'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { createDataConverter } from '../../../activities/temporal/codec.ts'
import { carryOutErrand } from '../../../activities/temporal/outbox.ts'
import { openSealer } from '../../../activities/temporal/sealer.ts'
import { findFree } from '../../../worker/local/ports.ts'
import { CLIENT_OPTIONS } from '../../../worker/temporal.ts'
import { createClient, nodeOf } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import { launch } from '../../support/engine/process.ts'
import { keep } from '../../support/keep.ts'
import { type Running, startRunning } from '../../support/running.ts'
import { startService } from '../../support/service.ts'
import { until } from '../../support/until.ts'

const MEGABYTE = 1_048_576

/** 8 MB of JSON, in 8 KB. */
const ZEROS = gzipSync(`"${'0'.repeat(7_900_000)}"`)

/** A server that holds each answer of zeros until `release`, and answers everything else at once. */
async function startZeros() {
  const held = new Set<ServerResponse>()
  let most = 0
  let holds = true
  const answer = (response: ServerResponse) => response.end(ZEROS)
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'application/json')
    if (request.url === '/hang') return
    if (request.url === '/five') return void response.end(`"${'5'.repeat(5_000_000)}"`)
    if (request.url !== '/zeros') return void response.end('{"ok":true}')
    response.setHeader('content-encoding', 'gzip')
    if (!holds) return void answer(response)
    held.add(response)
    response.on('close', () => held.delete(response))
    most = Math.max(most, held.size)
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    held,
    most: () => most,
    release() {
      holds = false
      for (const response of held) answer(response)
    },
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** The API, and a Temporal whose task queue a worker process may poll. */
async function startForWorkers() {
  const connection = await Connection.connect({ ...CLIENT_OPTIONS, address: inject('temporalAddress') })
  const taskQueue = `test-${randomBytes(4).toString('hex')}`
  const service = await startService({ carryOut: (errand) => carryOutErrand(carrier, errand) })
  const { store, database } = service
  const log = pino({ level: 'silent' })
  const sealer = await openSealer({ store, binds: true, log, watches: false })
  const client = new Client({ connection, dataConverter: createDataConverter(sealer) })
  const carrier = { store, client, sealer, taskQueue, eager: () => false, log }
  return {
    ...service,
    env: {
      DATABASE_URL: database.url,
      TEMPORAL_ADDRESS: inject('temporalAddress'),
      TASK_QUEUE: taskQueue,
      PERDURE_KEYS: `k1:${store.keys.byId.get('k1')!.toString('base64')}`,
      EGRESS_ALLOW: '127.0.0.0/8',
    },
    clientOf: (teamId: string, as: string) =>
      createClient({ teamId, send: (path, init) => service.request(path, { as, ...init }) }),
    async stop() {
      await service.stop()
      await connection.close()
    },
  }
}

const zeros = await keep(startZeros())
const host = await keep(startForWorkers())

async function startWorker(args: string[], env: Record<string, string>) {
  const port = await findFree()
  const worker = launch([...args, 'worker/worker.ts'], {
    ...host.env,
    WORKER_METRICS_PORT: String(port),
    ...env,
  })
  onTestFinished(async () => {
    worker.kill('SIGTERM')
    await worker.ended
  })
  await worker.until(async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok)
  return {
    ...worker,
    /** The value of a metric, as `name` or `name{label="value"}`. */
    async read(metric: string): Promise<number> {
      const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
      return Number(
        text
          .split('\n')
          .find((line) => line.startsWith(`${metric} `))
          ?.split(' ')[1],
      )
    },
  }
}

const graph = (path: string, { config = {}, ...more }: { timeoutMs?: number; config?: object } = {}) => ({
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    // Named as a part of an envelope is.
    { id: 'v', type: 'HTTP_REQUEST', ...more, config: { url: zeros.url + path, ...config } },
  ],
  edges: edges('start -> v'),
})

test('24 answers of 8 MB end no worker whose heap is small, and hold up no other team', {
  tags: 'long',
  timeout: 180_000,
}, async () => {
  const worker = await startWorker(['--max-old-space-size=160'], { MEMORY_BUDGET_MB: '32' })
  const many = host.clientOf(host.teamId, host.admin)
  const workflowId = await many.create(graph('/zeros'))
  await Promise.all(Array.from({ length: 24 }, () => many.execute(workflowId)))
  await worker.until(async () => (await worker.read('perdure_budget_waiting')) >= 20)
  await until(() => zeros.held.size === 2)

  const { cookie, teamId } = await host.otherTeam()
  const run = await host.clientOf(teamId, cookie).run(graph('/other'))
  expect([run.status, run.nodeExecutions.map(({ retryCount }) => retryCount)]).toEqual(['SUCCESS', [0, 0]])
  expect(zeros.held.size).toBe(2)
  zeros.release()

  type List = { content: { status: string }[] }
  const list = () => many.ask<List>('GET', `/api/executions?workflowId=${workflowId}&size=100`)
  const isOver = ({ status }: { status: string }) => status !== 'PENDING' && status !== 'RUNNING'
  await worker.until(async () => (await list()).content.every(isOver), 120_000)
  expect((await list()).content.map(({ status }) => status)).toEqual(Array(24).fill('SUCCESS'))
  expect(zeros.most()).toBe(2)
  expect(await worker.read('perdure_budget_bytes{state="limit"}')).toBe(32 * MEGABYTE)
  await worker.until(async () => (await worker.read('perdure_budget_bytes{state="held"}')) === 0)
  const peak = await worker.read('perdure_budget_bytes{state="peak"}')
  expect(peak).toBeGreaterThanOrEqual(16 * MEGABYTE)
  expect(peak).toBeLessThanOrEqual(32 * MEGABYTE)
})

test('an attempt takes room for the large values that it reads, but never more than its team may have', {
  tags: 'long',
}, async () => {
  const running = await keepRunning()
  const { nodes } = graph('/five')
  const read = {
    id: 'read',
    type: 'SET',
    timeoutMs: 60_000,
    config: { values: { status: '{{ $input.status }}' } },
  }
  const run = await running.run({ nodes: [...nodes, read], edges: edges('start -> v', 'v -> read') })
  expect([run.status, run.outputData]).toEqual(['SUCCESS', { status: 200 }])
  // 8 MB for the answer; then four times 5 MB for the input, which is more than the half of 32 MB.
  expect(running.engine.readBudget()).toEqual({
    most: 32 * MEGABYTE,
    held: 0,
    peak: 16 * MEGABYTE,
    waiting: 0,
  })
})

describe('an attempt that waits for room for its answer', () => {
  test('uses up no time limit of its node, and can be cancelled', { tags: 'long' }, async () => {
    const running = await keepRunning()
    const held = await fill(running)
    const waiting = await running.create(graph('/other', { timeoutMs: 300, config: { timeoutMs: 300 } }))
    const [first, second] = [await running.execute(waiting), await running.execute(waiting)]
    const isWaiting = (count: number) => () => running.engine.readBudget().waiting === count
    await until(isWaiting(2))
    // Longer than the time limits.
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    expect(running.engine.readBudget().waiting).toBe(2)
    await running.ask('POST', `/api/executions/${first}/cancel`)
    expect((await running.ended(first)).status).toBe('CANCELLED')
    await until(isWaiting(1))
    for (const id of held) await running.ask('POST', `/api/executions/${id}/cancel`)
    const run = await running.ended(second)
    expect([run.status, nodeOf(run, 'v').retryCount]).toEqual(['SUCCESS', 0])
    expect(running.engine.readBudget()).toMatchObject({ held: 0, waiting: 0, peak: 16 * MEGABYTE })
  })

  test('goes to another worker when its own stops', { tags: 'long' }, async () => {
    const running = await keepRunning()
    const held = await fill(running)
    const id = await running.execute(await running.create(graph('/other')))
    await until(() => running.engine.readBudget().waiting === 1)
    const other = await running.addEngine()
    running.use(other)
    await running.engine.stop()
    for (const one of held) await running.ask('POST', `/api/executions/${one}/cancel`)
    expect((await running.ended(id)).status).toBe('SUCCESS')
    expect(running.engine.readBudget()).toMatchObject({ held: 0, waiting: 0 })
    await other.stop()
  })
})

/** An engine with room for two answers of a team. */
async function keepRunning() {
  const running = await startRunning({ budgetBytes: 32 * MEGABYTE })
  onTestFinished(() => running.stop())
  return running
}

/** Executes two calls that hang and so hold the half of their team. */
async function fill(running: Running): Promise<string[]> {
  const id = await running.create(graph('/hang'))
  const held = [await running.execute(id), await running.execute(id)]
  await until(() => running.engine.readBudget().held === 16 * MEGABYTE)
  return held
}
