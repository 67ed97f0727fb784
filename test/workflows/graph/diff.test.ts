import { expect, test } from 'vitest'
import { compareGraphs } from '../../../workflows/graph/diff.ts'
import type { Graph, GraphNode } from '../../../workflows/graph/graph.ts'

const node = (id: string, config: Record<string, unknown>, name = id): GraphNode => ({
  id,
  type: 'SET',
  name,
  config,
  onError: 'FAIL',
})
const graph = (...nodes: GraphNode[]): Graph => ({ nodes, edges: [] })
const pathsOf = (from: Graph, to: Graph) =>
  compareGraphs(from, to).nodes.changed.map(({ id, changes }) => [id, changes.map(({ path }) => path)])

test('a field with very many changes is shown as a whole, and the others of its node as ever', () => {
  const list = (value: number, length: number) => ({ values: { list: Array(length).fill(value) } })
  expect(pathsOf(graph(node('a', list(1, 200_000))), graph(node('a', list(2, 200_000), 'b')))).toEqual([
    ['a', ['name', 'config']],
  ])
  const [few] = compareGraphs(graph(node('a', list(1, 1_000))), graph(node('a', list(2, 1_000)))).nodes
    .changed
  expect(few!.changes).toHaveLength(1_000)
  expect(few!.changes[999]).toEqual({ path: 'config.values.list[999]', from: 1, to: 2 })
})

test('a comparison lists some ten thousand changes at most, but misses none', () => {
  const many = (value: number) =>
    graph(...Array.from({ length: 100 }, (_, at) => node(`n${at}`, { values: Array(900).fill(value) })))
  const changed = pathsOf(many(1), many(2))
  expect(changed).toHaveLength(100)
  expect(changed.flatMap(([, paths]) => paths).length).toBeLessThan(10_200)
  expect(changed.at(-1)).toEqual(['n99', ['config']])
})
