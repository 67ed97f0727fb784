import { afterEach, expect, inject, onTestFinished, test } from 'vitest'
import { findFree } from '../../../worker/local/ports.ts'
import { edges } from '../../support/engine/graphs.ts'
import { launch } from '../../support/engine/process.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf, startRunning } from '../../support/running.ts'
import { startOpenAi } from '../../support/servers/models/openai.ts'
import type { VendorScript } from '../../support/servers/models/vendor.ts'
import { until } from '../../support/until.ts'

// What runs that call models are billed: from the vendor's answer to the answers of the API.

const host = await keep(startRunning())
const { db } = host.store

const open: { stop(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.stop()
})

let credentials = 0
async function addCredential(type: string, data: object): Promise<string> {
  const body = { teamId: host.teamId, name: `c ${++credentials}`, type, data }
  return (await host.ask<{ id: string }>('POST', '/api/credentials', body)).id
}

/** A vendor that answers as the script says, with 100 tokens of input (40 cached) and 20 of output (5 reasoning). */
async function startVendor(script: VendorScript, type = 'OPENAI') {
  const server = await startOpenAi(script)
  open.push(server)
  const credentialId = await addCredential(type, { apiKey: 'sk-nobody-knows', baseUrl: server.url })
  return { ...server, credentialId }
}

const QUICK = { maxAttempts: 3, initialIntervalMs: 10, maxIntervalMs: 10 }
const llm = (credentialId: string, more: object = {}) => ({
  id: 'llm',
  type: 'LLM',
  retry: QUICK,
  config: { credentialId, model: 'gpt-4o', prompt: 'Say {{ $input.word }}' },
  ...more,
})
const graphOf = (node: { id: string }) =>
  ({
    nodes: [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }, node],
    edges: edges(`start -> ${node.id}`),
  }) as never

type Shown = { usage?: object | null }
const usageOf = (shown: object | undefined) => (shown as Shown).usage

/** The totals of a workflow, as the API says them. */
async function readTotals(workflowId: string) {
  const path = `/api/monitoring/teams/${host.teamId}/token-usage`
  const read = (more: string) =>
    host.ask<Record<string, unknown>>('GET', `${path}${more}?workflowId=${workflowId}`)
  return { total: await read(''), daily: await read('/daily'), models: await read('/by-model') }
}

// 60 of 2.50, 40 of 1.25 and 20 of 10 dollars for a million.
const ONE = {
  inputTokens: 100,
  outputTokens: 20,
  cachedTokens: 40,
  reasoningTokens: 5,
  cost: 0.0004,
  calls: 1,
  unpricedCalls: 0,
}

test('a run shows what its call took as soon as it has ended, as do its record and the totals', async () => {
  const vendor = await startVendor({ text: 'Word' })
  const workflowId = await host.create(graphOf(llm(vendor.credentialId)))
  const run = await host.ended(await host.execute(workflowId, { word: 'Word' }))
  expect(run.status).toBe('SUCCESS')
  expect(usageOf(run)).toEqual(ONE)
  expect(usageOf(nodeOf(run, 'llm'))).toEqual(ONE)
  expect(usageOf(nodeOf(run, 'start'))).toBeUndefined()
  const { total, daily, models } = await readTotals(workflowId)
  expect(total).toMatchObject({
    totalInputTokens: 100,
    totalOutputTokens: 20,
    totalCost: 0.0004,
    executionCount: 1,
  })
  expect((daily.days as object[]).at(-1)).toMatchObject({ ...ONE, executionCount: 1 })
  expect(models.models).toEqual([{ provider: 'OPENAI', model: 'gpt-4o', ...ONE, executionCount: 1 }])
})

test('an attempt that is refused costs nothing, and the next one its own', async () => {
  const vendor = await startVendor([{ status: 429 }, { status: 503 }, { text: 'Word' }])
  const run = await host.run(graphOf(llm(vendor.credentialId)))
  expect(run.status).toBe('SUCCESS')
  expect(usageOf(run)).toEqual({ ...ONE, calls: 3 })
})

