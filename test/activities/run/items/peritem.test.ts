import { expect, test } from 'vitest'
import { nodeOf } from '../../../support/client.ts'
import { edges } from '../../../support/engine/graphs.ts'
import { keep } from '../../../support/keep.ts'
import { shareRunning } from '../../../support/running.ts'

const host = await keep(shareRunning())

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }

type Node = { id: string; type: string } & Record<string, unknown>

/** A graph in which all nodes but the trigger work on items. */
const graph = (nodes: Node[], ...arrows: string[]) => ({
  nodes: [start, ...nodes.map((node) => ({ perItem: true, ...node }))],
  edges: edges(...arrows),
})

const people = { items: [{ n: 1 }, { n: 2 }, { n: 3 }] }

test('a node works on each item with its $item and $index, and keeps $input whole', async () => {
  const run = await host.run(
    graph(
      [
        {
          id: 'set',
          type: 'SET',
          config: {
            values: { double: '{{ $item.n * 2 }}', at: '{{ $index }}', of: '{{ $count($input.items) }}' },
          },
        },
      ],
      'start -> set',
    ),
    people,
  )
  expect(run.status).toBe('SUCCESS')
  expect(run.outputData).toEqual({
    items: [2, 4, 6].map((double, at) => ({ double, at, of: 3 })),
    from: [0, 1, 2],
  })
  expect(nodeOf(run, 'set').inputData).toEqual(people)
})

test('IF_ELSE sends each item by its handle, and both branches run', async () => {
  const run = await host.run(
    graph(
      [
        { id: 'if', type: 'IF_ELSE', config: { condition: '$item.n > 1' } },
        { id: 'big', type: 'SET', config: { values: { big: '{{ $item.n }}' } } },
        { id: 'small', type: 'SET', config: { values: { small: '{{ $item.n }}' } } },
        { id: 'both', type: 'NO_OP', config: {} },
      ],
      'start -> if',
      'if:true -> big',
      'if:false -> small',
      'big small -> both',
    ),
    people,
  )
  expect(run.status).toBe('SUCCESS')
  expect(nodeOf(run, 'if')).toMatchObject({
    handle: null,
    handles: ['true', 'false'],
    outputData: {
      handles: {
        true: { items: [{ n: 2 }, { n: 3 }], from: [1, 2] },
        false: { items: [{ n: 1 }], from: [0] },
      },
    },
  })
  expect(nodeOf(run, 'big').inputData).toEqual({ items: [{ n: 2 }, { n: 3 }], from: [1, 2] })
  expect(nodeOf(run, 'both').outputData).toEqual({
    items: [{ big: 2 }, { big: 3 }, { small: 1 }],
    from: [0, 1, 2],
  })
})

test('a SWITCH that takes all cases leaves by each that holds, also where it does not work on items', async () => {
  const cases = [1, 2, 3].map((n) => ({ handle: `c${n}`, condition: `{{ $input.n < ${n} }}` }))
  const nodes = ['c1', 'c2', 'c3'].map((id) => ({ id, type: 'NO_OP', config: {} }))
  const run = await host.run(
    {
      nodes: [start, { id: 'which', type: 'SWITCH', config: { cases, all: true } }, ...nodes],
      edges: edges('start -> which', 'which:c1 -> c1', 'which:c2 -> c2', 'which:c3 -> c3'),
    },
    { n: 1 },
  )
  expect(run.nodeExecutions.map(({ nodeId }) => nodeId)).toEqual(['start', 'which', 'c2', 'c3'])
  expect(nodeOf(run, 'which').handles).toEqual(['c2', 'c3'])
  expect(run.outputData).toEqual({ c2: { n: 1 }, c3: { n: 1 } })
})

test('a branch without items is not taken, and what stands behind it does not run', async () => {
  const run = await host.run(
    graph(
      [
        { id: 'which', type: 'SWITCH', config: { cases: [{ handle: 'one', condition: '$item.n = 1' }] } },
        { id: 'one', type: 'NO_OP', config: {} },
        { id: 'rest', type: 'NO_OP', config: {} },
        { id: 'behind', type: 'NO_OP', config: {} },
      ],
      'start -> which',
      'which:one -> one',
      'which:default -> rest',
      'rest -> behind',
    ),
    { items: [{ n: 1 }] },
  )
  expect(run.status).toBe('SUCCESS')
  expect(run.nodeExecutions.map(({ nodeId }) => nodeId)).toEqual(['start', 'which', 'one'])
  expect(nodeOf(run, 'which').handles).toEqual(['one'])
})

