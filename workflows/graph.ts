import { checkStructure } from './check.ts'
import { readEdge, readNode } from './elements.ts'
import { nodeType } from './nodes.ts'

/** One thing wrong with an input: where (`nodes[2].config.url`) and what. */
export type Problem = { path: string; message: string }

export type OnError = 'FAIL' | 'CONTINUE' | 'BRANCH'

/** Temporal's retry policy for one node; `maxAttempts` counts the first attempt too. */
export type Retry = {
  maxAttempts?: number
  initialIntervalMs?: number
  backoffCoefficient?: number
  maxIntervalMs?: number
}

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

/** `sourceHandle` null is the main output. */
export type GraphEdge = {
  id?: string
  source: string
  target: string
  sourceHandle: string | null
  targetHandle?: string | null
}

/** A graph in its stored form: defaults filled in, nothing unknown kept, order as the author gave it. */
export type Graph = { nodes: GraphNode[]; edges: GraphEdge[] }

export const MAX_NODES = 500
export const MAX_EDGES = 2_000
export const MAX_GRAPH_BYTES = 1_000_000

/**
 * Brings a graph from outside into its stored form and names everything that is wrong with it. `data` counts
 * where `config` is missing; `makeId` gives ids to nodes that have none. Good only without problems.
 */
export function readGraph(
  input: { nodes?: unknown; edges?: unknown },
  makeId: () => string,
): { graph: Graph; problems: Problem[] } {
  const problems: Problem[] = []
  const rawNodes = readList(input.nodes, 'nodes', MAX_NODES, problems)
  const rawEdges = readList(input.edges, 'edges', MAX_EDGES, problems)
  // A list that is none, or too long, says nothing of how the other one fits to it.
  const whole = problems.length === 0
  const nodes = rawNodes.flatMap((raw, at) => readNode(raw, `nodes[${at}]`, makeId, problems))
  const edges = rawEdges.flatMap((raw, at) => readEdge(raw, `edges[${at}]`, problems))
  if (whole) problems.push(...checkStructure(nodes, edges))

  const graph = { nodes: nodes.map(({ value }) => value), edges: edges.map(({ value }) => value) }
  const bytes = new TextEncoder().encode(JSON.stringify(graph)).length
  if (bytes > MAX_GRAPH_BYTES) {
    problems.push({
      path: 'nodes',
      message: `has ${bytes} bytes with the edges; at most ${MAX_GRAPH_BYTES} are allowed`,
    })
  }
  return { graph, problems }
}

function readList(input: unknown, path: string, max: number, problems: Problem[]): unknown[] {
  if (input === undefined || input === null) return []
  if (!Array.isArray(input)) problems.push({ path, message: 'must be an array' })
  else if (input.length <= max) return input
  else problems.push({ path, message: `has ${input.length} entries; at most ${max} are allowed` })
  return []
}

/** Where a run by hand or over the API starts: at MANUAL_TRIGGER, else at the first trigger; not at a disabled one. */
export function findStart(graph: Graph): GraphNode | undefined {
  const triggers = graph.nodes.filter((node) => !node.disabled && nodeType(node.type)?.kind === 'trigger')
  return triggers.find((node) => node.type === 'MANUAL_TRIGGER') ?? triggers[0]
}

/** Where a run begins that another run's node starts: at SUB_WORKFLOW_TRIGGER, else at MANUAL_TRIGGER. */
export function findSubTrigger(graph: Graph): GraphNode | undefined {
  const find = (type: string) => graph.nodes.find((node) => node.type === type && !node.disabled)
  return find('SUB_WORKFLOW_TRIGGER') ?? find('MANUAL_TRIGGER')
}

/** Where a run begins that tells of a failed one; undefined where the graph is for no such runs. */
export function findErrorTrigger(graph: Graph): GraphNode | undefined {
  return graph.nodes.find((node) => node.type === 'ERROR_TRIGGER' && !node.disabled)
}
