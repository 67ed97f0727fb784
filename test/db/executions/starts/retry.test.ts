import { describe, expect, test } from 'vitest'
import type { ExecutionBody } from '../../../support/client.ts'
import { edges } from '../../../support/engine/graphs.ts'
import { keep } from '../../../support/keep.ts'
import { nodeOf, shareRunning } from '../../../support/running.ts'
import { startTarget } from '../../../support/servers/target.ts'

const target = await keep(startTarget())
const host = await keep(shareRunning())

type Recovered = { executionId: string; retriedFrom: string; takenOver: string[]; workflowVersion: number }
type Detail = ExecutionBody & {
  retriedFrom: string | null
  recovery: string | null
  retries: string[]
  retriedBy: string | null
}

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
const call = (id: string, path: string, more = {}) => ({
  id,
  type: 'HTTP_REQUEST',
  retry: { maxAttempts: 1 },
  config: { url: target.url + path },
  ...more,
})
const set = (id: string, values: Record<string, unknown>, more = {}) => ({
  id,
  type: 'SET',
  config: { values },
  ...more,
})

const recover = (id: string, how: 'retry' | 'rerun', version?: string) =>
  host.ask<Recovered>('POST', `/api/executions/${id}/${how}`, version ? { version } : undefined)

/** Retries or reruns the execution, and waits for the end of the new one. */
async function again(
  id: string,
  how: 'retry' | 'rerun',
  version?: string,
): Promise<Recovered & { run: Detail }> {
  const recovered = await recover(id, how, version)
  return { ...recovered, run: (await host.ended(recovered.executionId)) as Detail }
}

const origins = (run: ExecutionBody) =>
  Object.fromEntries(
    (run.nodeExecutions as (ExecutionBody['nodeExecutions'][number] & { takenFrom: string | null })[])
      .filter(({ iteration }) => iteration === null)
      .map(({ nodeId, takenFrom }) => [nodeId, takenFrom]),
  )
const workflowOf = (run: ExecutionBody) => (run as ExecutionBody & { workflowId: string }).workflowId
const callsTo = (path: string) => target.calls.filter((one) => one.path === path)
const refused = async (id: string, how: 'retry' | 'rerun') => {
  const path = `/api/executions/${id}/${how}`
  const answer = await host.request(path, { method: 'POST', as: host.admin })
  return { status: answer.status, message: ((await answer.json()) as { message: string }).message }
}

test('a retry continues at the failed node, and takes over outputs, also those of earlier retries', async () => {
  const first = await host.run(
    {
      nodes: [
        start,
        call('big', '/big?bytes=300000'),
        { id: 'wait', type: 'WAIT', config: { durationMs: 50 } },
        { id: 'if', type: 'IF_ELSE', config: { condition: '$trigger.n = 1' } },
        call('flaky', '/flaky?key={{ $trigger.key }}'),
        set('other', {}),
        set('end', {
          n: '{{ $trigger.n }}',
          length: '{{ $length($nodes.big.body.text) }}',
          was: '{{ $input.status }}',
        }),
      ],
      edges: edges(
        'start -> big',
        'big -> wait',
        'wait -> if',
        'if:true -> flaky',
        'if:false -> other',
        'flaky -> end',
      ),
    },
    { n: 1, key: 'again' },
  )
  expect(first.status).toBe('FAILED')
  const second = await again(first.id, 'retry')
  expect(second).toMatchObject({
    retriedFrom: first.id,
    takenOver: ['big', 'wait', 'if'],
    workflowVersion: 1,
  })
  expect(second.run).toMatchObject({
    status: 'FAILED',
    retriedFrom: first.id,
    recovery: 'RETRY',
    trigger: 'MANUAL',
  })
  expect(second.run.inputData).toEqual({ n: 1, key: 'again' })

  const third = await again(second.run.id, 'retry')
  expect(third.run.errorMessage).toBeNull()
  expect(third.run.outputData).toEqual({ n: 1, length: 300_000, was: 200 })
  expect(third.run.retriedFrom).toBe(second.run.id)
  // `takenFrom` names the execution that made the output, not the one retried.
  const from = { start: null, big: first.id, wait: first.id, if: first.id, flaky: null, end: null }
  expect(origins(third.run)).toEqual(from)
  expect(nodeOf(third.run, 'flaky').inputData).toEqual(nodeOf(first, 'flaky').inputData)
  expect(nodeOf(third.run, 'big').outputData).toEqual(nodeOf(first, 'big').outputData)
  expect(callsTo('/big')).toHaveLength(1)
  expect(callsTo('/flaky')).toHaveLength(3)

  const { retries, retriedBy } = (await host.read(first.id)) as Detail
  expect([retries, retriedBy]).toEqual([[second.run.id], second.run.id])
  const list = await host.ask<{
    content: { id: string; retriedFrom: string | null; retriedBy: string | null }[]
  }>('GET', `/api/executions/team/${host.teamId}?size=100`)
  const [newest, , oldest] = [third.run.id, second.run.id, first.id].map((wanted) =>
    list.content.find(({ id }) => id === wanted),
  )
  expect(newest).toMatchObject({ retriedFrom: second.run.id, retriedBy: null })
  expect(oldest).toMatchObject({ retriedFrom: null, retriedBy: second.run.id })
  expect(await refused(third.run.id, 'retry')).toMatchObject({ status: 409 })
})

