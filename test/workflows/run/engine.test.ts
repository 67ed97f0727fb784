import { expect, test } from 'vitest'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf, shareRunning } from '../../support/running.ts'
import { startTarget } from '../../support/servers/target.ts'
import { watchThread } from '../../support/thread.ts'

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
const set = (id: string, values: Record<string, unknown>) => ({ id, type: 'SET', config: { values } })

const target = await keep(startTarget())
const running = await keep(shareRunning())
const deleted = startAndDelete()

async function startAndDelete(): Promise<string> {
  const wait = { id: 'wait', type: 'WAIT', config: { durationMs: 600_000 } }
  const workflow = await running.create({ nodes: [start, wait], edges: edges('start -> wait') })
  const id = await running.execute(workflow)
  await running.until(id, (run) => run.status === 'RUNNING')
  await running.ask('DELETE', `/api/workflows/${workflow}`)
  expect((await running.request(`/api/executions/${id}`, { as: running.admin })).status).toBe(404)
  return id
}

test('twelve nodes: parallel branches, a join, a skipped branch, a node that fails twice, an error branch', async () => {
  const run = await running.run(
    {
      nodes: [
        start,
        {
          ...set('typed', { n: '{{ $input.n * 2 }}', list: '{{ [1..3] }}', none: '{{ $input.nothing }}' }),
          name: 'Typed',
        },
        set('mixed', { text: 'n={{ $input.n }} o={{ $input.o }} -{{ $input.nothing }}-', raw: 'a{b}' }),
        {
          id: 'flaky',
          type: 'HTTP_REQUEST',
          retry: { maxAttempts: 3, initialIntervalMs: 20 },
          config: { url: `${target.url}/flaky?key={{ $execution.id }}` },
        },
        { id: 'join', type: 'MERGE', config: { mode: 'combine' } },
        { id: 'big', type: 'IF_ELSE', config: { condition: '$nodes.typed.n > 10' } },
        set('yes', { yes: true }),
        set('no', {
          no: '{{ $nodes.typed.n }}',
          trigger: '{{ $trigger.o.deep }}',
          run: '{{ $execution.trigger }}',
        }),
        { id: 'lost', type: 'HTTP_REQUEST', onError: 'BRANCH', config: { url: `${target.url}/missing` } },
        set('never', { never: true }),
        set('rescued', { why: '{{ $input.error.type }}', node: '{{ $input.error.nodeId }}' }),
        { id: 'end', type: 'MERGE', config: { mode: 'combine' } },
      ],
      edges: edges(
        'start -> typed',
        'start -> mixed',
        'start -> flaky',
        'typed mixed flaky -> join',
        'join -> big',
        'big:true -> yes',
        'big:false -> no',
        'no -> lost',
        'lost -> never',
        'lost:error -> rescued',
        'yes no never rescued -> end',
      ),
    },
    { n: 4, o: { deep: [1, 'two'] } },
  )
  expect(run.status).toBe('SUCCESS')
  expect(Object.fromEntries(run.nodeExecutions.map((node) => [node.nodeId, node.status]))).toEqual({
    start: 'SUCCESS',
    typed: 'SUCCESS',
    mixed: 'SUCCESS',
    flaky: 'SUCCESS',
    join: 'SUCCESS',
    big: 'SUCCESS',
    no: 'SUCCESS',
    lost: 'FAILED',
    rescued: 'SUCCESS',
    end: 'SUCCESS',
  })
  expect(nodeOf(run, 'typed').outputData).toEqual({ n: 8, list: [1, 2, 3], none: null })
  expect(nodeOf(run, 'mixed').outputData).toEqual({ text: 'n=4 o={"deep":[1,"two"]} --', raw: 'a{b}' })
  expect(nodeOf(run, 'flaky')).toMatchObject({
    retryCount: 2,
    outputData: { status: 200, body: { count: 3 } },
  })
  expect(nodeOf(run, 'join').inputData).toMatchObject({ n: 8, raw: 'a{b}', status: 200 })
  expect(nodeOf(run, 'no').outputData).toEqual({ no: 8, trigger: { deep: [1, 'two'] }.deep, run: 'MANUAL' })
  expect(nodeOf(run, 'lost')).toMatchObject({
    retryCount: 0,
    outputData: { error: { type: 'Http404', nodeId: 'lost' } },
  })
  expect(nodeOf(run, 'rescued').outputData).toEqual({ why: 'Http404', node: 'lost' })
  expect(run.outputData).toEqual({ no: 8, trigger: [1, 'two'], run: 'MANUAL', why: 'Http404', node: 'lost' })
  expect(run.inputData).toEqual({ n: 4, o: { deep: [1, 'two'] } })
  const keys = target.calls.filter((call) => call.path === '/flaky').map((call) => call.key)
  expect(new Set(keys).size).toBe(1)
})

