import { locate } from '../expressions/place.ts'
import { findReferences } from '../expressions/references.ts'
import type { Rules } from '../expressions/rules.ts'
import { nodeType } from '../nodes/nodes.ts'
import type { Problem } from '../problem.ts'
import { joinPath } from '../problem.ts'
import { askForSimilar } from '../suggest.ts'
import type { Work } from '../turns.ts'
import type { PlacedElement } from './elements.ts'
import {
  callsPerItem,
  findNodeNames,
  type Graph,
  type GraphEdge,
  type GraphNode,
  isOnItems,
  MAX_LOOP_DEPTH,
} from './graph.ts'
import { checkChat } from './triggers/chat.ts'
import { checkWebhooks } from './triggers/webhooks.ts'

/** Every expression is parsed when the graph is saved, which takes about 40 us each. */
const MAX_EXPRESSIONS = 10_000

/** The most units of work for all expressions: more than a graph without `??` and `?:` can have. */
const MAX_PARSING = 1_500_000

/** The units of work for checking how one element fits to the others. */
const ELEMENT_WORK = 7

/** The most nodes of a cycle that a message names. */
const MAX_NAMED = 20

type Nodes = PlacedElement<GraphNode>[]
type Edges = PlacedElement<GraphEdge>[]

/** The faults of a graph, and the warnings about it. */
export type Findings = { problems: Problem[]; warnings: Problem[] }

/**
 * Checks how nodes and edges, each read before, fit together: ids, parents, edges, cycles, references. Texts are read
 * under `rules`. A fault in the texts of a node in `kept` is only a warning.
 */
export function* checkStructure(
  nodes: Nodes,
  edges: Edges,
  rules: Rules,
  kept: ReadonlySet<GraphNode>,
): Work<Findings> {
  const units = ELEMENT_WORK * (nodes.length + edges.length)
  yield units
  const byId = new Map<string, GraphNode>()
  for (const { value } of nodes) if (!byId.has(value.id)) byId.set(value.id, value)
  const sound = edges.filter(
    ({ value }) => value.source !== value.target && byId.has(value.source) && byId.has(value.target),
  )
  const cycles = findCycles(byId, sound)
  const problems = [
    ...findRepeats(nodes, ({ value }) => value.id, 'id', 'the id'),
    ...findRepeats(edges, ({ value }) => value.id, 'id', 'the id'),
    ...findRepeats(edges, edgeKey, '', 'the source, sourceHandle, target and targetHandle'),
    ...findRepeats(nodes, hookKey, 'config.path', 'the path and method'),
    ...nodes.flatMap((node) => checkNode(node, byId)),
    ...edges.flatMap((edge) => checkEdge(edge, byId)),
    ...cycles,
  ]
  yield units
  const upstream = cycles.length > 0 ? undefined : findUpstream(byId, sound)
  const texts = yield* checkReferences(nodes, byId, upstream, { rules, kept })
  return { problems: [...problems, ...texts.problems], warnings: texts.warnings }
}

/** The faults that a valid graph must lose before its workflow may be activated. */
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
    // When a loop begins, so do its children without incoming edges; the others come after these.
    for (const child of children.get(id) ?? []) reached.add(child.id)
  }
  const unreached = graph.nodes.flatMap((node, at) =>
    reached.has(node.id) || node.disabled
      ? []
      : [{ path: `nodes[${at}]`, message: `no trigger leads to the node "${node.id}"` }],
  )
  return [...unreached, ...checkWebhooks(graph), ...checkChat(graph)]
}

function findRepeats<T>(
  list: PlacedElement<T>[],
  keyOf: (entry: PlacedElement<T>) => string | undefined,
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

function edgeKey({ value }: PlacedElement<GraphEdge>): string {
  return JSON.stringify([value.source, value.sourceHandle, value.target, value.targetHandle ?? null])
}

function hookKey({ value }: PlacedElement<GraphNode>): string | undefined {
  if (value.type !== 'WEBHOOK_TRIGGER' || value.disabled) return undefined
  return JSON.stringify([value.config.path, value.config.method])
}

function checkNode(
  { value: node, path, configPath = path }: PlacedElement<GraphNode>,
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
      problems.push({ path: `${path}.${field}`, message: `cannot be set for a node of type ${node.type}` })
    }
  }
  problems.push(...checkItems(node, path))
  if (node.onError === 'BRANCH' && nodeType(node.type)?.handles(node.config).includes('error')) {
    problems.push({ path: configPath, message: 'must not have a handle "error", since onError is BRANCH' })
  }
  return problems
}