test('a retry in the current version executes changed nodes again, and all nodes after them', async () => {
  const nodes = [
    start,
    call('a', '/ok?key=a'),
    call('b', '/ok?key=b'),
    set('c', { b: '{{ $input.body.key }}' }),
    set('d', { a: '{{ $nodes.a.body.count }}' }),
    call('broken', '/missing'),
  ]
  const graph = { nodes, edges: edges('start -> a', 'start -> b', 'b -> c', 'a -> d', 'c d -> broken') }
  const id = await host.create(graph)
  const failed = await host.ended(await host.execute(id))
  expect(failed.status).toBe('FAILED')
  const mended = nodes.map((node) => {
    if (node.id === 'broken') return call('broken', '/ok?key=mended')
    if (node.id === 'b') return call('b', '/ok?key=b2')
    const harmless = {
      name: 'Another',
      position: { x: 1, y: 2 },
      timeoutMs: 9_000,
      retry: { maxAttempts: 2 },
    }
    return node.id === 'a' ? { ...node, ...harmless } : node
  })
  await host.ask('PUT', `/api/workflows/${id}`, { nodes: mended, edges: graph.edges })

  const same = await again(failed.id, 'retry')
  expect(same).toMatchObject({ workflowVersion: 1, takenOver: ['a', 'b', 'c', 'd'] })
  expect(same.run.status).toBe('FAILED')
  const current = await again(failed.id, 'retry', 'current')
  expect(current).toMatchObject({ workflowVersion: 2, takenOver: ['a', 'd'] })
  expect(current.run).toMatchObject({ status: 'SUCCESS', workflowVersion: 2 })
  expect(nodeOf(current.run, 'c').outputData).toEqual({ b: 'b2' })
  expect(nodeOf(current.run, 'd').outputData).toEqual({ a: 1 })

  // With another edge into `d`, its input would be a different one.
  await host.ask('PUT', `/api/workflows/${id}`, { nodes, edges: [...graph.edges, ...edges('c -> d')] })
  expect((await recover(failed.id, 'retry', 'current')).takenOver).toEqual(['a', 'b', 'c'])
  await host.ask('PUT', `/api/workflows/${id}`, { nodes: nodes.slice(1), edges: graph.edges.slice(2) })
  expect(await refused(failed.id, 'retry')).toMatchObject({ status: 202 })
  const answer = await host.request(`/api/executions/${failed.id}/retry`, {
    method: 'POST',
    as: host.admin,
    json: { version: 'current' },
  })
  expect([answer.status, await answer.text()]).toEqual([409, expect.stringContaining('no trigger')])
})

