import { describe, expect, test } from 'vitest'
import { nodeOf } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'
import { startTarget } from '../../support/servers/target.ts'

const target = await keep(startTarget())
const plain = await keep(shareRunning())

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }

describe('FOR_EACH', () => {
  test('runs a pure body once per item, in order, with $item, $index and the outputs around the loop', async () => {
    const run = await plain.run(
      {
        nodes: [
          start,
          { id: 'each', type: 'FOR_EACH', config: { items: '{{ $input.list }}' } },
          {
            id: 'double',
            parentId: 'each',
            type: 'SET',
            config: {
              values: { twice: '{{ $input * 2 }}', index: '{{ $index }}', base: '{{ $nodes.start.base }}' },
            },
          },
          { id: 'odd', parentId: 'each', type: 'IF_ELSE', config: { condition: '$item % 2 = 1' } },
          {
            id: 'mark',
            parentId: 'each',
            type: 'SET',
            config: { values: { odd: '{{ $nodes.double.twice }}' } },
          },
          {
            id: 'after',
            type: 'SET',
            config: { values: { sum: '{{ $sum($nodes.each.items.(twice ? twice : odd)) }}' } },
          },
        ],
        edges: edges('start -> each', 'double -> odd', 'odd:true -> mark', 'each -> after'),
      },
      { list: [1, 2, 3], base: 10 },
    )
    expect(run.errorMessage).toBeNull()
    expect(run.status).toBe('SUCCESS')
    const each = run.nodeExecutions.find(({ nodeId }) => nodeId === 'each')!
    expect(each.outputData).toEqual({ items: [{ odd: 2 }, { twice: 4, index: 1, base: 10 }, { odd: 6 }] })
    expect(run.outputData).toEqual({ sum: 12 })
    const doubles = run.nodeExecutions.filter(({ nodeId }) => nodeId === 'double')
    expect(doubles.map(({ iteration }) => iteration)).toEqual(['0', '1', '2'])
    expect(doubles.map(({ inputData }) => inputData)).toEqual([{ value: 1 }, { value: 2 }, { value: 3 }])
    expect(
      run.nodeExecutions.filter(({ nodeId }) => nodeId === 'mark').map(({ iteration }) => iteration),
    ).toEqual(['0', '2'])
    expect(run.nodeExecutionsTotal).toBe(run.nodeExecutions.length)
  })

  test('runs requests and nested loops of several iterations at once, with results in the order of items', async () => {
    const run = await plain.run(
      {
        nodes: [
          start,
          { id: 'each', type: 'FOR_EACH', config: { items: '{{ $input.list }}', concurrency: 4 } },
          {
            id: 'call',
            parentId: 'each',
            type: 'HTTP_REQUEST',
            config: { url: `${target.url}/ok?n={{ $item.n }}` },
          },
          {
            id: 'inner',
            parentId: 'each',
            type: 'FOR_EACH',
            config: { items: '{{ $nodes.pick.list }}', concurrency: 2 },
          },
          {
            id: 'pick',
            parentId: 'each',
            type: 'SET',
            config: { values: { list: '{{ $item.list }}', n: '{{ $item.n }}' } },
          },
          {
            id: 'again',
            parentId: 'inner',
            type: 'HTTP_REQUEST',
            config: { url: `${target.url}/ok?n={{ $item }}` },
          },
          {
            id: 'last',
            parentId: 'inner',
            type: 'SET',
            config: { values: { n: '{{ $nodes.pick.n }}', i: '{{ $index }}', s: '{{ $input.status }}' } },
          },
        ],
        edges: edges('start -> each', 'call -> pick', 'pick -> inner', 'again -> last'),
      },
      { list: Array.from({ length: 6 }, (_, n) => ({ n, list: Array.from({ length: n }, (_, i) => i) })) },
    )
    expect(run.errorMessage).toBeNull()
    expect(run.outputData).toEqual({
      items: Array.from({ length: 6 }, (_, n) => ({
        items: Array.from({ length: n }, (_, i) => ({ n, i, s: 200 })),
      })),
    })
    expect(
      run.nodeExecutions
        .filter(({ nodeId }) => nodeId === 'again')
        .map(({ iteration }) => iteration)
        .sort(),
    ).toContain('5.4')
  })

  test('an iteration that fails just when the request of another is due ends the loop, not the execution', async () => {
    const run = await plain.run(
      {
        nodes: [
          start,
          { id: 'each', type: 'FOR_EACH', config: { items: [1, 2], concurrency: 2 }, onError: 'CONTINUE' },
          { id: 'if', parentId: 'each', type: 'IF_ELSE', config: { condition: '$item = 1' } },
          { id: 'stop', parentId: 'each', type: 'STOP_AND_ERROR', config: { message: 'no' } },
          { id: 'call', parentId: 'each', type: 'HTTP_REQUEST', config: { url: `${target.url}/ok` } },
        ],
        edges: edges('start -> each', 'if:true -> stop', 'if:false -> call'),
      },
      {},
    )
    expect(run.errorMessage).toBeNull()
    expect(run.outputData).toMatchObject({
      error: { message: 'Iteration 0 failed at "Stop and error 1": no' },
    })
    expect(run.nodeExecutions.map(({ nodeId }) => nodeId)).not.toContain('call')
  })

  test('runs a pure body for 10,000 items', { tags: 'long' }, async () => {
    const run = await plain.run(
      {
        nodes: [
          start,
          { id: 'each', type: 'FOR_EACH', config: { items: '{{ [1..10000] }}' } },
          { id: 'double', parentId: 'each', type: 'SET', config: { values: { n: '{{ $item * 2 }}' } } },
          { id: 'sum', type: 'SET', config: { values: { sum: '{{ $sum($nodes.each.items.n) }}' } } },
        ],
        edges: edges('start -> each', 'each -> sum'),
      },
      {},
    )
    expect(run.errorMessage).toBeNull()
    expect(run.outputData).toEqual({ sum: 10_000 * 10_001 })
    expect(run.nodeExecutionsTotal).toBe(10_003)
    expect(run.nodeExecutions).toHaveLength(1_000)
  })

  test('over several segments takes each item once, even if some branches are not taken', async () => {
    const run = await plain.run(
      {
        nodes: [
          start,
          { id: 'each', type: 'FOR_EACH', config: { items: '{{ [1..600] }}', onItemError: 'collect' } },
          { id: 'odd', parentId: 'each', type: 'IF_ELSE', config: { condition: '$item % 400 = 7' } },
          { id: 'stop', parentId: 'each', type: 'STOP_AND_ERROR', config: { message: 'no {{ $item }}' } },
          { id: 'keep', parentId: 'each', type: 'SET', config: { values: { n: '{{ $item }}' } } },
        ],
        edges: edges('start -> each', 'odd:true -> stop', 'odd:false -> keep'),
      },
      {},
    )
    const failed = (n: number) => ({ error: { message: `no ${n}`, type: 'StopAndError', nodeId: 'stop' } })
    expect(run.outputData).toEqual({
      items: Array.from({ length: 600 }, (_, i) => ((i + 1) % 400 === 7 ? failed(i + 1) : { n: i + 1 })),
    })
    expect(run.nodeExecutionsTotal).toBe(1_202)
  })

  test.each([
    [{}, 'Stop and error 1'],
    [{ name: 'Refuse' }, 'Refuse'],
  ])('that fails says in which iteration and at which node: %o', async (given, named) => {
    const run = await plain.run(
      {
        nodes: [
          start,
          { id: 'each', type: 'FOR_EACH', config: { items: ['a', 'b', 'c'] } },
          { id: 'is', parentId: 'each', type: 'IF_ELSE', config: { condition: '$item = "b"' } },
          {
            id: 'stop',
            parentId: 'each',
            type: 'STOP_AND_ERROR',
            config: { message: 'no {{ $item }}' },
            ...given,
          },
        ],
        edges: edges('start -> each', 'is:true -> stop'),
      },
      {},
    )
    expect(run).toMatchObject({ status: 'FAILED', errorMessage: `Iteration 1 failed at "${named}": no b` })
    expect(run.nodeExecutions.filter(({ iteration }) => iteration === '2')).toEqual([])
  })
})

