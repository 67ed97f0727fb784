import type { Language, Rules } from '../expressions/rules.ts'
import { nodeType } from '../nodes/nodes.ts'
import type { OnError, Retry } from '../run/plan.ts'

export type GraphNode = {
  id: string
  type: string
  name: string
  config: Record<string, unknown>
  position?: { x: number; y: number }
  parentId?: string
  retry?: Retry
  timeoutMs?: number
  onError: OnError
  disabled?: boolean
  /** It works on each of the items that come to it; `concurrency` is how many calls it makes at once. */
  perItem?: boolean | { concurrency?: number }
  /** It works once on all of the items that come to it, if there are any. */
  allItems?: boolean
  itemOptions?: ItemOptions
}

/**
 * How a node works on items. `firstOnly`: on the first one only. `alwaysOne`: if nothing would leave by its first
 * handle, an empty item does. `errors`: a failed item goes on as {error: message}, or `pass`: as it came.
 */
type ItemOptions = { firstOnly?: boolean; alwaysOne?: boolean; errors?: 'text' | 'pass' }

/** Whether a node works on items: it is given those that come to it, and outputs {items, from}. */
export function isOnItems({ perItem, allItems }: Pick<GraphNode, 'perItem' | 'allItems'>): boolean {
  return Boolean(perItem) || Boolean(allItems)
}

/** Whether a node calls others once for each item: each call is an attempt with a record of its own. */
export function callsPerItem({
  type,
  perItem,
  disabled,
  config,
}: Pick<GraphNode, 'type' | 'perItem' | 'disabled' | 'config'>): boolean {
  const row = nodeType(type)
  const calls =
    row?.kind === 'effect' ||
    row?.kind === 'agent' ||
    type === 'SUB_WORKFLOW' ||
    row?.calls?.(config) ||
    row?.stores?.(config)
  return Boolean(perItem) && !disabled && Boolean(calls)
}

/** `sourceHandle` is null for the main handle. */
export type GraphEdge = {
  id?: string
  source: string
  target: string
  sourceHandle: string | null
  targetHandle?: string | null
}

/**
 * A graph in its stored form: with defaults, without unknown keys, and in the author's order. `expressions` are the
 * rules that its texts are read under (1 if missing), `strict` is the setting that is kept with the version.
 */
export type Graph = { nodes: GraphNode[]; edges: GraphEdge[]; expressions?: Rules; strict?: boolean }

/** The meaning of expressions in a graph. */
export function languageOf({ expressions = 1, strict = false }: Graph): Language {
  return { rules: expressions, strict }
}

const named = new WeakMap<GraphNode[], Record<string, string>>()

/** The ids of a graph's nodes by their names, without names that several nodes have or that are another's id. */
export function findNodeNames({ nodes }: Pick<Graph, 'nodes'>): Record<string, string> {
  const known = named.get(nodes)
  if (known) return known
  const ids = new Set(nodes.map(({ id }) => id))
  const unique = Map.groupBy(nodes, ({ name }) => name)
  const names: Record<string, string> = Object.create(null)
  for (const [name, [only, ...more]] of unique)
    if (more.length === 0 && (!ids.has(name) || only!.id === name)) names[name] = only!.id
  named.set(nodes, names)
  return names
}

export const MAX_NODES = 500
export const MAX_EDGES = 2_000

/** How many loops a node may be in, one inside the other. */
export const MAX_LOOP_DEPTH = 5
export const MAX_GRAPH_BYTES = 1_000_000

/**
 * Where an execution starts by hand or over the API: MANUAL_TRIGGER, else the first trigger. Disabled ones
 * are skipped.
 */
export function findStart(graph: Graph): GraphNode | undefined {
  const triggers = graph.nodes.filter((node) => !node.disabled && nodeType(node.type)?.kind === 'trigger')
  return triggers.find((node) => node.type === 'MANUAL_TRIGGER') ?? triggers[0]
}

/**
 * Where an execution starts that a SUB_WORKFLOW node asked for: SUB_WORKFLOW_TRIGGER, else MANUAL_TRIGGER.
 */
export function findSubTrigger(graph: Graph): GraphNode | undefined {
  const find = (type: string) => graph.nodes.find((node) => node.type === type && !node.disabled)
  return find('SUB_WORKFLOW_TRIGGER') ?? find('MANUAL_TRIGGER')
}

/**
 * Where an execution starts that handles the failure of another one; undefined if the graph has no
 * ERROR_TRIGGER.
 */
export function findErrorTrigger(graph: Graph): GraphNode | undefined {
  return graph.nodes.find((node) => node.type === 'ERROR_TRIGGER' && !node.disabled)
}
