import { expect, test } from 'vitest'
import { nodeOf } from '../../../support/client.ts'
import { edges } from '../../../support/engine/graphs.ts'
import { keep } from '../../../support/keep.ts'
import { shareRunning } from '../../../support/running.ts'

const host = await keep(shareRunning())

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
const set = (id: string, values: unknown, more: object = { perItem: true }) => ({
  ...{ id, type: 'SET', config: { values } },
  ...more,
})
const people = [{ n: 1 }, { n: 2 }, { n: 3 }]

test('a wait passes on the items of all branches that lead to it, and those behind it are paired', async () => {
  const run = await host.run(
    {
      expressions: 2,
      nodes: [
        start,
        {
          id: 'split',
          type: 'SPLIT',
          allItems: true,
          config: { items: '{{ $input.items }}', field: 'list' },
        },
        { id: 'odd', type: 'IF_ELSE', perItem: true, config: { condition: '$item.n != 2' } },
        set('a', { is: 'odd' }),
        set('b', { is: 'even' }),
        { id: 'wait', type: 'WAIT', config: { durationMs: 1 } },
        set('end', { is: '={{ $json.is }}', n: "={{ $('split').item.json.n }}" }),
      ],
      edges: [
        ...edges('start -> split', 'split -> odd'),
        { source: 'odd', sourceHandle: 'true', target: 'a' },
        { source: 'odd', sourceHandle: 'false', target: 'b' },
        ...edges('a b -> wait', 'wait -> end'),
      ],
    },
    { list: people },
  )
  expect(nodeOf(run, 'wait').outputData).toEqual({ items: [{ is: 'odd' }, { is: 'odd' }, { is: 'even' }] })
  expect(nodeOf(run, 'end').errorMessage).toBe(null)
  expect(nodeOf(run, 'end').outputData!.items).toEqual([
    { is: 'odd', n: 1 },
    { is: 'odd', n: 3 },
    { is: 'even', n: 2 },
  ])
})

test('a field that is called handles is a field', async () => {
  const run = await host.run(
    {
      expressions: 2,
      nodes: [
        start,
        set('who', { name: 'Ada', handles: { web: '@ada' } }, {}),
        set('end', { name: "={{ $('who').item.json.name }}", first: "={{ $('who').first().json.name }}" }),
        set('alone', { handles: { web: '@ada' } }, {}),
        set('last', { web: "={{ $('alone').item.json.handles.web + $('alone').first().json.handles.web }}" }),
      ],
      edges: edges('start -> who', 'who -> end', 'end -> alone', 'alone -> last'),
    },
    {},
  )
  expect(nodeOf(run, 'last').errorMessage).toBe(null)
  expect(nodeOf(run, 'end').outputData!.items).toEqual([{ name: 'Ada', first: 'Ada' }])
  expect(nodeOf(run, 'last').outputData!.items).toEqual([{ web: '@ada@ada' }])
})

test('in an iteration of a loop a node may leave by several handles, also to a loop within', async () => {
  const run = await host.run(
    {
      expressions: 2,
      nodes: [
        start,
        { id: 'loop', type: 'FOR_EACH', config: { items: '{{ $trigger.lists }}', concurrency: 2 } },
        {
          id: 'odd',
          type: 'IF_ELSE',
          parentId: 'loop',
          perItem: true,
          config: { condition: '$item.n != 2' },
        },
        set('a', { n: '{{ $item.n }}', at: '{{ $index }}' }, { perItem: true, parentId: 'loop' }),
        set(
          'b',
          { even: '{{ $item.n }}', of: '{{ $count($input.items) }}' },
          { perItem: true, parentId: 'loop', retry: { maxAttempts: 2 } },
        ),
        { id: 'again', type: 'REPEAT', parentId: 'loop', config: { until: '$index = 1', maxIterations: 3 } },
        set('inner', { n: '{{ $item }}' }, { perItem: true, parentId: 'again' }),
      ],
      edges: [
        ...edges('start -> loop'),
        { source: 'odd', sourceHandle: 'true', target: 'a' },
        { source: 'odd', sourceHandle: 'false', target: 'b' },
        { source: 'odd', sourceHandle: 'true', target: 'again' },
        { source: 'odd', sourceHandle: 'false', target: 'again' },
      ],
    },
    { lists: [people, [{ n: 1 }], []] },
  )
  expect(run.errorMessage).toBe(null)
  expect(nodeOf(run, 'loop').outputData!.items).toMatchObject([
    {
      a: {
        items: [
          { n: 1, at: 0 },
          { n: 3, at: 1 },
        ],
        from: [0, 1],
      },
      b: { items: [{ even: 2, of: 1 }], from: [0] },
      again: { items: [1, 3, 2].map((n) => ({ n: { n: { n } } })) },
    },
    { a: { items: [{ n: 1, at: 0 }] }, again: { items: [{ n: { n: { n: 1 } } }] } },
    { handles: { true: { items: [] }, false: { items: [] } } },
  ])
})