test('several ends make an object by node id; values that are not objects are shown as {value}', async () => {
  const run = await running.run(
    {
      nodes: [
        start,
        { id: 'a', type: 'FILTER', config: { items: '{{ $input.list }}', condition: '$item > 1' } },
        { id: 'b', type: 'MERGE', config: { mode: 'append' } },
      ],
      edges: edges('start -> a', 'start -> b'),
    },
    { list: [1, 2, 3] },
  )
  expect(run.outputData).toEqual({ a: { items: [2, 3] }, b: [{ list: [1, 2, 3] }] })
  expect(nodeOf(run, 'b').outputData).toEqual({ value: [{ list: [1, 2, 3] }] })
})

test('an open execution shows the records of the nodes that have run and of the one that is running', async () => {
  const id = await running.execute(
    await running.create({
      nodes: [
        start,
        set('before', { a: 1 }),
        { id: 'call', type: 'HTTP_REQUEST', config: { url: `${target.url}/hang` } },
      ],
      edges: edges('start -> before', 'before -> call'),
    }),
  )
  const open = await running.until(id, (run) => run.nodeExecutions.length === 3)
  expect(open.status).toBe('RUNNING')
  expect(open.outputData).toBeNull()
  expect(nodeOf(open, 'before')).toMatchObject({ status: 'SUCCESS', outputData: { a: 1 } })
  expect(nodeOf(open, 'call')).toMatchObject({
    status: 'RUNNING',
    completedAt: null,
    durationMs: null,
    inputData: { a: 1 },
  })
  await running.ask('POST', `/api/executions/${id}/cancel`)
  await running.ended(id)
})

test('an open node shows its retry while it waits for the next one', async () => {
  const id = await running.execute(
    await running.create({
      nodes: [
        start,
        {
          id: 'call',
          type: 'HTTP_REQUEST',
          retry: { maxAttempts: 9, initialIntervalMs: 300 },
          config: { url: `${target.url}/flaky?key={{ $execution.id }}` },
        },
      ],
      edges: edges('start -> call'),
    }),
  )
  await running.until(id, (run) =>
    run.nodeExecutions.some(
      (node) => node.nodeId === 'call' && node.status === 'RUNNING' && node.retryCount === 1,
    ),
  )
  expect(nodeOf(await running.ended(id), 'call').retryCount).toBe(2)
})

test('cancelling an execution during a long request ends it within 3 s and aborts the request', async () => {
  const id = await running.execute(
    await running.create({
      nodes: [
        start,
        {
          id: 'call',
          type: 'HTTP_REQUEST',
          timeoutMs: 60_000,
          config: { url: `${target.url}/hang`, timeoutMs: 30_000 },
        },
      ],
      edges: edges('start -> call'),
    }),
  )
  await target.until(() => target.hanging.size === 1)
  const looked = Date.now()
  await running.read(id)
  const asked = Date.now()
  // On a busy machine each of some twenty steps takes as long as that look.
  const steps = 20 * (asked - looked)
  const response = await running.request(`/api/executions/${id}/cancel`, {
    method: 'POST',
    as: running.admin,
  })
  expect(response.status).toBe(200)
  expect(await response.text()).toBe('')
  const run = await running.read(id)
  expect(run.status).toBe('CANCELLED')
  expect(nodeOf(run, 'call').status).toBe('CANCELLED')
  await target.until(() => target.hanging.size === 0)
  expect(Date.now() - asked).toBeLessThan(3_000 + steps)
  const again = await running.request(`/api/executions/${id}/cancel`, { method: 'POST', as: running.admin })
  expect(again.status).toBe(409)
})