test('a retry in the current version executes nodes again that other rules or another onError may change', async () => {
  const broken = { condition: "$item.n = 2 ? $error('no') : true" }
  const graph = (expressions: 1 | 2, onError: string) => ({
    expressions,
    nodes: [
      start,
      set('text', { formula: '={{ 1 + 1 }}' }),
      set('plain', { text: 'as it is' }),
      { id: 'odd', type: 'IF_ELSE', perItem: true, onError, config: broken },
      { id: 'none', type: 'NO_OP', perItem: true, config: {} },
      { id: 'stop', type: 'STOP_AND_ERROR', config: { message: 'stopped' } },
    ],
    edges: edges('start -> text', 'start -> plain', 'plain -> stop', 'start -> odd', 'odd:true -> none'),
  })
  const first = await host.run(graph(1, 'CONTINUE'), { items: [{ n: 1 }, { n: 2 }] })
  expect(nodeOf(first, 'odd').status).toBe('SUCCESS')
  await host.ask('PUT', `/api/workflows/${workflowOf(first)}`, graph(1, 'BRANCH'))
  const second = await again(first.id, 'retry', 'current')
  expect(second.takenOver.sort()).toEqual(['plain', 'text'])
  expect(nodeOf(second.run, 'odd').outputData).toMatchObject({ handles: { error: { from: [1] } } })
  await host.ask('PUT', `/api/workflows/${workflowOf(first)}`, graph(2, 'BRANCH'))
  const third = await again(second.run.id, 'retry', 'current')
  expect(third.takenOver).toEqual(['plain'])
  expect(nodeOf(second.run, 'text').outputData).not.toEqual({ formula: 2 })
  expect(nodeOf(third.run, 'text').outputData).toEqual({ formula: 2 })
})

test('a retry executes a handled failure again, with all after it, and takes over another branch', async () => {
  const failed = await host.run({
    nodes: [
      start,
      call('handled', '/flaky?key=handled', { onError: 'CONTINUE' }),
      set('behind', { status: '{{ $input.status }}' }),
      call('beside', '/ok?key=beside'),
      { id: 'stop', type: 'STOP_AND_ERROR', config: { message: 'no' } },
    ],
    edges: edges('start -> handled', 'start -> beside', 'handled -> behind', 'behind beside -> stop'),
  })
  expect(nodeOf(failed, 'behind').status).toBe('SUCCESS')
  const { run, takenOver } = await again(failed.id, 'retry')
  expect(takenOver).toEqual(['beside'])
  expect(run).toMatchObject({ status: 'FAILED' })
  expect(callsTo('/flaky').length).toBeGreaterThan(1)
})

describe('a retry of a loop', () => {
  const loop = (path: string) => ({
    nodes: [
      start,
      { id: 'each', type: 'FOR_EACH', config: { items: '{{ $input.list }}', onItemError: 'collect' } },
      call('item', `${path}{{ $item }}`, { parentId: 'each' }),
      set('sum', { n: '{{ $count($nodes.each.items[status = 200]) }}' }),
      call('last', '/flaky?key=last-{{ $trigger.key }}'),
    ],
    edges: edges('start -> each', 'each -> sum', 'sum -> last'),
  })

  test('takes it over as a whole if all iterations succeeded', async () => {
    const failed = await host.run(loop('/ok?key=loop-'), { list: [1, 2, 3], key: 'whole' })
    expect(failed.nodeExecutions.map(({ iteration }) => iteration)).toContain('2')
    const before = target.calls.length
    const { run, takenOver } = await again(failed.id, 'retry')
    expect(takenOver).toEqual(['each', 'sum'])
    expect(run.nodeExecutions.filter(({ iteration }) => iteration !== null)).toEqual([])
    expect(nodeOf(run, 'each').outputData).toEqual(nodeOf(failed, 'each').outputData)
    expect(target.calls.length).toBe(before + 1)
  })

  test('executes it again if an iteration failed', async () => {
    const failed = await host.run(loop('/flaky?key=loop-'), { list: [1, 2], key: 'part' })
    expect(nodeOf(failed, 'each').status).toBe('SUCCESS')
    expect(nodeOf(failed, 'sum').outputData).toEqual({ n: 0 })
    const { run, takenOver } = await again(failed.id, 'retry')
    expect(takenOver).toEqual([])
    const third = await again(run.id, 'retry')
    expect(nodeOf(third.run, 'sum').outputData).toEqual({ n: 2 })
    expect(third.run.status).toBe('SUCCESS')
  })
})