/** Where a node may work on items, and how. */
function checkItems(node: GraphNode, path: string): Problem[] {
  const { perItem, allItems, type } = node
  const kind = nodeType(type)?.kind
  if (!isOnItems(node) && node.itemOptions) {
    const message = 'is only for nodes that work on items: set perItem or allItems too'
    return [{ path: `${path}.itemOptions`, message }]
  }
  if (!isOnItems(node) || kind === undefined) return []
  const problems: Problem[] = []
  const complain = (field: string, message: string) => problems.push({ path: `${path}.${field}`, message })
  const fits = kind === 'pure' || kind === 'effect' || type === 'SUB_WORKFLOW'
  const isAgent = kind === 'agent'
  for (const field of ['perItem', 'allItems'] as const)
    if (node[field] && !fits && !(isAgent && field === 'perItem'))
      complain(field, `cannot be set for a node of type ${type}`)
  if (perItem && allItems) complain('allItems', 'cannot be set together with perItem')
  if (
    fits &&
    kind === 'pure' &&
    !callsPerItem(node) &&
    typeof perItem === 'object' &&
    perItem.concurrency !== undefined
  )
    complain('perItem.concurrency', `cannot be set for a node of type ${type}, which calls nobody`)
  return problems
}

function checkParent(node: GraphNode, byId: Map<string, GraphNode>): string | undefined {
  const parent = byId.get(node.parentId!)
  if (!parent) return `there is no node "${node.parentId}"${suggestNode(node.parentId!, byId)}`
  if (nodeType(parent.type)?.kind !== 'loop') return `a node of type ${parent.type} cannot have children`
  if (nodeType(node.type)?.kind === 'trigger') return 'a trigger cannot be inside a loop'
  const around = new Set<string>()
  for (let id = node.parentId; id !== undefined; id = byId.get(id)?.parentId) {
    if (id === node.id) return 'puts the node inside itself'
    if (around.has(id)) return undefined
    around.add(id)
  }
  return around.size > MAX_LOOP_DEPTH ? `loops are nested more than ${MAX_LOOP_DEPTH} levels deep` : undefined
}

function checkEdge({ value: edge, path }: PlacedElement<GraphEdge>, byId: Map<string, GraphNode>): Problem[] {
  const problems: Problem[] = []
  for (const end of ['source', 'target'] as const) {
    if (!byId.has(edge[end]))
      problems.push({
        path: `${path}.${end}`,
        message: `there is no node "${edge[end]}"${suggestNode(edge[end], byId)}`,
      })
  }
  if (edge.source === edge.target) problems.push({ path, message: 'leads from a node to itself' })
  const source = byId.get(edge.source)
  const target = byId.get(edge.target)
  if (source && target && source.parentId !== target.parentId) {
    const place = (node: GraphNode) =>
      node.parentId === undefined ? 'outside of loops' : `in the loop "${node.parentId}"`
    const found = `leads from a node ${place(source)} to a node ${place(target)}`
    const message = `${found}; both must be in the same loop, or outside of loops`
    problems.push({ path, message })
  }
  const handles = source && listHandles(source)
  if (handles && !handles.includes(edge.sourceHandle)) {
    const names = handles.map((handle) => handle ?? 'null (the main one)').join(', ')
    const given = edge.sourceHandle ?? ''
    const question = suggestHandle(given, handles)
    problems.push({
      path: `${path}.sourceHandle`,
      message: `the node "${source.id}" leaves by ${names}${question}`,
    })
  }
  if (target && nodeType(target.type)?.kind === 'trigger') {
    problems.push({ path: `${path}.target`, message: `no edge may lead to the trigger "${target.id}"` })
  }
  return problems
}

/** The end of a message that asks which node was meant by an id that none has: it may be a name. */
function suggestNode(given: string, byId: Map<string, GraphNode>): string {
  for (const { id, name } of byId.values()) {
    if (name === given) return `; the node "${name}" has the id "${id}"`
  }
  return askForSimilar(given, byId.keys())
}

/** The words of other tools for the main handle, and for the way that IF_ELSE takes otherwise. */
const HANDLE_WORDS: Record<string, (string | null)[]> = {
  main: [null],
  output: [null],
  out: [null],
  source: [null],
  success: [null, 'true', 'approved'],
  done: [null],
  yes: ['true', 'approved'],
  no: ['false', 'rejected'],
  else: ['false', 'default'],
  otherwise: ['default', 'false'],
  fallback: ['default'],
}