test('of an answer that breaks off nobody knows the cost; the total is without it, and says so', async () => {
  const vendor = await startVendor([{ text: ['a', 'b', 'c'], cutAfter: 6 }, { text: 'Word' }])
  const run = await host.run(graphOf(llm(vendor.credentialId)))
  expect(run.status).toBe('SUCCESS')
  expect(usageOf(run)).toEqual({ ...ONE, calls: 2, unpricedCalls: 1 })
})

test('a model on a server of the own has no price, until the team sets one', async () => {
  const vendor = await startVendor({ text: 'Word' }, 'OPENAI_COMPATIBLE')
  const workflowId = await host.create(graphOf(llm(vendor.credentialId)))
  const run = await host.ended(await host.execute(workflowId))
  expect(usageOf(run)).toEqual({ ...ONE, cost: null, unpricedCalls: 1 })
  const prices = [
    { provider: 'OPENAI_COMPATIBLE', model: 'gpt-4o', inputPerMillion: 1, outputPerMillion: 10 },
  ]
  await host.ask('PUT', `/api/teams/${host.teamId}/model-prices`, { prices })
  const next = await host.ended(await host.execute(workflowId))
  expect(usageOf(next)).toEqual({ ...ONE, cost: 0.0003 })
  expect((await readTotals(workflowId)).total).toMatchObject({
    totalCost: 0.0003,
    calls: 2,
    unpricedCalls: 1,
  })
  await host.ask('PUT', `/api/teams/${host.teamId}/model-prices`, { prices: [] })
})

test('the demo reports its tokens, and costs nothing', async () => {
  const credentialId = await addCredential('DEMO', {})
  const config = { credentialId, model: 'demo', prompt: 'Hello' }
  const run = await host.run(graphOf(llm(credentialId, { config })))
  expect(run.status).toBe('SUCCESS')
  expect(usageOf(run)).toMatchObject({ cost: 0, calls: 1, unpricedCalls: 0, inputTokens: expect.any(Number) })
})

test('an agent has the sum of its steps, each step its own, in the API and in the export', async () => {
  const vendor = await startVendor({ text: 'Short' })
  const text = 'The committee met on Monday. '.repeat(2_000)
  const config = { credentialId: vendor.credentialId, model: 'gpt-4o', input: text }
  const id = await host.execute(await host.create(graphOf({ id: 'sum', type: 'SUMMARIZE', config } as never)))
  const run = await host.ended(id)
  expect(run.status).toBe('SUCCESS')
  const turns = vendor.calls.length
  expect(turns).toBeGreaterThan(2)
  const sum = {
    inputTokens: turns * 100,
    outputTokens: turns * 20,
    cachedTokens: turns * 40,
    reasoningTokens: turns * 5,
    cost: Number((turns * 0.0004).toFixed(10)),
    calls: turns,
    unpricedCalls: 0,
  }
  expect(usageOf(run)).toEqual(sum)
  const records = run.nodeExecutions.filter(({ nodeId }) => nodeId === 'sum') as unknown as {
    step: number | null
    usage: object
  }[]
  const expected = [[null, sum], ...Array.from({ length: turns }, (_, n) => [n + 1, ONE])]
  expect(records.map(({ step, usage }) => [step, usage])).toEqual(expected)
  const page = await host.ask<{ content: typeof records }>('GET', `/api/executions/${id}/nodes?nodeId=sum`)
  expect(page.content.map(({ step, usage }) => [step, usage])).toEqual(expected)
  const path = `/api/executions/team/${host.teamId}/export?format=json`
  const all = await host.ask<{ executionId: string; usage: object; nodeExecutions: typeof records }[]>(
    'GET',
    path,
  )
  const exported = all.find(({ executionId }) => executionId === id)!
  expect(exported.usage).toEqual(sum)
  const steps = exported.nodeExecutions.map(({ step, usage }) => [step, usage])
  expect(steps.filter(([, usage]) => usage !== undefined)).toEqual(expected)
})

