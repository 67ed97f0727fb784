import { expect, test } from 'vitest'
import { rebuildExecution } from '../../../activities/temporal/rebuild.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf, shareRunning } from '../../support/running.ts'

const running = await keep(shareRunning())
const { run, ask, create, execute, ended } = running

type Noted = { warnings?: { path: string; message: string }[]; console?: unknown }
const notesOf = (node: object): Noted => {
  const { warnings, console } = node as Noted
  return { ...(warnings ? { warnings } : {}), ...(console ? { console } : {}) }
}

const start = { id: 'start', type: 'MANUAL_TRIGGER' }
const message = '`$input.emial`: no such field; there are `email`, `name`'
const data = { email: 'a@b.c', name: 'Ada' }

const graph = {
  nodes: [
    start,
    {
      id: 'set',
      type: 'SET',
      config: {
        values: { to: ['{{ $input.emial }}', '{{ $input.name }}'], 'odd key': 'x {{ $input.emial }}' },
      },
    },
    { id: 'alone', type: 'TEMPLATE', config: { text: 'Dear {{ $input.emial }}' }, timeoutMs: 5_000 },
    { id: 'if', type: 'IF_ELSE', config: { condition: '$input.name' } },
    { id: 'ask', type: 'IF_ELSE', config: { condition: '{{ $not($input.emial) }}' } },
    { id: 'each', type: 'FOR_EACH', config: { items: [{ a: 1 }, { b: 1 }] } },
    { id: 'body', parentId: 'each', type: 'SET', config: { values: { a: '{{ $item.a }}' } } },
    { id: 'repeat', type: 'REPEAT', config: { until: '$input.done = 1', maxIterations: 2 } },
    { id: 'turn', parentId: 'repeat', type: 'NO_OP' },
  ],
  edges: ['set', 'alone', 'if', 'ask', 'each', 'repeat'].map((target) => ({ source: 'start', target })),
}

test('the record of a node has what it has read in vain, and a rebuild makes the same records', async () => {
  const id = await execute(await create(graph), data)
  const found = await ended(id)
  expect(found.status, found.errorMessage ?? '').toBe('SUCCESS')
  const show = (of: typeof found) =>
    Object.fromEntries(
      of.nodeExecutions.map((node) => [`${node.nodeId} ${node.iteration ?? ''}`, notesOf(node)]),
    )
  const shown = show(found)
  expect(shown).toEqual({
    'start ': {},
    'set ': {
      warnings: [
        { path: 'config.values.to[0]', message },
        { path: 'config.values.odd key', message },
      ],
    },
    'alone ': { warnings: [{ path: 'config.text', message }] },
    'if ': {
      warnings: [
        {
          path: 'config.condition',
          message: 'the condition gave "Ada", which counts as true: compare it with something',
        },
      ],
    },
    'ask ': {},
    'each ': {},
    'body 0': {},
    'body 1': {
      warnings: [{ path: 'config.values.a', message: '`$item.a`: no such field; there is `b`' }],
    },
    'repeat ': {
      warnings: [
        { path: 'config.until', message: '`$input.done`: no such field; there are `email`, `name`' },
      ],
    },
    'turn 0': {},
    'turn 1': {},
  })
  expect(nodeOf(found, 'ask').handle).toBe('true')
  const page = await ask<{ content: { nodeId: string }[] }>('GET', `/api/executions/${id}/nodes?nodeId=set`)
  expect(notesOf(page.content[0]!)).toEqual(shown['set '])
  await running.store.db
    .updateTable('nodeExecutions')
    .set({ notes: null })
    .where('executionId', '=', id)
    .execute()
  const { client, sealer } = running.engine
  await rebuildExecution({ store: running.store, client, sealer }, id)
  expect(show(await running.read(id))).toEqual(shown)
})

test('under the rules 1 a record has no warnings', async () => {
  const found = await run({ ...graph, expressions: 1 }, data)
  expect(found.nodeExecutions.map(notesOf)).toEqual(found.nodeExecutions.map(() => ({})))
  expect(nodeOf(found, 'ask').handle).toBe('false')
})

test('with settings.strict a node that reads in vain fails, as a step and as an activity', async () => {
  const settings = { strict: true }
  for (const failing of graph.nodes.filter(({ id }) => id === 'set' || id === 'alone')) {
    const nodes = [start, { ...failing, onError: 'CONTINUE' as const }]
    const edges = [{ source: 'start', target: failing.id }]
    const found = await run({ nodes, edges, settings }, data)
    const node = nodeOf(found, failing.id)
    expect(node.errorMessage).toBe(`expression {{ $input.emial }}: ${message} (settings.strict)`)
    expect(node.outputData).toMatchObject({ error: { type: 'ExpressionFailed' } })
    const fine = await run({ nodes, edges, settings }, { ...data, emial: 1 })
    expect(nodeOf(fine, failing.id).status).toBe('SUCCESS')
    const lax = await run({ nodes, edges, settings, expressions: 1 }, data)
    expect(nodeOf(lax, failing.id).status).toBe('SUCCESS')
  }
})

test('a node that fails keeps what it had noted before, as a step and as an activity', async () => {
  const config = { message: 'no {{ $input.emial }}' }
  for (const more of [{}, { timeoutMs: 5_000 }]) {
    const nodes = [start, { id: 'stop', type: 'STOP_AND_ERROR', config, ...more }]
    const found = await run({ nodes, edges: [{ source: 'start', target: 'stop' }] }, data)
    expect(found.status).toBe('FAILED')
    expect(notesOf(nodeOf(found, 'stop'))).toEqual({ warnings: [{ path: 'config.message', message }] })
  }
})
