import type { Workflow } from '../workflows/data.ts'

type Node = Workflow['nodes'][number]
type Edge = Workflow['edges'][number]

/** A node of a draft: the API fills in what is missing. The type may be one that the console does not know. */
export type GraphNode = Pick<Node, 'id' | 'type'> &
  Partial<Omit<Node, 'id' | 'type' | 'config'>> & { config: Record<string, unknown> }

export type GraphEdge = Omit<Edge, 'sourceHandle'> & Partial<Pick<Edge, 'sourceHandle'>>

export type NodeEdit = (now: GraphNode) => GraphNode

export type NodePanelProps = {
  teamId: string
  workflowId: string | undefined // undefined: not saved yet
  node: GraphNode
  graph: { nodes: GraphNode[]; edges: GraphEdge[] }
  faults: { path: string; message: string; warning?: true }[] // of this node, path relative to it, e.g. config.url
  readOnly: boolean
  /** An edit is made of the node as it is by then, which may be newer than the one that was drawn last. */
  onEdit(edit: NodeEdit): void
  onRename(id: string): void
  onClose(): void
  /** Executes what leads to the node, and the node; missing where that cannot be. */
  onExecuteTo?(): void
}

export type NodeFault = NodePanelProps['faults'][number]