test('a retry of a cancelled execution continues at the nodes that were running', async () => {
  const id = await host.create({
    nodes: [start, call('done', '/ok?key=done'), call('hang', '/hang')],
    edges: edges('start -> done', 'done -> hang'),
  })
  const run = await host.execute(id)
  await host.until(run, ({ nodeExecutions }) => nodeExecutions.some(({ nodeId }) => nodeId === 'hang'))
  expect(await refused(run, 'retry')).toMatchObject({
    status: 409,
    message: 'The execution is still under way',
  })
  expect(await refused(run, 'rerun')).toMatchObject({ status: 409 })
  await host.ask('POST', `/api/executions/${run}/cancel`)
  await host.ended(run)
  const retried = await recover(run, 'retry')
  expect(retried.takenOver).toEqual(['done'])
  await host.until(retried.executionId, ({ nodeExecutions }) =>
    nodeExecutions.some(({ nodeId, status }) => nodeId === 'hang' && status === 'RUNNING'),
  )
  await host.ask('POST', `/api/executions/${retried.executionId}/cancel`)
  await host.ended(retried.executionId)
})

test('a retry does not ask again for an approval that was given', async () => {
  const id = await host.create({
    nodes: [
      start,
      { id: 'ask', type: 'APPROVAL', config: { message: 'Go on?' } },
      call('flaky', '/flaky?key=approved'),
      set('end', { comment: '{{ $nodes.ask.comment }}' }),
    ],
    edges: edges('start -> ask', 'ask:approved -> flaky', 'flaky -> end'),
  })
  const run = await host.execute(id)
  const list = () =>
    host.ask<{ content: { id: string }[] }>('GET', `/api/approvals?teamId=${host.teamId}&executionId=${run}`)
  while ((await list()).content.length === 0) await new Promise((resolve) => setTimeout(resolve, 25))
  const [approval] = (await list()).content
  await host.ask('POST', `/api/approvals/${approval!.id}`, { decision: 'approved', comment: 'yes' })
  expect((await host.ended(run)).status).toBe('FAILED')
  const second = await again(run, 'retry')
  expect(second.takenOver).toEqual(['ask'])
  const third = await again(second.executionId, 'retry')
  expect(third.run).toMatchObject({ status: 'SUCCESS', outputData: { comment: 'yes' } })
})

test('a retry or rerun is refused if the values that it needs were not kept', async () => {
  const graph = {
    nodes: [start, set('a', { a: 1 }), call('b', '/missing')],
    edges: edges('start -> a', 'a -> b'),
  }
  const noOutputs = await host.run({ ...graph, settings: { saveData: { inputs: true, outputs: false } } })
  expect(await refused(noOutputs.id, 'retry')).toEqual({
    status: 409,
    message: 'The outputs of the execution were not kept; rerun it instead',
  })
  expect((await again(noOutputs.id, 'rerun')).run.status).toBe('FAILED')
  const noInputs = await host.run({ ...graph, settings: { saveData: { inputs: false, outputs: true } } })
  for (const how of ['retry', 'rerun'] as const) {
    expect(await refused(noInputs.id, how)).toMatchObject({ status: 409 })
  }
})

