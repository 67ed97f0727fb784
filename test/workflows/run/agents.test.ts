import { afterAll, beforeAll, expect, test } from 'vitest'
import { rebuildExecution } from '../../../activities/temporal/rebuild.ts'
import { type Agents, startAgents, takes } from '../../support/agents/agents.ts'
import type { ExecutionBody } from '../../support/client.ts'
import { readEvents } from '../../support/events.ts'
import type { VendorScript } from '../../support/servers/models/vendor.ts'

let agents: Agents
beforeAll(async () => {
  agents = await startAgents()
})
afterAll(() => agents.stop())

/** A tool that counts, and is not repeated. */
const count = (more: object = {}) => ({
  type: 'HTTP',
  name: 'count',
  description: 'Counts',
  parameters: takes('n'),
  url: `${agents.site.origin}/count/{{ $args.n }}`,
  method: 'POST',
  ...more,
})

/** A model that calls `count` once in each of its first turns, and then says so. */
const counting =
  (turns: number, tool = 'count'): VendorScript =>
  (call) => {
    const told = (call.body.messages as { role: string }[]).filter(({ role }) => role === 'tool').length
    return told < turns
      ? { tools: [{ name: tool, args: { n: String(told + 1) } }] }
      : { text: `Counted ${told}.` }
  }

const paths = () => agents.site.calls.map(({ path }) => path)
const retry = (id: string, body: object = {}) =>
  agents.ask<{ executionId: string; takenOver: string[] }>('POST', `/api/executions/${id}/retry`, body)

async function rebuilt(run: ExecutionBody): Promise<void> {
  const { engine, store } = agents
  expect(await rebuildExecution({ store, client: engine.client, sealer: engine.sealer }, run.id)).toBe(
    run.status,
  )
  expect(await agents.read(run.id)).toEqual(run)
  await store.db.deleteFrom('nodeExecutions').where('executionId', '=', run.id).execute()
  expect(await rebuildExecution({ store, client: engine.client, sealer: engine.sealer }, run.id)).toBe(
    run.status,
  )
  expect(await agents.read(run.id)).toEqual(run)
}

test('a retry goes on at the turn that failed, and shows the steps before as taken over', async () => {
  let broken = true
  const good = counting(3) as (
    call: Parameters<Extract<VendorScript, (...args: never) => unknown>>[0],
  ) => object
  const script: VendorScript = (call) => {
    const told = (call.body.messages as { role: string }[]).filter(({ role }) => role === 'tool').length
    return broken && told === 2
      ? { status: 400, json: { error: { message: 'no more' } } }
      : (good(call) as never)
  }
  const { run, agent, steps } = await agents.runAgent([count()], script)
  expect([run.status, agent.status]).toEqual(['FAILED', 'FAILED'])
  expect(steps.map(({ step, tool, status }) => [step, tool, status])).toEqual([
    [1, null, 'SUCCESS'],
    [2, 'count', 'SUCCESS'],
    [3, null, 'SUCCESS'],
    [4, 'count', 'SUCCESS'],
    [5, null, 'FAILED'],
  ])
  await rebuilt(run)
  broken = false
  const asked = agents.vendor.calls.length
  const started = await retry(run.id)
  expect(started.takenOver).toEqual([])
  const again = agents.readAgent(await agents.ended(started.executionId))
  expect(again.run.status, JSON.stringify(again.run, null, 1)).toBe('SUCCESS')
  expect(again.agent.outputData).toEqual({ text: 'Counted 3.', steps: 7 })
  expect(paths()).toEqual(['/count/1', '/count/2', '/count/3'])
  expect(agents.vendor.calls.length - asked).toBe(2)
  const shown = again.steps as unknown as { step: number; tool: string | null; takenFrom: string | null }[]
  expect(shown.map(({ step, tool, takenFrom }) => [step, tool, takenFrom])).toEqual([
    [1, null, run.id],
    [2, 'count', run.id],
    [3, null, run.id],
    [4, 'count', run.id],
    [5, null, null],
    [6, 'count', null],
    [7, null, null],
  ])
  expect(again.steps.slice(0, 4).map(({ inputData, outputData }) => [inputData, outputData])).toEqual(
    steps.slice(0, 4).map(({ inputData, outputData }) => [inputData, outputData]),
  )
  expect(again.run.nodeExecutionsTotal).toBe(again.run.nodeExecutions.length)
  await rebuilt(again.run)
})

test('a retry with another config of the agent begins it anew', async () => {
  let broken = true
  const script: VendorScript = () => (broken ? { status: 400, json: {} } : { text: 'Fine.' })
  agents.vendor.say(script)
  const node = (more: Record<string, unknown>) => agents.graphOf(agents.agentNode([count()], more)) as never
  const workflowId = await agents.create(node({}))
  const first = await agents.ended(await agents.execute(workflowId))
  expect(first.status).toBe('FAILED')
  broken = false
  await agents.ask('PUT', `/api/workflows/${workflowId}`, node({ prompt: 'Something else.' }))
  const { executionId } = await retry(first.id, { version: 'current' })
  const { run, steps } = agents.readAgent(await agents.ended(executionId))
  expect([run.status, steps.length]).toEqual(['SUCCESS', 1])
})

