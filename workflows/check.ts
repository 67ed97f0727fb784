import { findReferences } from './expressions.ts'
import type { Graph, GraphEdge, GraphNode, Problem } from './graph.ts'
import { checkHooks } from './hooks.ts'
import { nodeType } from './nodes.ts'
import { joinPath } from './problem.ts'

/** A node or edge and where the author wrote it; `configPath` is where its config stands. */
export type Placed<T> = { value: T; path: string; configPath?: string }

/** Loops in loops in loops. */
const MAX_DEPTH = 5

/** Each is parsed when the graph is saved, at some 40 us. */
const MAX_EXPRESSIONS = 10_000

type Nodes = Placed<GraphNode>[]
type Edges = Placed<GraphEdge>[]

/** What is wrong with how nodes and edges stand together. Each by itself has been read before. */
export function checkStructure(nodes: Nodes, edges: Edges): Problem[] {
  const byId = new Map<string, GraphNode>()
  for (const { value } of nodes) if (!byId.has(value.id)) byId.set(value.id, value)
  const sound = edges.filter(
    ({ value }) => value.source !== value.target && byId.has(value.source) && byId.has(value.target),
  )
  const cycles = findCycles(byId, sound)
  return [
    ...findRepeats(nodes, ({ value }) => value.id, 'id', 'the id'),
    ...findRepeats(edges, ({ value }) => value.id, 'id', 'the id'),
    ...findRepeats(edges, edgeKey, '', 'source, sourceHandle, target and targetHandle'),
    ...findRepeats(nodes, hookKey, 'config.path', 'path and method'),
    ...nodes.flatMap((node) => checkNode(node, byId)),
    ...edges.flatMap((edge) => checkEdge(edge, byId)),
    ...cycles,
    ...checkReferences(nodes, byId, cycles.length > 0 ? undefined : findUpstream(byId, sound)),
  ]
}

/** What a graph must have beyond being sound before webhooks and schedules may start it. */
export function checkActivation(graph: Graph): Problem[] {
  const triggers = graph.nodes.filter((node) => !node.disabled && nodeType(node.type)?.kind === 'trigger')
  if (triggers.length === 0) {
    return [{ path: 'nodes', message: 'an active workflow needs a trigger node that is not disabled' }]
  }
  const targets = targetsOf(graph.edges)
  const reached = new Set(triggers.map((node) => node.id))
  const children = Map.groupBy(graph.nodes, (node) => node.parentId)
  for (const id of reached) {
    for (const target of targets.get(id) ?? []) reached.add(target)
    // In a body all that has no edge from another child begins by itself.
    for (const child of children.get(id) ?? []) reached.add(child.id)
  }
  const unreached = graph.nodes.flatMap((node, at) =>
    reached.has(node.id) || node.disabled
      ? []
      : [{ path: `nodes[${at}]`, message: `no trigger leads to the node "${node.id}"` }],
  )
  return [...unreached, ...checkHooks(graph)]
}

function findRepeats<T>(
  list: Placed<T>[],
  keyOf: (entry: Placed<T>) => string | undefined,
  at: string,
  what: string,
): Problem[] {
  const first = new Map<string, string>()
  return list.flatMap((entry) => {
    const key = keyOf(entry)
    if (key === undefined) return []
    const taken = first.get(key)
    if (taken === undefined) first.set(key, entry.path)
    const path = at === '' ? entry.path : joinPath(entry.path, at)
    return taken === undefined ? [] : [{ path, message: `repeats ${what} of ${taken}` }]
  })
}

function edgeKey({ value }: Placed<GraphEdge>): string {
  return JSON.stringify([value.source, value.sourceHandle, value.target, value.targetHandle ?? null])
}

function hookKey({ value }: Placed<GraphNode>): string | undefined {
  if (value.type !== 'WEBHOOK_TRIGGER' || value.disabled) return undefined
  return JSON.stringify([value.config.path, value.config.method])
}

function checkNode(
  { value: node, path, configPath = path }: Placed<GraphNode>,
  byId: Map<string, GraphNode>,
): Problem[] {
  const problems: Problem[] = []
  if (node.parentId !== undefined) {
    const message = checkParent(node, byId)
    if (message) problems.push({ path: `${path}.parentId`, message })
  }
  if (nodeType(node.type)?.kind === 'loop' || nodeType(node.type)?.kind === 'pause') {
    for (const field of ['retry', 'timeoutMs'] as const) {
      if (node[field] === undefined) continue
      problems.push({ path: `${path}.${field}`, message: `is not for a node of type ${node.type}` })
    }
  }
  if (node.onError === 'BRANCH' && nodeType(node.type)?.handles(node.config).includes('error')) {
    problems.push({ path: configPath, message: 'the handle error is the one of onError BRANCH already' })
  }
  return problems
}