function suggestHandle(given: string, handles: (string | null)[]): string {
  const words = Object.hasOwn(HANDLE_WORDS, given.toLowerCase()) ? HANDLE_WORDS[given.toLowerCase()]! : []
  const meant = words.find((word) => handles.includes(word))
  if (meant !== undefined) return `; did you mean ${JSON.stringify(meant)}?`
  return askForSimilar(
    given,
    handles.filter((handle) => handle !== null),
  )
}

/** The handles by which a node may leave, null for the main one; undefined for an unknown type. */
export function listHandles(node: GraphNode): (string | null)[] | undefined {
  const handles = nodeType(node.type)?.handles(node.config)
  return handles && node.onError === 'BRANCH' ? [...handles, 'error'] : handles
}

function targetsOf(edges: GraphEdge[]): Map<string, string[]> {
  const targets = new Map<string, string[]>()
  for (const { source, target } of edges) targets.set(source, [...(targets.get(source) ?? []), target])
  return targets
}

/** One problem for each edge that closes a cycle in a depth-first walk, naming the nodes of the cycle. */
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

function* checkReferences(
  nodes: Nodes,
  byId: Map<string, GraphNode>,
  upstream: Map<string, Set<string>> | undefined,
  { rules, kept }: { rules: Rules; kept: ReadonlySet<GraphNode> },
): Work<Findings> {
  const expressions = nodes.reduce(
    (sum, { value }) => sum + JSON.stringify(value.config).split('{{').length - 1,
    0,
  )
  if (expressions > MAX_EXPRESSIONS) {
    const message = `must have at most ${MAX_EXPRESSIONS} expressions together, not ${expressions}`
    return { problems: [{ path: 'nodes', message }], warnings: [] }
  }
  const problems: Problem[] = []
  const warnings: Problem[] = []
  const meter = { left: MAX_PARSING }
  const all = [...byId.values()]
  const names = findNodeNames({ nodes: all })
  for (const { value: node, path, configPath = path } of nodes) {
    const { conditions, texts, reads } = nodeType(node.type) ?? {}
    const asked = conditions?.(node.config)
    const found = yield* findReferences(
      node.config,
      configPath,
      asked,
      meter,
      rules,
      true,
      texts?.(node.config),
    )
    for (const { path: key, id } of reads?.(node.config) ?? [])
      found.nodes.push({ id, path: `${configPath}.${key}`, place: () => locate(id, 0, id.length) })
    const own = kept.has(node) ? warnings : problems
    own.push(...found.problems)
    warnings.push(...found.warnings)
    for (const { id: written, path, place, isName } of found.nodes) {
      const id = isName && Object.hasOwn(names, written) ? names[written]! : written
      const named = isName ? all.filter(({ name }) => name === written).map((other) => other.id) : []
      if (named.length > 1 || (byId.has(id) && named.some((other) => other !== id))) {
        const ids = [...new Set([...(byId.has(id) ? [id] : []), ...named])].join('", "')
        const message = `names "${written}", which may be several nodes: "${ids}"; write the id of the one that is meant`
        problems.push({ path, message, ...place() })
      } else if (!byId.has(id)) {
        const question = isName ? suggestName(written, all) : suggestReference(id, byId)
        const message = `names the node "${id}", which is not in this graph${question}`
        problems.push({ path, message, ...place() })
      } else if (upstream && !upstream.get(node.id)?.has(id)) {
        const message = `names the node "${id}", which does not come before "${node.id}"`
        problems.push({ path, message, ...place() })
      }
    }
    if (meter.left < 0) break
  }
  return { problems, warnings }
}

/** As suggestNode, where a node may be named by its name. */
function suggestName(given: string, nodes: GraphNode[]): string {
  return askForSimilar(given, new Set(nodes.flatMap(({ id, name }) => [name, id])))
}

/** As suggestNode; an id with a hyphen reads as a subtraction unless it is quoted. */
function suggestReference(given: string, byId: Map<string, GraphNode>): string {
  const whole = [...byId.keys()].filter((id) => id.startsWith(`${given}-`))
  if (whole.length === 1) return `; quote an id that has a hyphen: $nodes.\`${whole[0]}\``
  return suggestNode(given, byId)
}
