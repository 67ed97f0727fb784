import { sql } from 'kysely'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { readHistories } from '../../../activities/temporal/histories.ts'
import { createProjector } from '../../../activities/temporal/projector.ts'
import { rebuildExecution } from '../../../activities/temporal/rebuild.ts'
import { createFold } from '../../../db/executions/projection/fold.ts'
import { compilePlan } from '../../../workflows/graph/compile.ts'
import { createFrame } from '../../../workflows/run/frame.ts'
import { collectTasks, settleRecord } from '../../../workflows/run/loops.ts'
import type { SegmentInput } from '../../../workflows/run/messages.ts'
import type { NodeRecord, StepResult } from '../../../workflows/run/records.ts'
import type { LoopRules } from '../../../workflows/run/rules.ts'
import { findOthers, segmentRules } from '../../../workflows/run/rules.ts'
import { sliceState } from '../../../workflows/run/slice.ts'
import { atOnce } from '../../support/atonce.ts'
import { type Example, edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf, type Running, startRunning } from '../../support/running.ts'
import { startTarget } from '../../support/servers/target.ts'

/** Loops at the limits of messages, of the state that a run carries over, and of responses. */
const target = await keep(startTarget())
const plain = await keep(startRunning())
const forced = await keep(startRunning({ continueAfterEvents: 20 }))

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }

