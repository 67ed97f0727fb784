import type { Problem } from '../problem.ts'
import type { PlacedElement } from './elements.ts'
import type { Graph, GraphEdge, GraphNode } from './graph.ts'

type Edges = PlacedElement<GraphEdge>[]

/** The most nodes of a cycle that a message names. */
const MAX_NAMED = 20

/** One problem for each edge that closes a cycle in a depth-first walk, naming the nodes of the cycle. */
export function findCycles(byId: Map<string, GraphNode>, edges: Edges): Problem[] {
  const outward = new Map<string, Edges>()
  for (const edge of edges) {
    const { source } = edge.value
    const list = outward.get(source)
    if (list) list.push(edge)
    else outward.set(source, [edge])
  }
  const problems: Problem[] = []
  const trail: string[] = []
  const done = new Set<string>()
  const visit = (id: string) => {
    trail.push(id)
    for (const { value, path } of outward.get(id) ?? []) {
      const at = trail.indexOf(value.target)
      if (at >= 0) {
        const names = [...trail.slice(at), value.target]
        if (names.length > MAX_NAMED) names.splice(MAX_NAMED - 1, names.length - MAX_NAMED, '...')
        problems.push({ path, message: `closes a cycle: ${names.join(' -> ')}` })
      } else if (!done.has(value.target)) visit(value.target)
    }
    trail.pop()
    done.add(id)
  }
  for (const id of byId.keys()) if (!done.has(id)) visit(id)
  return problems
}

/** Maps each node id to the ids of all nodes whose outputs it may read. The graph must have no cycles. */
export function findUpstream(byId: Map<string, GraphNode>, edges: Edges): Map<string, Set<string>> {
  const sources = new Map<string, string[]>([...byId.keys()].map((id) => [id, []]))
  for (const { value } of edges) sources.get(value.target)?.push(value.source)
  const upstream = new Map<string, Set<string>>()
  const collect = (id: string): Set<string> => {
    const known = upstream.get(id)
    if (known) return known
    const all = new Set<string>()
    for (const source of sources.get(id) ?? []) {
      all.add(source)
      for (const further of collect(source)) all.add(further)
    }
    upstream.set(id, all)
    return all
  }
  for (const id of byId.keys()) collect(id)
  // A node that comes before a loop also comes before the loop's children.
  const inherit = (id: string, depth = 0): Set<string> => {
    const parent = byId.get(id)?.parentId
    const own = upstream.get(id)!
    if (parent === undefined || !byId.has(parent) || depth > byId.size) return own
    return new Set([...own, ...inherit(parent, depth + 1)])
  }
  const all = new Map([...byId.keys()].map((id) => [id, inherit(id)]))
  // REPEAT's condition is tested after an iteration and may read the outputs of its children.
  for (const node of byId.values()) {
    const parent = node.parentId === undefined ? undefined : byId.get(node.parentId)
    if (parent?.type === 'REPEAT') all.get(parent.id)!.add(node.id)
  }
  return all
}

/**
 * The nodes, each after those that lead to it (Kahn's algorithm). Nodes that become free at the same time keep the
 * author's order.
 */
export function sortTopologically(graph: Graph): GraphNode[] {
  const open = new Map(graph.nodes.map((node) => [node.id, 0]))
  const targets = new Map<string, string[]>(graph.nodes.map((node) => [node.id, []]))
  for (const edge of graph.edges) {
    open.set(edge.target, (open.get(edge.target) ?? 0) + 1)
    targets.get(edge.source)?.push(edge.target)
  }
  const byId = new Map(graph.nodes.map((node) => [node.id, node]))
  const queue = graph.nodes.filter((node) => open.get(node.id) === 0)
  const sorted: GraphNode[] = []
  for (let at = 0; at < queue.length; at++) {
    const node = queue[at]!
    sorted.push(node)
    for (const target of targets.get(node.id) ?? []) {
      const left = open.get(target)! - 1
      open.set(target, left)
      if (left === 0) queue.push(byId.get(target)!)
    }
  }
  return sorted
}
