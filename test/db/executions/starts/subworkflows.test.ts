import { describe, expect, test } from 'vitest'
import type { ExecutionBody, Graph } from '../../../support/client.ts'
import { edges } from '../../../support/engine/graphs.ts'
import { keep } from '../../../support/keep.ts'
import { startRunning } from '../../../support/running.ts'
import { until } from '../../../support/until.ts'

type Run = ExecutionBody & { parentExecutionId: string | null; parentNodeId: string | null }

const running = await keep(startRunning())

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
const entry = { id: 'in', type: 'SUB_WORKFLOW_TRIGGER', config: {} }
const call = (
  workflowId: string,
  config: Record<string, unknown> = {},
  more: Record<string, unknown> = {},
) => ({
  id: 'sub',
  type: 'SUB_WORKFLOW',
  config: { workflowId, ...config },
  ...more,
})
const calling = (
  workflowId: string,
  config?: Record<string, unknown>,
  more?: Record<string, unknown>,
): Graph => ({
  nodes: [start, call(workflowId, config, more)],
  edges: edges('start -> sub'),
})
const doubling = (): Promise<string> =>
  running.create({
    nodes: [
      entry,
      { id: 'double', type: 'SET', config: { values: { n: '{{ $input.n * 2 }}', pad: '{{ $input.pad }}' } } },
    ],
    edges: edges('in -> double'),
  })
/** Creates a child workflow that runs until it is ended from outside. */
const hanging = (settings = {}): Promise<string> =>
  running.create({
    nodes: [entry, { id: 'hang', type: 'WAIT', config: { durationMs: 600_000 } }],
    edges: edges('in -> hang'),
    settings,
  })

const readChild = async (run: ExecutionBody, nodeId = 'sub', iteration: string | null = null) => {
  const node = run.nodeExecutions.find((one) => one.nodeId === nodeId && one.iteration === iteration)
  return (await running.read((node as unknown as { childExecutionId: string }).childExecutionId)) as Run
}