function checkParent(node: GraphNode, byId: Map<string, GraphNode>): string | undefined {
  const parent = byId.get(node.parentId!)
  if (!parent) return 'names no node of this graph'
  if (nodeType(parent.type)?.kind !== 'loop') return `a node of type ${parent.type} takes no children`
  if (nodeType(node.type)?.kind === 'trigger') return 'a trigger is no child of a loop'
  const around = new Set<string>()
  for (let id = node.parentId; id !== undefined; id = byId.get(id)?.parentId) {
    if (id === node.id) return 'is inside of itself'
    if (around.has(id)) return undefined
    around.add(id)
  }
  return around.size > MAX_DEPTH ? `loops are nested more than ${MAX_DEPTH} levels deep` : undefined
}

function checkEdge({ value: edge, path }: Placed<GraphEdge>, byId: Map<string, GraphNode>): Problem[] {
  const problems: Problem[] = []
  for (const end of ['source', 'target'] as const) {
    if (!byId.has(edge[end]))
      problems.push({ path: `${path}.${end}`, message: `there is no node "${edge[end]}"` })
  }
  if (edge.source === edge.target) problems.push({ path, message: 'leads from a node to itself' })
  const source = byId.get(edge.source)
  const target = byId.get(edge.target)
  if (source && target && source.parentId !== target.parentId) {
    const place = (node: GraphNode) =>
      node.parentId === undefined ? 'outside of loops' : `in the loop "${node.parentId}"`
    const message = `leads from ${place(source)} to ${place(target)}; an edge joins nodes of the same body`
    problems.push({ path, message })
  }
  const handles = source && listHandles(source)
  if (handles && !handles.includes(edge.sourceHandle)) {
    const names = handles.map((handle) => handle ?? 'null (the main one)').join(', ')
    problems.push({ path: `${path}.sourceHandle`, message: `the node "${source.id}" leaves by ${names}` })
  }
  if (target && nodeType(target.type)?.kind === 'trigger') {
    problems.push({ path: `${path}.target`, message: `the trigger "${target.id}" takes no edges` })
  }
  return problems
}

/** The handles by which a node may leave; undefined for a type nobody knows. */
export function listHandles(node: GraphNode): (string | null)[] | undefined {
  const handles = nodeType(node.type)?.handles(node.config)
  return handles && node.onError === 'BRANCH' ? [...handles, 'error'] : handles
}

function targetsOf(edges: GraphEdge[]): Map<string, string[]> {
  const targets = new Map<string, string[]>()
  for (const { source, target } of edges) targets.set(source, [...(targets.get(source) ?? []), target])
  return targets
}

/** One problem per edge that closes a cycle in a walk in depth, naming the nodes on it. */
function findCycles(byId: Map<string, GraphNode>, edges: Edges): Problem[] {
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
        const names = [...trail.slice(at), value.target].join(' -> ')
        problems.push({ path, message: `closes a cycle: ${names}` })
      } else if (!done.has(value.target)) visit(value.target)
    }
    trail.pop()
    done.add(id)
  }
  for (const id of byId.keys()) if (!done.has(id)) visit(id)
  return problems
}

/** By node id, the ids of all nodes that come before it. Without cycles only. */
function findUpstream(byId: Map<string, GraphNode>, edges: Edges): Map<string, Set<string>> {
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
  // What comes before a loop comes before its children too.
  const inherit = (id: string, depth = 0): Set<string> => {
    const parent = byId.get(id)?.parentId
    const own = upstream.get(id)!
    if (parent === undefined || !byId.has(parent) || depth > byId.size) return own
    return new Set([...own, ...inherit(parent, depth + 1)])
  }
  const all = new Map([...byId.keys()].map((id) => [id, inherit(id)]))
  // REPEAT's condition reads what its body has made.
  for (const node of byId.values()) {
    const parent = node.parentId === undefined ? undefined : byId.get(node.parentId)
    if (parent?.type === 'REPEAT') all.get(parent.id)!.add(node.id)
  }
  return all
}

function checkReferences(
  nodes: Nodes,
  byId: Map<string, GraphNode>,
  upstream: Map<string, Set<string>> | undefined,
): Problem[] {
  const expressions = nodes.reduce(
    (sum, { value }) => sum + JSON.stringify(value.config).split('{{').length - 1,
    0,
  )
  if (expressions > MAX_EXPRESSIONS) {
    const message = `hold ${expressions} expressions; at most ${MAX_EXPRESSIONS} are allowed`
    return [{ path: 'nodes', message }]
  }
  return nodes.flatMap(({ value: node, path, configPath = path }) => {
    const found = findReferences(node.config, configPath, nodeType(node.type)?.conditions?.(node.config))
    const unknown = found.nodes.flatMap(({ id, path }) => {
      if (!byId.has(id)) return [{ path, message: `names the node "${id}", which is not in this graph` }]
      if (!upstream || upstream.get(node.id)?.has(id)) return []
      return [{ path, message: `names the node "${id}", which does not come before "${node.id}"` }]
    })
    return [...found.problems, ...unknown]
  })
}
