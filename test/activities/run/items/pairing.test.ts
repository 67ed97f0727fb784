import { expect, test } from 'vitest'
import { findPairedItem } from '../../../../activities/run/items/pairing.ts'
import { compilePlan } from '../../../../workflows/graph/compile.ts'
import { nodeOf } from '../../../support/client.ts'
import { edges } from '../../../support/engine/graphs.ts'
import { keep } from '../../../support/keep.ts'
import { shareRunning } from '../../../support/running.ts'

const host = await keep(shareRunning())

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }

test('list nodes that work on all items say from which each of theirs came', async () => {
  const list = (id: string, type: string, config: Record<string, unknown>) => ({
    ...{ id, type, allItems: true },
    config: { items: '{{ $input.items }}', ...config },
  })
  const run = await host.run(
    {
      nodes: [
        start,
        list('sort', 'SORT', { by: 'n', order: 'desc' }),
        list('filter', 'FILTER', { condition: '$item.n != 2' }),
        list('rename', 'RENAME_KEYS', { keys: { n: 'm' } }),
        list('limit', 'LIMIT', { count: 2, keep: 'last' }),
        list('split', 'SPLIT', { field: 'tags' }),
        list('unique', 'DEDUPLICATE', {}),
        list('group', 'AGGREGATE', { fields: [{ operation: 'collect', field: 'n', as: 'all' }] }),
        { id: 'elsewhere', type: 'SORT', allItems: true, config: { items: '{{ $nodes.limit.items }}' } },
      ],
      edges: edges(
        'start -> sort',
        'sort -> filter',
        'filter -> rename',
        'rename -> limit',
        'limit -> split',
        'split -> unique',
        'filter -> group',
        'unique -> elsewhere',
      ),
    },
    { items: [1, 2, 3, 4].map((n) => ({ n, tags: ['x', n] })) },
  )
  expect(run.status, run.errorMessage!).toBe('SUCCESS')
  const from = (id: string) => nodeOf(run, id).outputData!.from
  expect(from('sort')).toEqual([3, 2, 1, 0])
  expect(nodeOf(run, 'filter').outputData).toMatchObject({
    items: [{ n: 4 }, { n: 3 }, { n: 1 }],
    from: [0, 1, 3],
  })
  expect(from('rename')).toEqual([0, 1, 2])
  expect(from('limit')).toEqual([1, 2])
  expect(nodeOf(run, 'split').outputData).toEqual({ items: ['x', 3, 'x', 1], from: [0, 0, 1, 1] })
  expect(from('unique')).toEqual([0, 1, 3])
  expect(nodeOf(run, 'group').outputData).toEqual({ items: [{ all: [4, 3, 1] }], from: [[0, 1, 2]] })
  // These are not the items that came to it.
  expect(from('elsewhere')).toEqual([null, null])
})

test('list nodes on all items do not run without any, and the others go on as ever', async () => {
  const run = await host.run(
    {
      nodes: [
        start,
        { id: 'none', type: 'FILTER', config: { items: '{{ $input.list }}', condition: 'false' } },
        { id: 'count', type: 'AGGREGATE', config: { items: '{{ $input.items }}' } },
        { id: 'sum', type: 'AGGREGATE', allItems: true, config: { items: '{{ $input.items }}' } },
        { id: 'behind', type: 'NO_OP', config: {} },
      ],
      edges: edges('start -> none', 'none -> count', 'none -> sum', 'sum -> behind'),
    },
    { list: [1, 2] },
  )
  expect(run.status).toBe('SUCCESS')
  expect(nodeOf(run, 'none').outputData).toEqual({ items: [] })
  expect(nodeOf(run, 'count').outputData).toEqual({ items: [{ count: 0 }] })
  expect(nodeOf(run, 'sum')).toMatchObject({ handles: [], outputData: { items: [], from: [] } })
  expect(run.nodeExecutions.map(({ nodeId }) => nodeId)).not.toContain('behind')
})