test('a task that was under way when its execution was cancelled is not done again by a retry, unless it repeats', async () => {
  for (const [more, told] of [
    [{}, { error: 'outcome unknown' }],
    [{ idempotent: true }, expect.objectContaining({ status: 200 })],
  ] as const) {
    let hanging: (() => void) | undefined
    agents.site.answer(async (_, __, response) => {
      if (!hanging)
        await new Promise<void>((resolve) => {
          hanging = resolve
        })
      response.setHeader('content-type', 'application/json')
      response.end('{}')
    })
    agents.site.calls.length = 0
    agents.vendor.calls.length = 0
    agents.vendor.say(counting(1))
    const graph = agents.graphOf(agents.agentNode([count(more)])) as never
    const id = await agents.execute(await agents.create(graph))
    await expect.poll(() => agents.site.calls.length).toBe(1)
    await agents.ask('POST', `/api/executions/${id}/cancel`)
    const cancelled = agents.readAgent(await agents.ended(id))
    expect([cancelled.run.status, cancelled.agent.status]).toEqual(['CANCELLED', 'CANCELLED'])
    expect(cancelled.steps.map(({ status }) => status)).toEqual(['SUCCESS', 'CANCELLED'])
    hanging!()
    const { executionId } = await retry(id)
    const again = agents.readAgent(await agents.ended(executionId))
    expect(again.run.status, JSON.stringify(again.run, null, 1)).toBe('SUCCESS')
    expect(agents.toldIn(1)).toEqual([told])
    expect(agents.site.calls).toHaveLength('idempotent' in more ? 2 : 1)
    agents.site.answer()
  }
})

test('an agent in a loop, and one for each item, have the steps of each iteration under its own record', async () => {
  agents.vendor.say(counting(1))
  agents.site.calls.length = 0
  const inner = { ...agents.agentNode([count()]), id: 'inner', parentId: 'each' }
  const items = agents.agentNode([count()], { prompt: '{{ $item }}' }, { perItem: { concurrency: 2 } })
  const graph = {
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'each', type: 'FOR_EACH', config: { items: [1, 2], concurrency: 2 } },
      inner,
      { id: 'list', type: 'SET', config: { values: { items: ['a', 'b'] } } },
      items,
    ],
    edges: [
      { source: 'start', target: 'each' },
      { source: 'start', target: 'list' },
      { source: 'list', target: 'agent' },
    ],
  }
  const run = await agents.run(graph as never)
  expect(run.status, JSON.stringify(run, null, 1)).toBe('SUCCESS')
  type Record = { nodeId: string; iteration: string | null; step: number | null; tool: string | null }
  const shown = (run.nodeExecutions as unknown as Record[]).map(
    ({ nodeId, iteration, step, tool }) => `${nodeId} ${iteration} ${step} ${tool}`,
  )
  for (const [id, iteration] of [
    ['inner', '0'],
    ['inner', '1'],
    ['agent', '0'],
    ['agent', '1'],
  ]) {
    const at = shown.indexOf(`${id} ${iteration} null null`)
    expect(shown.slice(at + 1, at + 4)).toEqual([
      `${id} ${iteration} 1 null`,
      `${id} ${iteration} 2 count`,
      `${id} ${iteration} 3 null`,
    ])
  }
  await rebuilt(run)
})

test('a failed turn leaves by the error handle; a failed task does not', async () => {
  agents.site.answer((_, __, response) => void response.writeHead(500).end())
  const more = { nodes: [{ id: 'after', type: 'NO_OP', config: {} }] }
  const graph = {
    ...more,
    edges: [
      { source: 'start', target: 'agent' },
      { source: 'agent', target: 'after', sourceHandle: 'error' },
    ],
  }
  const node = { onError: 'BRANCH' }
  const fine = await agents.runAgent([count({ url: 'http://127.0.0.1:1/' })], counting(1), { graph, node })
  expect([fine.run.status, fine.agent.status, fine.agent.handle]).toEqual(['SUCCESS', 'SUCCESS', null])
  expect(fine.steps[1]).toMatchObject({ status: 'FAILED', tool: 'count' })
  agents.site.answer()
  const failed = await agents.runAgent([count()], { status: 401, json: {} }, { graph, node })
  expect([failed.run.status, failed.agent.status, failed.agent.handle]).toEqual([
    'SUCCESS',
    'FAILED',
    'error',
  ])
  expect(failed.run.nodeExecutions.map(({ nodeId }) => nodeId)).toContain('after')
})

test('steps are in pages, filters, the stream and the export', async () => {
  const { run } = await agents.runAgent([count()], counting(2))
  type Page = { content: { nodeId: string; step: number | null }[]; totalElements: number }
  const list = (query: string) => agents.ask<Page>('GET', `/api/executions/${run.id}/nodes?${query}`)
  const all = await list('nodeId=agent')
  expect(all.content.map(({ step }) => step)).toEqual([null, 1, 2, 3, 4, 5])
  expect(all.totalElements).toBe(6)
  const whole = await list('steps=false')
  expect(whole.content.map(({ nodeId, step }) => [nodeId, step])).toEqual([
    ['start', null],
    ['agent', null],
  ])
  expect(whole.totalElements).toBe(2)
  expect(run.nodeExecutionsTotal).toBe(7)
  const events = await readEvents(
    await agents.request(`/api/executions/${run.id}/events`, { as: agents.admin }),
  ).all()
  const nodes = events
    .filter(({ event }) => event === 'node')
    .map(({ data }) => data as { step: number | null })
  expect(nodes.filter(({ step }) => step !== null)).toHaveLength(5)
  const exported = await agents.request(`/api/executions/team/${agents.teamId}/export?format=json`, {
    as: agents.admin,
  })
  const rows = (await exported.json()) as { executionId: string; nodeExecutions: { tool: string | null }[] }[]
  const own = rows.find(({ executionId }) => executionId === run.id)!
  expect(own.nodeExecutions.map(({ tool }) => tool)).toEqual([null, null, null, 'count', null, 'count', null])
})
