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

/** What expressions mean in a graph. */
export function languageOf({ expressions = 1, strict = false }: Graph): Language {
  return { rules: expressions, strict }
}

export const MAX_NODES = 500
export const MAX_EDGES = 2_000
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
