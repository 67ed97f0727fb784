export type Retry = {
  maxAttempts?: number
  initialIntervalMs?: number
  backoffCoefficient?: number
  maxIntervalMs?: number
}

export type GraphNode = {
  id: string
  type: string
  name?: string
  config: Record<string, unknown>
  position?: { x: number; y: number }
  retry?: Retry
  timeoutMs?: number
  onError?: 'FAIL' | 'CONTINUE' | 'BRANCH'
  disabled?: boolean
  perItem?: boolean | { concurrency?: number }
  allItems?: boolean
  itemOptions?: Record<string, unknown>
  parentId?: string
}

export type GraphEdge = {
  id?: string
  source: string
  target: string
  sourceHandle?: string | null
  targetHandle?: string | null
}

export type NodeEdit = (now: GraphNode) => GraphNode

export type NodePanelProps = {
  teamId: string
  workflowId: string | undefined // undefined: not saved yet
  node: GraphNode // {id, type, name?, config, retry?, timeoutMs?, onError?, disabled?, parentId?}
  graph: { nodes: GraphNode[]; edges: GraphEdge[] }
  faults: { path: string; message: string; warning?: true }[] // of this node, path relative to it, e.g. config.url
  readOnly: boolean
  /** An edit is made of the node as it is by then, which may be newer than the one that was drawn last. */
  onEdit(edit: NodeEdit): void
  onRename(id: string): void
  onClose(): void
}

export type NodeFault = NodePanelProps['faults'][number]