/** Waits for the end by the row alone: the execution's detail is big here, and slow to poll. */
async function run(host: Running, graph: Pick<Example, 'nodes' | 'edges' | 'settings'>, data = {}) {
  const id = await host.execute(await host.create(graph), data)
  for (;;) {
    const { status } = await host.store.db
      .selectFrom('executions')
      .select('status')
      .where('id', '=', id)
      .executeTakeFirstOrThrow()
    if (status !== 'PENDING' && status !== 'RUNNING') return host.read(id)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

describe("Temporal's limits hold for", () => {
  test('a pure body with more outputs than fit into one message', { tags: 'long' }, async () => {
    const { errorMessage, nodeExecutionsTotal } = await run(plain, {
      nodes: [
        start,
        { id: 'each', type: 'FOR_EACH', config: { items: '{{ [1..2500] }}' } },
        { id: 'big', parentId: 'each', type: 'SET', config: { values: { text: 'x'.repeat(2_000) } } },
        { id: 'small', parentId: 'each', type: 'SET', config: { values: { n: '{{ $index }}' } } },
      ],
      edges: edges('start -> each', 'big -> small'),
    })
    expect(errorMessage).toBeNull()
    expect(nodeExecutionsTotal).toBe(5_002)
  })

  test('the state of many long loops that is carried over', { tags: 'long' }, async () => {
    const inner = { items: '{{ $trigger.list }}', concurrency: 2 }
    const { errorMessage, outputData } = await run(
      forced,
      {
        nodes: [
          start,
          { id: 'each', type: 'FOR_EACH', config: { items: '{{ [1..64] }}', concurrency: 64 } },
          { id: 'inner', parentId: 'each', type: 'FOR_EACH', onError: 'CONTINUE', config: inner },
          { id: 'wait', parentId: 'inner', type: 'WAIT', config: { durationMs: 1_500 } },
          { id: 'stop', parentId: 'inner', type: 'STOP_AND_ERROR', config: { message: 'enough' } },
        ],
        edges: edges('start -> each', 'wait -> stop'),
      },
      { list: Array.from({ length: 20_000 }, () => 1) },
    )
    expect(errorMessage).toBeNull()
    expect(outputData!.items).toHaveLength(64)
  })

  test("the results that a REPEAT's iteration hands to the next", { tags: 'long' }, async () => {
    const calls = Array.from({ length: 25 }, (_, at) => ({
      id: `call${at}`,
      parentId: 'each',
      type: 'HTTP_REQUEST',
      config: { url: `${target.url}/big?bytes=30000` },
    }))
    const { errorMessage, outputData } = await run(forced, {
      nodes: [start, { id: 'each', type: 'REPEAT', config: { until: 'false', maxIterations: 3 } }, ...calls],
      edges: edges('start -> each'),
    })
    expect(errorMessage).toBeNull()
    expect(Object.keys(outputData!)).toHaveLength(25)
  })

  test('a big body, of which fewer iterations run at once', () => {
    const body = Array.from({ length: 400 }, (_, at) => ({ id: `call${at}`, parentId: 'each' }))
    const rest = { name: 'n', onError: 'FAIL' as const, config: {} }
    const nodes = [
      { ...start, ...rest },
      { ...rest, id: 'each', type: 'FOR_EACH', config: { items: [1], concurrency: 64 } },
      ...body.map((node) => ({ ...rest, ...node, type: 'HTTP_REQUEST' })),
    ]
    const of = { workflowId: 'w', version: 1, triggerNodeId: 'start' }
    const plan = atOnce(compilePlan({ nodes, edges: [] }, of))
    const { concurrency } = plan.nodes.find(({ id }) => id === 'each')!.loop!
    const settled = { ref: 'x'.repeat(64), bytes: 100_000 }
    const frame = createFrame('each', '0')
    for (const { id } of body) {
      frame.outputs[id] = settled
      frame.outcomes[id] = { handle: null }
    }
    expect(concurrency).toBeGreaterThan(1)
    expect(JSON.stringify(frame).length * concurrency).toBeLessThan(1_000_000)
  })
})

test('a loop ends as soon as its results together are too big', { tags: 'long' }, async () => {
  const before = target.calls.length
  const { errorMessage } = await run(plain, {
    nodes: [
      start,
      { id: 'each', type: 'FOR_EACH', config: { items: '{{ [1..300] }}', concurrency: 8 } },
      {
        id: 'call',
        parentId: 'each',
        type: 'HTTP_REQUEST',
        config: { url: `${target.url}/big?bytes=90000` },
      },
    ],
    edges: edges('start -> each'),
  })
  expect(errorMessage).toMatch(/^The results of \d+ iterations have more than 8000000 bytes together$/)
  expect(target.calls.length - before).toBeLessThan(150)
})

describe('an execution shows', () => {
  test('150 records with the same big input in a response of bounded size', { tags: 'long' }, async () => {
    const graph = {
      nodes: [
        start,
        { id: 'each', type: 'REPEAT', config: { until: 'false', maxIterations: 150 } },
        { id: 'pass', parentId: 'each', type: 'NO_OP', config: {} },
      ],
      edges: edges('start -> each'),
    }
    const { id, nodeExecutions } = await run(plain, graph, { text: 'x'.repeat(700_000) })
    const response = await plain.request(`/api/executions/${id}`, { as: plain.admin })
    expect((await response.text()).length).toBeLessThan(40_000_000)
    expect(nodeExecutions.at(-1)!.inputData).toEqual({ truncated: true, bytes: 700_011 })
  })

  test('no open records of loops after the time limit has cancelled it', async () => {
    const { id, status, nodeExecutions } = await run(plain, {
      nodes: [
        start,
        { id: '0', type: 'FOR_EACH', config: { items: [1, 2], concurrency: 2 } },
        { id: 'toString', parentId: '0', type: 'REPEAT', config: { until: 'false' } },
        { id: '10', parentId: 'toString', type: 'WAIT', config: { durationMs: 100_000 } },
        { id: 'a-b', parentId: '0', type: 'HTTP_REQUEST', config: { url: `${target.url}/hang` } },
      ],
      edges: edges('start -> 0'),
      settings: { timeoutMs: 1_500 },
    })
    expect(status).toBe('CANCELLED')
    const outline = nodeExecutions.map(({ nodeId, iteration, status }) => `${nodeId} ${iteration} ${status}`)
    expect(outline.sort()).toEqual([
      '0 null CANCELLED',
      '10 0.0 CANCELLED',
      '10 1.0 CANCELLED',
      'a-b 0 CANCELLED',
      'a-b 1 CANCELLED',
      'start null SUCCESS',
      'toString 0 CANCELLED',
      'toString 1 CANCELLED',
    ])
    const { client, sealer } = plain.engine
    await rebuildExecution({ store: plain.store, client, sealer }, id)
    expect((await plain.read(id)).nodeExecutions).toEqual(nodeExecutions)
  })

  test("the error of a REPEAT's condition at the loop", async () => {
    const failed = await run(plain, {
      nodes: [
        start,
        { id: 'each', type: 'REPEAT', config: { until: '$error("no")', maxIterations: 3 } },
        { id: 'pass', parentId: 'each', type: 'NO_OP', config: {} },
      ],
      edges: edges('start -> each'),
    })
    expect(failed.status).toBe('FAILED')
    expect(nodeOf(failed, 'each').status).toBe('FAILED')
    expect(nodeOf(failed, 'each').errorMessage).toBe(failed.errorMessage)
    expect(failed.nodeExecutionsTotal).toBe(3)
  })
})

test('50,000 collected failures are projected in less than 4 s', () => {
  const graph = {
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER' },
      { id: 'each', type: 'FOR_EACH', config: { items: [1], onItemError: 'collect' } },
      { id: 'stop', parentId: 'each', type: 'STOP_AND_ERROR', config: { message: 'no' } },
    ].map((node) => ({ name: node.id, config: {}, onError: 'FAIL' as const, ...node })),
    edges: [{ source: 'start', sourceHandle: null, target: 'each' }],
  }
  const plan = atOnce(compilePlan(graph, { workflowId: 'w', version: 1, triggerNodeId: 'start' }))
  const times = { handle: null, startedAt: 1, completedAt: 2 }
  const records: NodeRecord[] = [
    { nodeId: 'each', iteration: '', status: 'LOOPING', loop: { count: 50_000, pages: [] }, ...times },
    ...Array.from({ length: 50_000 }, (_, at) => ({
      nodeId: 'stop',
      iteration: String(at),
      status: 'FAILED' as const,
      error: { message: 'no', type: 'Error' },
      ...times,
    })),
  ]
  const begun = process.threadCpuUsage()
  const fold = createFold('01a1ff0f-dd40-77fd-b82a-d921af9ddf4c')
  fold.read({
    runId: 'r',
    events: [
      { id: 1, time: 1, kind: 'started', input: { plan } as never, continuedFrom: null },
      { id: 2, time: 3, kind: 'records', records },
    ],
  })
  const { nodes } = fold.project()
  expect(nodes.filter(({ status }) => status === 'FAILED')).toHaveLength(50_000)
  const { user, system } = process.threadCpuUsage(begun)
  expect((user + system) / 1_000).toBeLessThan(4_000)
})

test('the closed histories of an open execution are read only once', { tags: 'long' }, async () => {
  const id = await forced.execute(
    await forced.create({
      nodes: [
        start,
        { id: 'each', type: 'FOR_EACH', config: { items: '{{ [1..12] }}' } },
        {
          id: 'call',
          parentId: 'each',
          type: 'HTTP_REQUEST',
          config: { url: `${target.url}/ok?n={{ $item }}` },
        },
        { id: 'wait', type: 'WAIT', config: { durationMs: 600_000 } },
      ],
      edges: edges('start -> each', 'each -> wait'),
    }),
  )
  await forced.until(id, (seen) => seen.nodeExecutions.some(({ nodeId }) => nodeId === 'wait'))
  const { client } = forced.engine
  const asked: string[] = []
  const workflowService = new Proxy(client.workflowService, {
    get(service, key) {
      if (key !== 'getWorkflowExecutionHistory') return Reflect.get(service, key)
      return (request: { execution: { runId: string }; maximumPageSize: number }) => {
        if (request.maximumPageSize > 1) asked.push(request.execution.runId)
        return service.getWorkflowExecutionHistory(request)
      }
    },
  })
  const watched = new Proxy(client, {
    get: (own, key) => (key === 'workflowService' ? workflowService : Reflect.get(own, key)),
  })
  const { store } = forced
  const deps = { store, client: watched, sealer: forced.engine.sealer, log: pino({ level: 'silent' }) }
  const projector = createProjector(deps)
  const refresh = () => Promise.all([projector.refresh(id), projector.refresh(id), projector.refresh(id)])
  // From the rows on, only the newest has to be read.
  await refresh()
  expect(asked).toEqual(['', ...asked.slice(1)])
  expect(new Set(asked.slice(1)).size).toBeLessThan(2)
  const late = createProjector(deps)
  await forced.store.db.deleteFrom('nodeExecutions').where('executionId', '=', id).execute()
  await sql`update executions set run_id = null, run_position = 0, last_event_id = 0 where id = ${id}`.execute(
    forced.store.db,
  )
  asked.length = 0
  await Promise.all([late.refresh(id), late.refresh(id), late.refresh(id)])
  await Promise.all([projector.stop(), late.stop()])
  const over = asked.filter((runId) => runId !== '')
  expect(over.length).toBeGreaterThan(1)
  expect(new Set(over).size).toBe(over.length)
  // What comes later is read from the end back.
  expect(asked.filter((runId) => runId === '')).toHaveLength(1)

  // The newest history comes first, since it names the one before it; then one at a time, so that no two are
  // in memory.
  asked.length = 0
  const held: number[] = []
  for await (const _ of readHistories(watched, forced.engine.sealer, id, { untilClosed: false }))
    held.push(asked.length)
  expect(held).toEqual([...over.map((_, at) => at + 2), over.length + 1])
  await forced.ask('POST', `/api/executions/${id}/cancel`)
})

describe('a loop that fails while other tasks are at work in it', () => {
  const rest = { name: 'n', onError: 'FAIL' as const, config: {} }
  const graph = (config: object) => ({
    nodes: [
      { ...rest, ...start },
      { ...rest, id: 'each', type: 'FOR_EACH', config: { items: [1], ...config } },
      { ...rest, id: 'call', parentId: 'each', type: 'HTTP_REQUEST' },
      { ...rest, id: 'stop', parentId: 'each', type: 'STOP_AND_ERROR' },
      { ...rest, id: 'other', parentId: 'each', type: 'HTTP_REQUEST' },
    ],
    edges: [
      { source: 'start', sourceHandle: null, target: 'each' },
      { source: 'call', sourceHandle: null, target: 'stop' },
    ],
  })
  const times = { startedAt: 1, completedAt: 2 }

  /**
   * Begins `count` iterations, lets `stop` of the first fail in a segment, and returns what that segment does
   * next.
   */
  function fail(config: object, count: number, busy: string[]) {
    const plan = atOnce(compilePlan(graph(config), { workflowId: 'w', version: 1, triggerNodeId: 'start' }))
    const root = createFrame()
    const rules: LoopRules = {
      segment: false,
      begins: () => true,
      ends: () => true,
      holds: () => false,
      drains: false,
    }
    const succeeded: StepResult = { status: 'SUCCESS', output: { v: 1, bytes: 1 }, handle: null }
    const note = (nodeId: string, iteration: string, result: StepResult = succeeded) =>
      settleRecord(plan, root, { nodeId, iteration, ...times, ...result })
    note('start', '')
    const pages = [{ from: 0, items: { v: Array.from({ length: count }, () => 1), bytes: 9 } }]
    note('each', '', { status: 'LOOPING', loop: { count, pages }, handle: null })
    collectTasks(plan, root, new Set(), rules)
    note('call', '0')
    const tasks = collectTasks(plan, root, new Set(busy), rules).filter(({ node }) => node.id === 'stop')
    expect(tasks).toHaveLength(1)
    const segment = { plan, busy, root: sliceState(plan, root, tasks) } as unknown as SegmentInput
    const own = segmentRules(segment)
    const error = { message: 'no', type: 'Error' }
    const failed: NodeRecord = {
      nodeId: 'stop',
      iteration: '0',
      status: 'FAILED',
      error,
      handle: null,
      ...times,
    }
    settleRecord(plan, segment.root, failed, own.ends)
    return collectTasks(plan, segment.root, new Set(busy), own).map(({ phase }) => phase)
  }

  test('is closed by the segment only if nobody else could close it too', () => {
    expect(fail({}, 1, [])).toEqual(['close'])
    expect(fail({}, 1, ['other#0'])).toEqual([])
    expect(fail({ concurrency: 2 }, 2, ['other#0', 'call#1', 'other#1'])).toEqual([])
    expect(fail({ concurrency: 2, onItemError: 'collect' }, 1, ['other#0'])).toEqual([])
  })
})

test('a segment of a draining run leaves to the new run what another segment might carry on too', () => {
  const node = { name: 'n', onError: 'FAIL' as const, config: {} }
  const graph = {
    nodes: [
      { ...node, ...start },
      { ...node, id: 'pure', type: 'FOR_EACH' },
      { ...node, id: 'set', parentId: 'pure', type: 'SET' },
      { ...node, id: 'calls', type: 'FOR_EACH' },
      { ...node, id: 'first', parentId: 'calls', type: 'SET' },
      { ...node, id: 'call', parentId: 'calls', type: 'HTTP_REQUEST' },
    ],
    edges: ['pure', 'calls'].map((target) => ({ source: 'start', sourceHandle: null, target })),
  }
  const plan = atOnce(compilePlan(graph, { workflowId: 'w', version: 1, triggerNodeId: 'start' }))
  const root = createFrame()
  const times = { iteration: '', handle: null, startedAt: 1, completedAt: 2 }
  const loop = { count: 2, pages: [{ from: 0, items: { v: [1, 2], bytes: 5 } }] }
  settleRecord(plan, root, { ...times, nodeId: 'start', status: 'SUCCESS', output: { v: 1, bytes: 1 } })
  for (const nodeId of ['pure', 'calls'])
    settleRecord(plan, root, { ...times, nodeId, status: 'LOOPING', loop })
  const walk = (drains: object) => {
    const segment = { plan, busy: [], root: sliceState(plan, root, []), ...drains } as unknown as SegmentInput
    return collectTasks(plan, segment.root, findOthers(segment), segmentRules(segment)).map(
      ({ node: { id } }) => id,
    )
  }
  expect(walk({ drains: true })).toEqual([])
  expect(walk({})).toEqual(['set', 'first', 'call'])
})