test('a node to which no items come leads nowhere', async () => {
  const run = await host.run(
    graph(
      [
        { id: 'none', type: 'SET', config: { values: {} } },
        { id: 'behind', type: 'NO_OP', config: {} },
      ],
      'start -> none',
      'none -> behind',
    ),
    { items: [] },
  )
  expect(run.status).toBe('SUCCESS')
  expect(run.nodeExecutions.map(({ nodeId }) => nodeId)).toEqual(['start', 'none'])
  expect(nodeOf(run, 'none')).toMatchObject({ handles: [], outputData: { items: [], from: [] } })
})

test('lists that are made of an item become several items', async () => {
  const run = await host.run(
    graph(
      [
        { id: 'split', type: 'SPLIT', config: { value: '{{ $item.tags }}' } },
        { id: 'twice', type: 'TRANSFORM', config: { expression: '[$item, $item & "!"]' } },
      ],
      'start -> split',
      'split -> twice',
    ),
    { items: [{ tags: ['a', 'b'] }, { tags: [] }, { tags: ['c'] }] },
  )
  expect(nodeOf(run, 'split').outputData).toEqual({ items: ['a', 'b', 'c'], from: [0, 0, 2] })
  expect(run.outputData).toEqual({ items: ['a', 'a!', 'b', 'b!', 'c', 'c!'], from: [0, 0, 1, 1, 2, 2] })
})

test('a failed item ends the execution, goes on with its error, or leaves by error', async () => {
  const failing = { id: 'parse', type: 'JSON', config: { operation: 'parse', value: '{{ $item.text }}' } }
  const data = { items: [{ text: '{"a": 1}' }, { text: 'no' }, { text: '2' }] }
  const run = (onError: string) =>
    host.run(
      graph(
        [
          { ...failing, onError },
          { id: 'rescue', type: 'NO_OP', config: {} },
        ],
        'start -> parse',
        'parse:error -> rescue',
      ),
      data,
    )
  const plain = await host.run(graph([failing], 'start -> parse'), data)
  expect(plain.status).toBe('FAILED')
  expect(plain.errorMessage).toMatch(/^Item 1: /)
  const goesOn = await host.run(graph([{ ...failing, onError: 'CONTINUE' }], 'start -> parse'), data)
  expect(goesOn.status).toBe('SUCCESS')
  const error = { message: expect.any(String), type: 'InvalidInput', nodeId: 'parse' }
  expect(goesOn.outputData).toEqual({
    items: [{ value: { a: 1 } }, { error }, { value: 2 }],
    from: [0, 1, 2],
  })
  const branched = await run('BRANCH')
  expect(branched.status).toBe('SUCCESS')
  expect(nodeOf(branched, 'parse').handles).toEqual([null, 'error'])
  expect(nodeOf(branched, 'parse').outputData).toMatchObject({
    items: [{ value: { a: 1 } }, { value: 2 }],
    from: [0, 2],
  })
  expect(nodeOf(branched, 'rescue').inputData).toEqual({ items: [{ text: 'no', error }], from: [1] })
})

test('the expressions of 10,000 items are evaluated together, and one that fails fails its item only', async () => {
  const run = await host.run(
    graph(
      [
        {
          id: 'set',
          type: 'SET',
          onError: 'BRANCH',
          config: {
            values: {
              text: '{{ $join($map([1, 2], function($n) { $string($n + $item) }), "-") }}',
              number: '{{ $item = 7000 ? $error("not this one") : $sum([$item, 1]) }}',
              nothing: 'x{{ $item.none }}',
            },
          },
        },
      ],
      'start -> set',
    ),
    { items: Array.from({ length: 10_000 }, (_, at) => at) },
  )
  expect(run.status).toBe('SUCCESS')
  const { items, from, handles } = run.outputData as {
    items: unknown[]
    from: number[]
    handles: { error: { items: unknown[]; from: number[] } }
  }
  expect(items).toHaveLength(9_999)
  expect(items[7_000]).toEqual({ text: '7002-7003', number: 7002, nothing: 'x' })
  expect(from[7_000]).toBe(7_001)
  expect(handles.error.from).toEqual([7_000])
  expect(handles.error.items[0]).toMatchObject({ value: 7_000, error: { type: 'ExpressionFailed' } })
})