test("a node's time limit is an error of the node, the workflow's limit cancels the execution", async () => {
  const call = {
    id: 'call',
    type: 'HTTP_REQUEST',
    timeoutMs: 300,
    retry: { maxAttempts: 1 },
    config: { url: `${target.url}/hang` },
  }
  const failed = await running.run({ nodes: [start, call], edges: edges('start -> call') })
  expect(failed).toMatchObject({
    status: 'FAILED',
    errorMessage: 'The node took longer than its limit of 300 ms',
  })
  expect(nodeOf(failed, 'call')).toMatchObject({ status: 'FAILED', retryCount: 0 })
  const slow = { ...call, timeoutMs: 60_000 }
  const cancelled = await running.run({
    nodes: [start, slow],
    edges: edges('start -> call'),
    // Long enough for the node to have begun on a busy machine.
    settings: { timeoutMs: 3_000 },
  })
  expect(cancelled).toMatchObject({
    status: 'CANCELLED',
    errorMessage: 'The execution took longer than its limit of 3000 ms',
  })
  expect(nodeOf(cancelled, 'call').status).toBe('CANCELLED')
  const short = await running.run({
    nodes: [start, { id: 'wait', type: 'WAIT', config: { durationMs: 60_000 } }],
    edges: edges('start -> wait'),
    settings: { timeoutMs: 1 },
  })
  expect(short.errorMessage).toBe('The execution took longer than its limit of 1 ms')
})

test('a response with NUL and lone surrogates is recorded unchanged', async () => {
  const call = { id: 'call', type: 'HTTP_REQUEST', config: { url: `${target.url}/dirty` } }
  const run = await running.run({ nodes: [start, call], edges: edges('start -> call') })
  expect(run.status).toBe('SUCCESS')
  expect(run.outputData?.body).toEqual({ nul: 'a\0b', half: '\ud800' })
})

test('big outputs travel by reference, and outputs that are too big fail their node', async () => {
  const call = (bytes: number) => ({
    nodes: [
      start,
      { id: 'call', type: 'HTTP_REQUEST', config: { url: `${target.url}/big?bytes=${bytes}` } },
      set('size', { n: '{{ $length($nodes.call.body.text) }}' }),
    ],
    edges: edges('start -> call', 'call -> size'),
  })
  const run = await running.run(call(300_000))
  expect(run.outputData).toEqual({ n: 300_000 })
  expect(nodeOf(run, 'call').outputData).toMatchObject({ body: { text: 'x'.repeat(300_000) } })
  const blobs = await running.store.db
    .selectFrom('blobs')
    .selectAll()
    .where('executionId', '=', run.id)
    .execute()
  expect(blobs).toHaveLength(1)
  expect(blobs[0]!.sealed.includes('xxxxxxxx')).toBe(false)
  const input = await running.run(
    { nodes: [start, set('size', { n: '{{ $length($input.text) }}' })], edges: edges('start -> size') },
    { text: 'y'.repeat(500_000) },
  )
  expect(input.outputData).toEqual({ n: 500_000 })
  const graph = call(8_200_000)
  const failed = await running.run({ nodes: graph.nodes.slice(0, 2), edges: graph.edges.slice(0, 1) })
  expect(failed.status).toBe('FAILED')
})