test('in a loop each iteration has its own', async () => {
  const vendor = await startVendor((_call, number) =>
    number === 1 ? { text: 'x', usage: null } : { text: 'x' },
  )
  const nodes = [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    { id: 'each', type: 'FOR_EACH', config: { items: '{{ [1, 2, 3] }}' } },
    llm(vendor.credentialId, { parentId: 'each' }),
  ]
  const run = await host.run({ nodes, edges: edges('start -> each') } as never)
  expect(run.status).toBe('SUCCESS')
  const inLoop = run.nodeExecutions.filter(({ nodeId }) => nodeId === 'llm')
  expect(inLoop.map(usageOf)).toContainEqual(ONE)
  const none = { ...ONE, inputTokens: 0, outputTokens: 0, cachedTokens: 0, reasoningTokens: 0 }
  expect(inLoop.map(usageOf)).toContainEqual({ ...none, cost: null, unpricedCalls: 1 })
  expect(usageOf(run)).toMatchObject({ inputTokens: 200, cost: 0.0008, calls: 3, unpricedCalls: 1 })
})

test('a run that is cancelled in the middle of a call has a call of which nobody knows the cost', async () => {
  const vendor = await startVendor({ text: ['a', 'b'], hangAfter: 5 })
  const id = await host.execute(await host.create(graphOf(llm(vendor.credentialId))))
  await until(() => vendor.calls.length > 0)
  expect(usageOf(await host.read(id))).toMatchObject({ calls: 1, unpricedCalls: 0, cost: 0 })
  await host.ask('POST', `/api/executions/${id}/cancel`)
  const run = await host.ended(id)
  expect(run.status).toBe('CANCELLED')
  expect(usageOf(run)).toMatchObject({ calls: 1, unpricedCalls: 1, cost: null })
  expect(usageOf(nodeOf(run, 'llm'))).toMatchObject({ calls: 1, unpricedCalls: 1, cost: null })
})

test('a call whose worker is killed is lost; the next worker pays for its own', {
  tags: 'long',
}, async () => {
  const { current, byId } = host.store.keys
  const port = await findFree()
  const other = await keepApart(port, `${current}:${byId.get(current)!.toString('base64')}`)
  const vendor = await startVendor((_call, number) =>
    number === 0 ? { text: ['a', 'b'], hangAfter: 5 } : { text: 'Word' },
  )
  const id = await host.execute(await host.create(graphOf(llm(vendor.credentialId))))
  await until(() => vendor.calls.length > 0)
  other.kill('SIGKILL')
  await other.ended
  const again = await host.addEngine()
  onTestFinished(() => again.stop())
  const run = await host.ended(id)
  expect(run.status).toBe('SUCCESS')
  expect(usageOf(run)).toEqual({ ...ONE, calls: 2, unpricedCalls: 1 })
  const rows = await db
    .selectFrom('modelCalls')
    .select(['attempt', 'status', 'cost'])
    .where('executionId', '=', id)
    .orderBy('attempt')
    .execute()
  expect(rows.map(({ status, cost }) => [status, cost])).toEqual([
    ['LOST', null],
    ['SUCCESS', '0.0004000000'],
  ])
  expect(rows[1]!.attempt).toBeGreaterThan(rows[0]!.attempt)
})

/** A worker of its own, which from now on is the only one that calls models. */
async function keepApart(port: number, keys: string) {
  await host.engine.stopModels()
  const worker = launch(['worker/worker.ts'], {
    DATABASE_URL: host.database.url,
    TEMPORAL_ADDRESS: inject('temporalAddress'),
    TASK_QUEUE: host.taskQueue,
    PERDURE_KEYS: keys,
    EGRESS_ALLOW: '127.0.0.0/8',
    WORKER_METRICS_PORT: String(port),
  })
  onTestFinished(async () => {
    worker.kill('SIGKILL')
    await worker.ended
  })
  await worker.until(async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok)
  return worker
}