test('a rerun starts from the beginning with the same input, once per idempotency key', async () => {
  const graph = { nodes: [start, set('a', { n: '{{ $input.n }}' })], edges: edges('start -> a') }
  const id = await host.create(graph)
  const first = await host.ended(await host.execute(id, { n: 7 }))
  const nodes = [start, set('a', { n: '{{ $input.n + 1 }}' })]
  await host.ask('PUT', `/api/workflows/${id}`, { nodes, edges: graph.edges })
  const same = await again(first.id, 'rerun')
  expect(same).toMatchObject({ takenOver: [], run: { outputData: { n: 7 }, recovery: 'RERUN' } })
  const current = await again(first.id, 'rerun', 'current')
  expect(current.run).toMatchObject({ outputData: { n: 8 }, retriedFrom: first.id })
  expect(origins(current.run)).toEqual({ start: null, a: null })
  const keyed = await Promise.all(
    [1, 2, 3].map(async () => {
      const answer = await host.request(`/api/executions/${first.id}/rerun`, {
        method: 'POST',
        as: host.admin,
        headers: { 'idempotency-key': 'once' },
      })
      return ((await answer.json()) as Recovered).executionId
    }),
  )
  expect(new Set(keyed).size).toBe(1)
  await host.ended(keyed[0]!)
})

test("a repeated request gets the first one's execution, even if the workflow has changed", async () => {
  const graph = {
    nodes: [start, set('a', { a: 1 }), set('b', { b: 1 }), call('bad', '/missing')],
    edges: edges('start -> a', 'start -> b', 'a b -> bad'),
  }
  const id = await host.create(graph)
  const failed = await host.ended(await host.execute(id))
  const retry = async () => {
    const answer = await host.request(`/api/executions/${failed.id}/retry`, {
      method: 'POST',
      as: host.admin,
      json: { version: 'current' },
      headers: { 'idempotency-key': 'k' },
    })
    return (await answer.json()) as Recovered
  }
  const first = await retry()
  expect(first).toMatchObject({ workflowVersion: 1, takenOver: ['a', 'b'] })
  const nodes = graph.nodes.map((node) => (node.id === 'a' ? set('a', { a: 2 }) : node))
  await host.ask('PUT', `/api/workflows/${id}`, { nodes, edges: graph.edges })
  expect(await retry()).toMatchObject({
    executionId: first.executionId,
    workflowVersion: 1,
    takenOver: ['a', 'b'],
  })
  await host.ended(first.executionId)
})

test('executions retried in bulk start by themselves, and those cancelled in bulk end', async () => {
  const id = await host.create({
    nodes: [start, call('flaky', '/flaky?key={{ $trigger.key }}')],
    edges: edges('start -> flaky'),
  })
  for (const key of ['many-a', 'many-b', 'many-c']) await host.ended(await host.execute(id, { key }))
  const path = `/api/executions/team/${host.teamId}`
  const filter = { workflowId: id, status: 'FAILED' }
  const bulk = await host.ask<{ executions: { executionId: string }[] }>('POST', `${path}/retry`, { filter })
  expect(bulk.executions).toHaveLength(3)
  for (const { executionId } of bulk.executions) {
    expect(await host.ended(executionId)).toMatchObject({ status: 'FAILED', recovery: 'RETRY' })
  }
  // The first executions have been retried already, so these are retries of the retries.
  const next = await host.ask<typeof bulk>('POST', `${path}/retry`, { filter })
  expect(next.executions).toHaveLength(3)
  for (const { executionId } of next.executions) {
    expect(await host.ended(executionId)).toMatchObject({ status: 'SUCCESS' })
  }
  const hanging = await host.create({
    nodes: [start, call('hang', '', { config: { method: 'POST', url: `${target.url}/hang` } })],
    edges: edges('start -> hang'),
  })
  const runs = await Promise.all([1, 2, 3].map(() => host.execute(hanging)))
  await target.until(() => runs.every((run) => target.calls.some(({ key }) => key?.startsWith(run))))
  await host.ask('POST', `${path}/cancel`, { filter: { workflowId: hanging } })
  for (const run of runs) expect(await host.ended(run)).toMatchObject({ status: 'CANCELLED' })
})
