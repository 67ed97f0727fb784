import { expect, test } from 'vitest'
import { ENDED, nodeOf } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'
import { startTarget } from '../../support/servers/target.ts'

/** Graphs that nobody draws by accident. */
const target = await keep(startTarget())
const running = await keep(shareRunning())

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
const row = <T>(count: number, make: (at: number) => T) => Array.from({ length: count }, (_, at) => make(at))

/**
 * Waits by reading only the row: a response with big values takes longer than the pause between two polls.
 */
async function endOf(id: string): Promise<{ status: string; errorMessage: string | null }> {
  const read = () =>
    running.store.db
      .selectFrom('executions')
      .select(['status', 'errorMessage'])
      .where('id', '=', id)
      .executeTakeFirstOrThrow()
  await expect.poll(async () => ENDED.includes((await read()).status), { timeout: 60_000 }).toBe(true)
  return read()
}

test('the output of a node that did not run is null in expressions, whatever its id', async () => {
  const values = {
    direct: '{{ $nodes.toString }}',
    deep: '{{ $nodes.toString.a }}',
    away: '{{ $map([1], function($x) { $nodes.toString }) }}',
  }
  const run = await running.run({
    nodes: [
      start,
      { id: 'if', type: 'IF_ELSE', config: { condition: 'true' } },
      { id: 'toString', type: 'SET', config: { values: { a: 1 } } },
      { id: 'step', type: 'SET', config: { values } },
      { id: 'alone', type: 'SET', retry: { maxAttempts: 1 }, config: { values } },
    ],
    edges: edges('start -> if', 'if:false -> toString', 'if:true toString -> step', 'step toString -> alone'),
  })
  const nothing = { direct: null, deep: null, away: null }
  expect(run.status).toBe('SUCCESS')
  expect([nodeOf(run, 'step').outputData, nodeOf(run, 'alone').outputData]).toEqual([nothing, nothing])
})

test("64 requests that each read 100 KB keep within Temporal's limits", { tags: 'long' }, async () => {
  const sets = row(8, (at) => ({
    id: `s${at}`,
    type: 'SET',
    config: { values: { [`k${at}`]: '{{ $pad("", 12000, "y") }}' } },
  }))
  const calls = row(64, (at) => ({
    id: `c${at}`,
    type: 'HTTP_REQUEST',
    config: { url: `${target.url}/ok?key=wide${at}-{{ $length($input.k7) }}` },
  }))
  const id = await running.execute(
    await running.create({
      nodes: [start, ...sets, ...calls],
      edges: [
        ...sets.map((set) => ({ source: 'start', target: set.id })),
        ...sets.flatMap((set) => calls.map((call) => ({ source: set.id, target: call.id }))),
      ],
    }),
  )
  expect(await endOf(id)).toEqual({ status: 'SUCCESS', errorMessage: null })
  const run = await running.read(id)
  expect(run.nodeExecutions).toHaveLength(73)
  expect(nodeOf(run, 'c63').outputData).toMatchObject({ body: { key: 'wide63-12000' } })
})

test('an input behind 30 rows of disabled nodes is found without walking every path', async () => {
  const pairs = row(30, (at) => [`a${at}`, `b${at}`])
  const run = await running.run(
    {
      nodes: [
        start,
        ...pairs
          .flat()
          .map((id) => ({ id, type: 'HTTP_REQUEST', disabled: true, config: { url: 'http://x' } })),
        { id: 'end', type: 'NO_OP', config: {} },
      ],
      edges: [['start'], ...pairs, ['end']].flatMap((targets, at, all) =>
        targets.flatMap((id) => (all[at - 1] ?? []).map((source) => ({ source, target: id }))),
      ),
    },
    { a: 1 },
  )
  expect(run.status).toBe('SUCCESS')
  expect(run.outputData).toEqual({ a: 1 })
  expect(nodeOf(run, 'end').inputData).toEqual({ a: 1 })
})

test('a join of many big outputs is refused before it fills the memory; a join of many copies of one is not', {
  tags: 'long',
  timeout: 180_000,
}, async () => {
  const calls = row(5, (at) => ({
    id: `big${at}`,
    type: 'HTTP_REQUEST',
    config: { url: `${target.url}/big?bytes=${7_500_000 + at}` },
  }))
  const passing = row(10, (at) => ({ id: `pass${at}`, type: 'NO_OP', config: {} }))
  const one = await running.execute(
    await running.create({
      nodes: [start, calls[0]!, ...passing, { id: 'join', type: 'MERGE', config: {} }],
      edges: passing
        .flatMap(({ id }) => [
          { source: 'big0', target: id },
          { source: id, target: 'join' },
        ])
        .concat({ source: 'start', target: 'big0' }),
    }),
  )
  expect(await endOf(one)).toEqual({ status: 'SUCCESS', errorMessage: null })

  const join = { id: 'join', type: 'MERGE', onError: 'BRANCH', config: { mode: 'append' } }
  const rescue = { id: 'rescue', type: 'SET', config: { values: { type: '{{ $input.error.type }}' } } }
  const many = await running.execute(
    await running.create({
      nodes: [start, ...calls, join, rescue],
      edges: calls
        .flatMap(({ id }) => edges(`start -> ${id}`, `${id} -> join`))
        .concat(edges('join:error -> rescue')),
    }),
  )
  expect(await endOf(many)).toEqual({ status: 'SUCCESS', errorMessage: null })
  expect((await running.read(many)).outputData).toEqual({ type: 'InputTooLarge' })
})

test("a wait that is longer than its node's own limit is an error of the node", async () => {
  const run = await running.run({
    nodes: [
      start,
      { id: 'long', type: 'WAIT', timeoutMs: 1_000, onError: 'BRANCH', config: { durationMs: 60_000 } },
      { id: 'short', type: 'WAIT', timeoutMs: 1_000, config: { durationMs: 20 } },
      { id: 'past', type: 'WAIT', timeoutMs: 1, config: { until: '2001-01-01T00:00:00Z' } },
      { id: 'why', type: 'SET', config: { values: { type: '{{ $input.error.type }}' } } },
    ],
    edges: edges('start -> long', 'start -> short', 'start -> past', 'long:error -> why'),
  })
  const states = ['long', 'short', 'past'].map((id) => nodeOf(run, id).status)
  expect(states).toEqual(['FAILED', 'SUCCESS', 'SUCCESS'])
  expect(nodeOf(run, 'why').outputData).toEqual({ type: 'NodeTimedOut' })
})

test('an output that is nested too deeply is an error of its node', async () => {
  const nest = (value: unknown, levels: number): unknown => (levels === 0 ? value : nest([value], levels - 1))
  const sets = row(30, (at) => ({
    id: `s${at}`,
    type: 'SET',
    onError: 'BRANCH',
    config: { values: { x: nest('{{ $input }}', 50) } },
  }))
  const run = await running.run({
    nodes: [start, ...sets],
    edges: ['start', ...sets.map(({ id }) => id)].flatMap((source, at) =>
      sets[at] ? [{ source, target: sets[at].id }] : [],
    ),
  })
  expect(run.status).toBe('SUCCESS')
  expect(nodeOf(run, 's18').status).toBe('SUCCESS')
  expect(nodeOf(run, 's19')).toMatchObject({
    status: 'FAILED',
    errorMessage: 'The output is nested deeper than 1000 levels',
  })
})