/** The ids of a workflow's executions that have `status`, once there are `count` of them. */
async function children(workflowId: string, count: number, status = 'RUNNING'): Promise<string[]> {
  for (const giveUp = Date.now() + 45_000; ; ) {
    const path = `/api/executions?workflowId=${workflowId}&status=${status}&size=100`
    const found = (await running.ask<{ content: { id: string }[] }>('GET', path)).content.map(({ id }) => id)
    if (found.length === count) return found
    if (Date.now() > giveUp) throw new Error(`${found.length} of ${count} are ${status}`)
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

describe('a child that its parent waits for', () => {
  test("gets the node's input, and its output, however big, becomes the node's", async () => {
    const child = await doubling()
    const pad = 'x'.repeat(100_000)
    const run = await running.run(
      calling(child, { input: { n: '{{ $input.a }}', pad: '{{ $input.pad }}' } }),
      { a: 4, pad },
    )
    expect(run.errorMessage).toBeNull()
    expect(run.outputData).toEqual({ n: 8, pad })
    const sub = await readChild(run)
    expect(sub).toMatchObject({
      trigger: 'SUB_WORKFLOW',
      parentExecutionId: run.id,
      parentNodeId: 'sub',
      inputData: { n: 4, pad },
      status: 'SUCCESS',
      outputData: { n: 8, pad },
    })
    expect(run).toMatchObject({ parentExecutionId: null, parentNodeId: null })
  })

  test("gets the node's own input if the config has none, and may start at a MANUAL_TRIGGER", async () => {
    const child = await running.create({ nodes: [start], edges: [] })
    const run = await running.run(calling('{{ $input.child }}'), { child })
    expect(run.outputData).toEqual({ child })
  })

  test('fails the node if it fails or is cancelled', async () => {
    const failing = await running.create({
      nodes: [entry, { id: 'stop', type: 'STOP_AND_ERROR', config: { message: 'no {{ $input.what }}' } }],
      edges: edges('in -> stop'),
    })
    const rescue = { id: 'rescue', type: 'SET', config: { values: { why: '{{ $input.error }}' } } }
    const graph = calling(failing, { input: { what: 'luck' } }, { onError: 'BRANCH' })
    const run = await running.run({
      nodes: [...graph.nodes, rescue],
      edges: edges('start -> sub', 'sub:error -> rescue'),
    })
    expect(run.outputData).toEqual({ why: { message: 'no luck', type: 'SubWorkflowFailed', nodeId: 'sub' } })

    const child = await hanging()
    const id = await running.execute(await running.create(calling(child)))
    const [sub] = await children(child, 1)
    await running.ask('POST', `/api/executions/${sub}/cancel`)
    expect(await running.ended(id)).toMatchObject({
      status: 'FAILED',
      errorMessage: 'The sub-workflow was cancelled: The execution was cancelled',
    })
  })

  test('fails the node if it is deleted with its workflow', async () => {
    const child = await hanging()
    const id = await running.execute(await running.create(calling(child)))
    await children(child, 1)
    await running.ask('DELETE', `/api/workflows/${child}`)
    expect(await running.ended(id)).toMatchObject({
      status: 'FAILED',
      errorMessage: 'The execution of the sub-workflow was deleted',
    })
  })

  test("ends when its parent's workflow or team is deleted", async () => {
    const child = await hanging()
    const parent = await running.create(calling(child))
    await running.execute(parent)
    const [sub] = await children(child, 1)
    await running.ask('DELETE', `/api/workflows/${parent}`)
    expect(await running.ended(sub!)).toMatchObject({
      status: 'CANCELLED',
      errorMessage: 'The execution that waited for it was deleted',
    })

    const other = await running.otherTeam()
    const send = async (method: string, path: string, json?: object) => {
      const answer = await running.request(path, { method, as: other.cookie, json })
      expect(answer.status).toBeLessThan(300)
      return answer.status === 204 ? {} : answer.json().catch(() => ({}))
    }
    const { teamId } = other
    const make = async (graph: Graph) =>
      (
        (await send('POST', '/api/workflows', { name: crypto.randomUUID(), teamId, ...graph })) as {
          id: string
        }
      ).id
    const inner = await make({
      nodes: [entry, { id: 'hang', type: 'WAIT', config: { durationMs: 600_000 } }],
      edges: edges('in -> hang'),
    })
    const outer = await make(calling(inner))
    await send('POST', `/api/workflows/${outer}/execute`, { teamId })
    const open = () =>
      running.store.db.selectFrom('executions').select('id').where('workflowId', '=', inner).execute()
    while ((await open()).length === 0) await new Promise((resolve) => setTimeout(resolve, 25))
    const { name } = (await send('GET', `/api/teams/${teamId}`)) as { name: string }
    await send('DELETE', `/api/teams/${teamId}`, { name })
    expect(await open()).toEqual([])
  })

  test('ends when its parent or a parent above that ends', async () => {
    const child = await hanging()
    const middle = await running.create({
      ...calling(child),
      nodes: [entry, call(child)],
      edges: edges('in -> sub'),
    })
    const id = await running.execute(await running.create(calling(middle)))
    const [sub] = await children(child, 1)
    await running.ask('POST', `/api/executions/${id}/cancel`)
    expect((await running.ended(id)).status).toBe('CANCELLED')
    expect((await running.ended(sub!)).status).toBe('CANCELLED')
    await children(middle, 1, 'CANCELLED')
  })

  test('continues where it was after a time without workers', async () => {
    const child = await running.create({
      nodes: [entry, { id: 'hang', type: 'WAIT', config: { durationMs: 700 } }],
      edges: edges('in -> hang'),
    })
    const id = await running.execute(await running.create(calling(child, { input: { n: 1 } })))
    await children(child, 1)
    await running.engine.stop()
    running.engine = await running.addEngine()
    running.use(running.engine)
    const run = await running.ended(id)
    expect(run.outputData).toEqual({ n: 1 })
    await children(child, 1, 'SUCCESS')
  })
})

describe('a child that its parent does not wait for', () => {
  test("lives on when the parent has ended, and its id is the node's output", async () => {
    const child = await hanging()
    const run = await running.run(calling(child, { wait: false }))
    const [sub] = await children(child, 1)
    expect(run.outputData).toEqual({ executionId: sub })
    expect(((await readChild(run)) as Run).status).toBe('RUNNING')
    await running.ask('POST', `/api/executions/${sub}/cancel`)
  })
})

describe('the children of a loop', () => {
  test('are executed for the items of a list', async () => {
    const child = await doubling()
    const run = await running.run({
      nodes: [
        start,
        { id: 'each', type: 'FOR_EACH', config: { items: '{{ [1..8] }}', concurrency: 4 } },
        call(child, { input: { n: '{{ $item }}' } }, { parentId: 'each' }),
      ],
      edges: edges('start -> each'),
    })
    expect(run.errorMessage).toBeNull()
    expect((run.outputData!.items as { n: number }[]).map(({ n }) => n)).toEqual([2, 4, 6, 8, 10, 12, 14, 16])
    expect(await readChild(run, 'sub', '3')).toMatchObject({ inputData: { n: 4 }, parentNodeId: 'sub' })
  })

  test('end when one of them ends the loop that waits for them', async () => {
    const child = await hanging()
    const id = await running.execute(
      await running.create({
        nodes: [
          start,
          {
            id: 'each',
            type: 'FOR_EACH',
            config: { items: '{{ [1..3] }}', concurrency: 3 },
            onError: 'CONTINUE',
          },
          call(child, {}, { parentId: 'each' }),
          { id: 'after', type: 'WAIT', config: { durationMs: 600_000 } },
        ],
        edges: edges('start -> each', 'each -> after'),
      }),
    )
    const subs = await children(child, 3)
    await running.ask('POST', `/api/executions/${subs[0]}/cancel`)
    await children(child, 3, 'CANCELLED')
    expect((await running.read(id)).status).toBe('RUNNING')
    await running.ask('POST', `/api/executions/${id}/cancel`)
  })

  test('keep to the limit of their workflow', async () => {
    const concurrency = { limit: 1, key: null, policy: 'queue' }
    const child = await running.create({ nodes: [entry], edges: [], settings: { concurrency } })
    const graph = (nodeId: string) => ({
      nodes: [
        start,
        {
          id: 'each',
          type: 'FOR_EACH',
          config: { items: '{{ [1..4] }}', concurrency: 4, onItemError: 'collect' },
        },
        call(nodeId, { input: { n: '{{ $item }}' } }, { parentId: 'each' }),
      ],
      edges: edges('start -> each'),
    })
    const run = await running.run(graph(child))
    expect((run.outputData!.items as { n: number }[]).map(({ n }) => n)).toEqual([1, 2, 3, 4])

    const strict = await hanging({ concurrency: { ...concurrency, policy: 'reject' } })
    const id = await running.execute(await running.create(graph(strict)))
    const [sub] = await children(strict, 1)
    // Those that come after the cancellation would find the place free.
    const isRefused = (record: { status: string }) => record.status === 'FAILED'
    await until(async () => (await running.read(id)).nodeExecutions.filter(isRefused).length === 3)
    await running.ask('POST', `/api/executions/${sub}/cancel`)
    const { items } = (await running.ended(id)).outputData as { items: { error: { type: string } }[] }
    expect(items.map(({ error }) => error.type).sort()).toEqual([
      'SubWorkflowCancelled',
      'SubWorkflowRefused',
      'SubWorkflowRefused',
      'SubWorkflowRefused',
    ])
  })
})

describe('endless nesting', () => {
  /** A workflow that calls itself for as long as `left` is above 0, directly or by another one. */
  const countdown = (workflowId: string, config: object = {}) => ({
    nodes: [
      entry,
      { id: 'more', type: 'IF_ELSE', config: { condition: '{{ $trigger.left > 0 }}' } },
      call(workflowId, { input: { left: '{{ $trigger.left - 1 }}' }, ...config }),
    ],
    edges: edges('in -> more', 'more:true -> sub'),
  })

  test('of a workflow in itself goes ten levels deep, by its id or by what expressions read of it', async () => {
    const id = await running.create({ nodes: [entry], edges: [] })
    await running.ask('PUT', `/api/workflows/${id}`, countdown(id))
    const deep = await running.ended(await running.execute(id, { left: 3 }))
    expect([deep.status, deep.errorMessage]).toEqual(['SUCCESS', null])
    const runs = await running.ask<{ content: unknown[] }>('GET', `/api/executions?workflowId=${id}`)
    expect(runs.content).toHaveLength(4)
    const other = await running.create(countdown('{{ $execution.workflowId }}'))
    const endless = await running.ended(await running.execute(other, { left: 100 }))
    expect(endless).toMatchObject({
      status: 'FAILED',
      errorMessage: 'Sub-workflows are nested at most 10 levels deep',
    })
  })

  test('of a workflow in itself is refused without its trigger, and where it would wait for itself', async () => {
    const id = await running.create({ nodes: [start], edges: [] })
    const json = { nodes: [start, call(id)], edges: edges('start -> sub') }
    const put = { method: 'PUT', as: running.admin, json } as const
    expect((await running.request(`/api/workflows/${id}`, put)).status).toBe(400)
    const settings = { concurrency: { limit: 2, policy: 'queue' } }
    await running.ask('PUT', `/api/workflows/${id}`, { ...countdown(id), settings })
    const { name } = await running.ask<{ name: string }>('GET', `/api/workflows/${id}`)
    expect((await running.ended(await running.execute(id, { left: 1 }))).status).toBe('SUCCESS')
    const run = await running.ended(await running.execute(id, { left: 2 }))
    expect(run).toMatchObject({
      status: 'FAILED',
      errorMessage: expect.stringContaining(`"${name}" would wait for itself`),
    })
  })

  test('of more than ten different workflows is refused', async () => {
    let id = await running.create({ nodes: [entry], edges: [] })
    for (let depth = 0; depth < 11; depth++) {
      id = await running.create({ nodes: [entry, call(id)], edges: edges('in -> sub') })
    }
    const run = await running.ended(await running.execute(id))
    expect(run).toMatchObject({
      status: 'FAILED',
      errorMessage: 'Sub-workflows are nested at most 10 levels deep',
    })
  })
})

test('a graph may only name workflows of its own team that have a SUB_WORKFLOW_TRIGGER', async () => {
  const other = await running.otherTeam()
  const create = (as: string, teamId: string, nodes: object[]) =>
    running.request('/api/workflows', {
      method: 'POST',
      as,
      json: { name: crypto.randomUUID(), teamId, nodes, edges: [] },
    })
  const foreign = ((await (await create(other.cookie, other.teamId, [entry])).json()) as { id: string }).id
  const notCallable = await running.create({ nodes: [{ ...start, type: 'ERROR_TRIGGER' }], edges: [] })
  const nodes = [
    start,
    ...[foreign, notCallable, 'x', crypto.randomUUID()].map((workflowId, at) => ({
      ...call(workflowId),
      id: `sub${at}`,
    })),
  ]
  const shape = await create(running.admin, running.teamId, nodes)
  expect(((await shape.json()) as { errors: unknown }).errors).toEqual([
    { path: 'nodes[3].config.workflowId', message: "must be a workflow's id" },
  ])
  const answer = await create(running.admin, running.teamId, nodes.toSpliced(3, 1))
  expect(answer.status).toBe(400)
  expect(((await answer.json()) as { errors: unknown }).errors).toEqual([
    { path: 'nodes[1].config.workflowId', message: 'must be a workflow of this team' },
    { path: 'nodes[2].config.workflowId', message: 'must be a workflow with a SUB_WORKFLOW_TRIGGER' },
    { path: 'nodes[3].config.workflowId', message: 'must be a workflow of this team' },
  ])
  const run = await running.run(calling('{{ $input.id }}'), { id: foreign })
  expect(run).toMatchObject({ status: 'FAILED', errorMessage: 'The team has no such workflow' })
})
