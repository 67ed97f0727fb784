import { joinPath } from '../problem.ts'
import type { Graph, GraphEdge, GraphNode } from './graph.ts'

/** One value that changed. `from` is missing if the value was added, `to` if it was removed. */
export type ValueChange = { path: string; from?: unknown; to?: unknown }

/**
 * `reordered`: what both graphs have is in another order. The order decides where executions start and how
 * inputs are merged.
 */
export type GraphDiff = {
  nodes: {
    added: GraphNode[]
    removed: GraphNode[]
    changed: { id: string; name: string; changes: ValueChange[] }[]
    reordered: boolean
  }
  edges: { added: GraphEdge[]; removed: GraphEdge[]; reordered: boolean }
}

/** A field of a node with more changes is shown as a whole, and so is each once there are that many in all. */
const MAX_OF_FIELD = 1_000
const MAX_CHANGES = 10_000

/**
 * The changes that lead from one graph to the other. Nodes are matched by id, edges by their ends and
 * handles. `show` masks a node's values in the result; a change of a masked value is listed too.
 */
export function compareGraphs(
  from: Graph,
  to: Graph,
  show: (node: GraphNode) => GraphNode = (node) => node,
): GraphDiff {
  const nodes = compareLists(from.nodes, to.nodes, (node) => node.id)
  const edges = compareLists(from.edges, to.edges, keyOf)
  let left = MAX_CHANGES
  const changed = nodes.both.flatMap(([before, after]) => {
    const paths = findFieldChanges(before, after, Math.min(left, MAX_OF_FIELD))
    left -= paths.length
    if (paths.length === 0) return []
    const [old, young] = [show(before), show(after)]
    const changes = paths
      .map((whole) => showPath(whole, old, young))
      .map((path) => ({
        path: path.reduce<string>((at, key) => joinPath(at, key), ''),
        ...readValue('from', old, path),
        ...readValue('to', young, path),
      }))
    return [{ id: after.id, name: after.name, changes }]
  })
  return {
    nodes: {
      added: nodes.added.map(show),
      removed: nodes.removed.map(show),
      changed,
      reordered: nodes.reordered,
    },
    edges: { added: edges.added, removed: edges.removed, reordered: edges.reordered },
  }
}

function compareLists<T>(from: T[], to: T[], key: (entry: T) => string) {
  const before = new Map(from.map((entry) => [key(entry), entry]))
  const after = new Map(to.map((entry) => [key(entry), entry]))
  const kept = [...before.keys()].filter((name) => after.has(name))
  const order = [...after.keys()].filter((name) => before.has(name))
  return {
    added: to.filter((entry) => !before.has(key(entry))),
    removed: from.filter((entry) => !after.has(key(entry))),
    both: order.map((name) => [before.get(name)!, after.get(name)!] as const),
    reordered: kept.some((name, at) => name !== order[at]),
  }
}

function keyOf({ source, sourceHandle, target, targetHandle }: GraphEdge): string {
  return JSON.stringify([source, sourceHandle, target, targetHandle ?? null])
}

type Path = (string | number)[]

/** The deepest places where two nodes differ, but only the name of a field that differs in more than `most`. */
function findFieldChanges(from: GraphNode, to: GraphNode, most: number): Path[] {
  return Object.keys({ ...from, ...to }).flatMap((field) => {
    const found: Path[] = []
    addChanges(found, pick(from, field), pick(to, field), [], most)
    return found.length > most ? [[field]] : found
  })
}

function pick(node: GraphNode, field: string): Partial<GraphNode> {
  return Object.hasOwn(node, field) ? { [field]: node[field as keyof GraphNode] } : {}
}

/** Adds the deepest places where two values differ. Stops once it has found more than `most`. */
function addChanges(found: Path[], from: unknown, to: unknown, at: Path, most: number): void {
  if (Object.is(from, to) || found.length > most) return
  const kind = kindOf(from)
  if (kind === 'value' || kind !== kindOf(to)) {
    found.push(at)
    return
  }
  const [before, after] = [from as Record<string, unknown>, to as Record<string, unknown>]
  const compare = (key: string) => {
    const path = [...at, kind === 'list' ? Number(key) : key]
    const both = Object.hasOwn(before, key) && Object.hasOwn(after, key)
    if (both) addChanges(found, before[key], after[key], path, most)
    else found.push(path)
  }
  for (const key of Object.keys(before)) {
    if (found.length > most) return
    compare(key)
  }
  for (const key of Object.keys(after)) {
    if (found.length > most) return
    if (!Object.hasOwn(before, key)) compare(key)
  }
}

function kindOf(value: unknown): 'list' | 'object' | 'value' {
  if (Array.isArray(value)) return 'list'
  return typeof value === 'object' && value !== null ? 'object' : 'value'
}

/** A key may be a secret, too: the path ends before the first one that neither side shows. */
function showPath(path: Path, old: GraphNode, young: GraphNode): Path {
  const hidden = path.findIndex((_, at) => {
    const until = path.slice(0, at + 1)
    return !('from' in readValue('from', old, until)) && !('to' in readValue('to', young, until))
  })
  return hidden < 0 ? path : path.slice(0, hidden)
}

function readValue(side: 'from' | 'to', node: GraphNode, path: Path): { from?: unknown; to?: unknown } {
  let value: unknown = node
  for (const key of path) {
    if (!Object.hasOwn(Object(value), key)) return {}
    value = (value as Record<string | number, unknown>)[key]
  }
  return { [side]: value }
}