test('REPEAT runs its body until the condition holds and outputs the last result', async () => {
  const run = await plain.run(
    {
      nodes: [
        start,
        { id: 'loop', type: 'REPEAT', config: { until: '$input.n >= 5', maxIterations: 20 } },
        {
          id: 'add',
          parentId: 'loop',
          type: 'SET',
          config: { values: { n: '{{ $input.n + 1 }}', i: '{{ $index }}' } },
        },
      ],
      edges: edges('start -> loop'),
    },
    { n: 1 },
  )
  expect(run.errorMessage).toBeNull()
  expect(run.outputData).toEqual({ n: 5, i: 3 })
  expect(nodeOf(run, 'loop').handle).toBeNull()
})

test('REPEAT after maxIterations leaves by exhausted, or takes the main edges if no edge leaves by it', async () => {
  const graph = (maxIterations: number, ...more: string[]) => ({
    nodes: [
      start,
      { id: 'loop', type: 'REPEAT', config: { until: '$input.n >= 3', maxIterations } },
      { id: 'add', parentId: 'loop', type: 'SET', config: { values: { n: '{{ $input.n + 1 }}' } } },
      { id: 'off', type: 'NO_OP', config: {}, disabled: true },
      { id: 'after', type: 'SET', config: { values: { after: '{{ $input.n }}' } } },
      { id: 'more', type: 'SET', config: { values: { more: '{{ $input.n }}' } } },
    ],
    edges: edges('start -> loop', 'loop -> off', 'off -> after', ...more),
  })
  const [alone, apart, done] = await Promise.all([
    plain.run(graph(2), { n: 0 }),
    plain.run(graph(2, 'loop:exhausted -> more'), { n: 0 }),
    plain.run(graph(3, 'loop:exhausted -> more'), { n: 0 }),
  ])
  expect([alone, apart, done].map((run) => [nodeOf(run, 'loop').handle, run.outputData])).toEqual([
    ['exhausted', { after: 2 }],
    ['exhausted', { more: 2 }],
    [null, { after: 3 }],
  ])
  expect(nodeOf(alone, 'after').inputData).toEqual({ n: 2 })
  const again = await plain.ask<{ executionId: string }>('POST', `/api/executions/${alone.id}/rerun`, {})
  expect((await plain.ended(again.executionId)).outputData).toEqual({ after: 2 })
})
