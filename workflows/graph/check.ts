import type { Rules } from '../expressions/rules.ts'
import { nodeType } from '../nodes/nodes.ts'
import type { Problem } from '../problem.ts'
import { joinPath } from '../problem.ts'
import { askForSimilar } from '../suggest.ts'
import type { Work } from '../turns.ts'
import type { PlacedElement } from './elements.ts'
import {
  callsPerItem,
  type Graph,
  type GraphEdge,
  type GraphNode,
  isOnItems,
  MAX_LOOP_DEPTH,
} from './graph.ts'
import { findCycles, findUpstream } from './order.ts'
import { checkExpressions, type Findings, suggestNode } from './references.ts'
import { checkChat } from './triggers/chat.ts'
import { checkWebhooks } from './triggers/webhooks.ts'

/** The units of work that it takes for each element to check how they fit together. */
const ELEMENT_WORK = 7

type Nodes = PlacedElement<GraphNode>[]
type Edges = PlacedElement<GraphEdge>[]

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
    ...findRepeats(nodes, toolKey, 'config.name', 'the name'),
    ...nodes.flatMap((node) => checkNode(node, byId)),
    ...edges.flatMap((edge) => checkEdge(edge, byId)),
    ...cycles,
  ]
  yield units
  const upstream = cycles.length > 0 ? undefined : findUpstream(byId, sound)
  const texts = yield* checkExpressions(nodes, byId, upstream, { rules, kept })
  return { problems: [...problems, ...texts.problems], warnings: texts.warnings }
}

/** The problems of a valid graph that keep its workflow from being activated. */
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
  if (value.disabled) return undefined
  if (value.type === 'FORM_TRIGGER') return JSON.stringify(['form', value.config.path])
  if (value.type !== 'WEBHOOK_TRIGGER') return undefined
  return JSON.stringify([value.config.path, value.config.method])
}

function toolKey({ value }: PlacedElement<GraphNode>): string | undefined {
  return value.type === 'MCP_TRIGGER' && !value.disabled ? JSON.stringify(value.config.name) : undefined
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

/** What other tools call the main handle, and the way that IF_ELSE takes otherwise. */
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