test('what cannot work on items is refused when the graph is saved', async () => {
  const { status, body } = await host.call('POST', '/api/workflows', host.admin, {
    teamId: host.teamId,
    name: 'refused',
    nodes: [
      { ...start, perItem: true },
      { id: 'wait', type: 'WAIT', perItem: true, config: { durationMs: 1 } },
      { id: 'each', type: 'FOR_EACH', allItems: true, config: { items: [] } },
      { id: 'both', type: 'SET', perItem: true, allItems: true, config: { values: {} } },
      { id: 'fast', type: 'SET', perItem: { concurrency: 2 }, config: { values: {} } },
      { id: 'odd', type: 'SET', perItem: { concurrency: 0 }, config: { values: {} } },
    ],
    edges: [],
  })
  expect(status).toBe(400)
  const { errors } = body as unknown as { errors: { path: string; message: string }[] }
  expect(errors.map(({ path }) => path).sort()).toEqual([
    'nodes[0].perItem',
    'nodes[1].perItem',
    'nodes[2].allItems',
    'nodes[3].allItems',
    'nodes[4].perItem.concurrency',
    'nodes[5].perItem.concurrency',
  ])
})

const branching = () =>
  graph(
    [
      { id: 'if', type: 'IF_ELSE', config: { condition: '$item.n > 1' } },
      { id: 'big', type: 'SET', config: { values: { big: '{{ $item.n }}' } } },
      { id: 'small', type: 'SET', config: { values: { small: '{{ $item.n }}' } } },
      { id: 'stop', type: 'STOP_AND_ERROR', config: { message: 'no {{ $item.small }}' } },
    ],
    'start -> if',
    'if:true -> big',
    'if:false -> small',
    'small -> stop',
  )

test('a retry takes over what left by several handles, each with its own items', async () => {
  const first = await host.run(branching(), people)
  expect(first.status).toBe('FAILED')
  const { executionId } = await host.ask<{ executionId: string }>(
    'POST',
    `/api/executions/${first.id}/retry`,
    {},
  )
  const again = await host.ended(executionId)
  expect(again.errorMessage).toBe('no 1')
  const taken = nodeOf(again, 'if') as { takenFrom?: string } & ReturnType<typeof nodeOf>
  expect(taken).toMatchObject({ takenFrom: first.id, handles: ['true', 'false'] })
  expect(nodeOf(again, 'big').inputData).toEqual({ items: [{ n: 2 }, { n: 3 }], from: [1, 2] })
})

test('the pinned output of a node that works on items leaves by the handles that have some', async () => {
  const id = await host.create(branching())
  const pin = (output: unknown) =>
    host.call('POST', `/api/workflows/${id}/execute`, host.admin, {
      teamId: host.teamId,
      data: people,
      pinned: { if: { output } },
    })
  const wrong = await pin({ items: [] })
  expect(wrong.status).toBe(400)
  expect(JSON.stringify(wrong.body)).toMatch(/must be \{handles/)
  expect(JSON.stringify((await pin({ handles: { maybe: { items: [1] } } })).body)).toMatch(
    /the handle .*maybe/,
  )
  const { body } = await pin({ handles: { true: { items: [{ n: 7 }] }, false: { items: [] } } })
  const run = await host.ended(String(body.executionId))
  expect(run.status).toBe('SUCCESS')
  expect(run.outputData).toEqual({ items: [{ big: 7 }], from: [0] })
  expect(nodeOf(run, 'if').handles).toEqual(['true'])
})

test('a disabled node passes all items on, also those of several branches', async () => {
  const run = await host.run(
    graph(
      [
        { id: 'if', type: 'IF_ELSE', config: { condition: '$item.n > 1' } },
        { id: 'off', type: 'SET', disabled: true, config: { values: {} } },
        { id: 'end', type: 'SET', config: { values: { n: '{{ $item.n }}' } } },
      ],
      'start -> if',
      'if:true if:false -> off',
      'off -> end',
    ),
    people,
  )
  expect(run.outputData).toEqual({ items: [{ n: 2 }, { n: 3 }, { n: 1 }], from: [0, 1, 2] })
  expect(nodeOf(run, 'end').inputData).toEqual({ items: [{ n: 2 }, { n: 3 }, { n: 1 }] })
})
