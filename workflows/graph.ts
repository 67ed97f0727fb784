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