/** x -> if, whose branches lead to a and b, which both lead to end. */
const trail = {
  nodeId: 'end',
  taken: {
    end: [{ source: 'a' }, { source: 'b' }],
    a: [{ source: 'if', part: 'true' }],
    b: [{ source: 'if', part: 'false' }],
    if: [{ source: 'x' }],
  },
}
const items = (...list: unknown[]) => list
const outputs = {
  x: { items: items('x0', 'x1', 'x2') },
  if: {
    handles: { true: { items: items('x1', 'x2'), from: [1, 2] }, false: { items: items('x0'), from: [0] } },
  },
  a: { items: items('a0', 'a1', 'a2'), from: [0, 0, 1] },
  b: { items: items('b0'), from: [0] },
}

test('an item is followed back through branches, by what each node says of where its items came from', () => {
  const pair = (index: number, target = 'x') => findPairedItem(trail, outputs, index, target)
  expect([0, 1, 2, 3].map((index) => pair(index))).toEqual([
    { item: 'x1', at: 1 },
    { item: 'x1', at: 1 },
    { item: 'x2', at: 2 },
    { item: 'x0', at: 0 },
  ])
  expect(pair(1, 'a')).toEqual({ item: 'a1', at: 1 })
  expect(pair(2, 'if')).toEqual({ item: 'x2', at: 1 })
  expect(pair(0, 'b')).toEqual({ item: 'b0', at: 0 })
})

test('where the trail is lost, the message names the node that loses it', () => {
  const lost = (nodes: Record<string, unknown>, index = 0, target = 'x') =>
    (findPairedItem(trail, nodes, index, target) as { lost: string }).lost
  expect(lost({ ...outputs, a: { items: items('a0', 'a1'), from: [null, 0] } })).toBe(
    'item 0 of "end" has no pair in "x": "a" does not say which of its items each of those that it outputs came from',
  )
  expect(lost({ ...outputs, a: { sum: 3 } })).toMatch(/"a" does not say/)
  expect(lost({ ...outputs, a: { items: items('a0'), from: [[0, 1]] } })).toMatch(
    /came from several of its items/,
  )
  expect(lost(outputs, 7)).toMatch(/"end" is not behind it/)
  expect(lost(outputs, 0, 'unknown')).toMatch(/has no output here/)
})

test('a node that passes its items on, or has made all of its only one, keeps the trail', () => {
  const list = ['p0', 'p1']
  const passing = { nodeId: 'end', taken: { end: [{ source: 'pass' }], pass: [{ source: 'x' }] } }
  expect(findPairedItem(passing, { x: { items: list }, pass: { items: list } }, 1, 'x')).toEqual({
    item: 'p1',
    at: 1,
  })
  const one = {
    nodeId: 'end',
    taken: { end: [{ source: 'many' }], many: [{ source: 'a' }], a: [{ source: 'x' }] },
  }
  const nodes = { x: { items: ['q0', 'q1'] }, a: { items: ['a1'], from: [1] }, many: ['m0', 'm1'] }
  expect(findPairedItem(one, nodes, 1, 'x')).toEqual({ item: 'q1', at: 1 })
})

test('a plan knows the nodes between one that pairs items and those that it names', () => {
  const node = (id: string, text = '', parentId?: string) => ({
    ...{ id, type: 'SET', name: id, onError: 'FAIL' as const, perItem: true, config: { values: { text } } },
    ...(parentId ? { parentId } : {}),
  })
  const graph = {
    nodes: [
      { ...start, name: 'start', onError: 'FAIL' as const },
      ...[node('x'), node('a'), node('b'), node('beside'), node('end', '{{ /* $("x").item */ $nodes.x }}')],
      node('plain', '{{ $nodes.x }}'),
    ],
    edges: edges('start -> x', 'x -> a', 'a -> b', 'start -> beside', 'b beside -> end', 'end -> plain').map(
      (edge) => ({
        ...{ sourceHandle: null },
        ...edge,
      }),
    ),
  }
  const work = compilePlan(graph, { workflowId: 'w', version: 1, triggerNodeId: 'start' })
  let step = work.next()
  while (!step.done) step = work.next()
  const pairs = new Map(step.value.nodes.map((one) => [one.id, one.pairs]))
  expect([...pairs.get('end')!].sort()).toEqual(['a', 'b', 'x'])
  expect(pairs.get('plain')).toBeUndefined()
})
