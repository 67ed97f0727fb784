import { type GraphEdge, type Problem, readGraph } from '../graph.ts'
import type { NewNode } from './mapper.ts'
import type { ImportProblem } from './report.ts'

type Drawing = { nodes: NewNode[]; edges: GraphEdge[] }

const ROUNDS = 5

/**
 * Brings what was converted into a graph that can be saved: a node that is still not sound gives way to one that
 * stops the run, an edge that is not is left out, and both are reported. Problems that stay are of the graph as a
 * whole: too many nodes, too large.
 */
export function mendGraph(
  drawing: Drawing,
  report: (problem: ImportProblem) => void,
  makeId: () => string,
): Drawing & { problems: Problem[] } {
  let { nodes, edges } = drawing
  for (let round = 0; round < ROUNDS; round++) {
    const { problems } = readGraph({ nodes, edges }, makeId)
    const faults = new Map<string, Problem[]>()
    for (const problem of problems) {
      const [place] = /^(nodes|edges)\[\d+\]/.exec(problem.path) ?? []
      if (!place) return { nodes, edges, problems }
      faults.set(place, [...(faults.get(place) ?? []), problem])
    }
    if (faults.size === 0) break
    const broken = nodes.flatMap((node, i) => {
      const found = faults.get(`nodes[${i}]`)
      return found ? [{ node, found }] : []
    })
    // Edges may be at fault for their nodes only: these come first.
    const lost = broken.length > 0 ? [] : edges.filter((_, i) => faults.has(`edges[${i}]`))
    for (const { node, found } of broken) {
      const message = found
        .map(({ path, message }) => `${path.replace(/^nodes\[\d+\]\.?/, '')} ${message}`)
        .join('; ')
      report({
        node: String(node.name),
        path: 'node',
        kind: 'node',
        message: `It stops the run: ${message}`,
        original: node,
      })
    }
    for (const edge of lost) {
      report({
        node: null,
        path: 'connections',
        kind: 'connection',
        message: 'The edge was left out',
        original: edge,
      })
    }
    const replaced = new Set(broken.map(({ node }) => node))
    const swapped = new Map(broken.map(({ node }) => [node.id, node]))
    nodes = nodes.map((node) => (replaced.has(node) ? replace(node) : node))
    edges = edges
      .filter((edge) => !lost.includes(edge))
      .map((edge) => (swapped.has(edge.source) ? { ...edge, sourceHandle: null } : edge))
  }
  return { nodes, edges, problems: readGraph({ nodes, edges }, makeId).problems }
}

function replace(node: NewNode): NewNode {
  const { id, name, position, parentId, disabled } = node
  const kept = {
    id,
    name,
    ...(position ? { position } : {}),
    ...(parentId ? { parentId } : {}),
    ...(disabled ? { disabled } : {}),
  }
  if (/TRIGGER$/.test(node.type)) return { ...kept, type: 'MANUAL_TRIGGER', config: {} }
  if (node.type === 'FOR_EACH') {
    const { concurrency = 1 } = node.config
    return {
      ...kept,
      type: 'FOR_EACH',
      config: { items: '{{ $error("The list was not imported") }}', concurrency },
    }
  }
  return { ...kept, type: 'STOP_AND_ERROR', config: { message: `${node.type} was not imported soundly` } }
}