test.each([
  ['an endless recursion', '($f := function($n) { $f($n + 1) + 1 }; $f(0))'],
  ['an endless loop', '($f := function($n) { $f($n + 1) }; $f(0))'],
  ['a backtracking regex', '$match("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", /^(a+)+$/) ~> $count()'],
  ['a string of a billion characters', '$length($pad("x", 1000000000))'],
  ['a range of a billion numbers', '$count([1..1000000000])'],
])(
  '%s ends at once or as a clear error of its node, and does not block the process',
  async (what, expression) => {
    const workflow = await running.create({
      nodes: [start, set('bad', { v: `{{ ${expression} }}` })],
      edges: edges('start -> bad'),
    })
    const stretch = watchThread()
    const run = await running.ended(await running.execute(workflow))
    // Evaluated in this process, it would block the API, the projector and everything else for longer. On a busy machine
    // much that has come meanwhile is done in one stretch.
    expect(stretch.stop()).toBeLessThan(1_500)
    if (what === 'a backtracking regex') expect(run.outputData).toEqual({ v: 0 })
    else {
      expect(run.status).toBe('FAILED')
      expect(run.errorMessage).toMatch(
        /took longer|too much memory|must not exceed|nested too deep|too large|too long/i,
      )
    }
  },
)

test('data keys such as constructor, toString and prototype are plain data', async () => {
  const data = JSON.parse('{"constructor": 1, "toString": 2, "prototype": {"x": 3}}')
  const run = await running.run(
    {
      nodes: [start, set('out', { sum: '{{ $input.constructor + $input.toString + $input.prototype.x }}' })],
      edges: edges('start -> out'),
    },
    data,
  )
  expect(run.outputData).toEqual({ sum: 6 })
})

test('five hundred nodes in a row make a history of fewer than 20 events', async () => {
  const ids = Array.from({ length: 499 }, (_, at) => `n${at}`)
  const run = await running.run({
    nodes: [start, ...ids.map((id) => set(id, { n: id === 'n0' ? 1 : '{{ $input.n + 1 }}' }))],
    edges: edges('start -> n0', ...ids.slice(1).map((id, at) => `n${at} -> ${id}`)),
  })
  expect(run.outputData).toEqual({ n: 499 })
  expect(run.nodeExecutions).toHaveLength(500)
  const history = await running.engine.client.workflow.getHandle(run.id).fetchHistory()
  expect(history.events!.length).toBeLessThan(20)
})

test('a hundred requests side by side all succeed', async () => {
  const ids = Array.from({ length: 100 }, (_, at) => `n${at}`)
  const run = await running.run({
    nodes: [
      start,
      ...ids.map((id) => ({ id, type: 'HTTP_REQUEST', config: { url: `${target.url}/ok?key=${id}` } })),
      { id: 'join', type: 'MERGE', config: { mode: 'append' } },
    ],
    edges: edges(...ids.map((id) => `start -> ${id}`), `${ids.join(' ')} -> join`),
  })
  expect(run.status).toBe('SUCCESS')
  const responses = nodeOf(run, 'join').outputData!.value as { body: { key: string } }[]
  expect(responses.map((response) => response.body.key)).toEqual(ids)
})

// Temporal takes about 20 s to forget a run, so this file begins with the deletion and checks it last.
test('deleting a workflow deletes its executions, both the rows and the runs in Temporal', {
  timeout: 180_000,
}, async () => {
  const id = await deleted
  const { client } = running.engine
  const known = () =>
    client.workflow
      .getHandle(id)
      .describe()
      .then(
        () => 'known',
        (error: Error) => error.name,
      )
  await expect.poll(known, { timeout: 150_000, interval: 200 }).toBe('WorkflowNotFoundError')
  await running.engine.sweep()
  expect((await running.request(`/api/executions/${id}`, { as: running.admin })).status).toBe(404)
  const rows = running.store.db.selectFrom('nodeExecutions').select('id').where('executionId', '=', id)
  expect(await rows.execute()).toEqual([])
})
