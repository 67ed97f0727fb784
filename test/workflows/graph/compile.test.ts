import { expect, test } from 'vitest'
import { compilePlan } from '../../../workflows/graph/compile.ts'
import type { Graph, GraphNode } from '../../../workflows/graph/graph.ts'
import { atOnce } from '../../support/atonce.ts'

const node = (id: string, type: string, config = {}, name = id): GraphNode => ({
  id,
  type,
  name,
  config,
  onError: 'FAIL',
})
const start = node('start', 'MANUAL_TRIGGER')
const call = (id: string, url = 'http://x') => node(id, 'HTTP_REQUEST', { url })
const row = (count: number, make: (id: string) => GraphNode, letter: string) =>
  Array.from({ length: count }, (_, at) => make(`${letter}${at}`))
const plan = (graph: Graph) =>
  atOnce(compilePlan(graph, { workflowId: 'w', version: 1, triggerNodeId: 'start' })).inlineBytes
const edge = (source: string, target: string) => ({ source, target, sourceHandle: null })

test('outputs of an ordinary graph travel inline up to 32 KB', () => {
  const calls = row(10, (id) => call(id), 'c')
  expect(plan({ nodes: [start, ...calls], edges: calls.map(({ id }) => edge('start', id)) })).toBe(32_000)
})

test('what 64 attempts read together, by edges or by expressions, fits into one message', () => {
  const sets = row(30, (id) => node(id, 'SET', { values: {} }), 's')
  const calls = row(64, (id) => call(id), 'c')
  const all = sets.flatMap((set) => calls.map(({ id }) => edge(set.id, id)))
  expect(plan({ nodes: [start, ...sets, ...calls], edges: all }) * 30 * 64).toBeLessThan(2_000_000)

  const many = row(400, (id) => node(id, 'SET', { values: {} }), 's')
  const naming = many.map(({ id }) => `{{ $nodes.${id} }}`).join('')
  const readers = row(64, (id) => call(id, naming), 'c')
  const bytes = plan({ nodes: [start, ...many, ...readers], edges: [] })
  expect(bytes * 400 * 64).toBeLessThan(2_000_000)
})

test('all outputs fit into one payload together with the plan of the largest graph', () => {
  const nodes = row(500, (id) => node(id.padEnd(100, 'x'), 'NO_OP', {}, 'x'.repeat(200)), 'n')
  const edges = Array.from({ length: 2_000 }, (_, at) =>
    edge(nodes[at % 400]!.id, nodes[400 + (at % 97)]!.id),
  )
  const run = { workflowId: 'w', version: 1, triggerNodeId: nodes[0]!.id }
  const compiled = atOnce(compilePlan({ nodes, edges }, run))
  const bytes = JSON.stringify(compiled).length + compiled.inlineBytes * nodes.length
  expect(bytes).toBeLessThan(1_800_000)
  expect(compiled.inlineBytes).toBeGreaterThan(1_000)
})
