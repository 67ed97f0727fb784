import type { GraphEdge } from '../../graph/graph.ts'
import type { SourceLink, SourceNode } from '../document.ts'
import type { ItemAnalysis } from '../items/analysis.ts'
import type { LoopBlock } from '../items/loops.ts'
import type { NodeMapper } from '../mapper.ts'
import type { BuiltNode, ImportedNode } from '../parts.ts'
import type { ProblemReporter } from '../report.ts'

type Input = {
  analysis: ItemAnalysis
  /** By the name of the n8n node. */
  built: ReadonlyMap<string, BuiltNode>
  ids: ReadonlyMap<string, string>
  mapperOf: (node: SourceNode) => NodeMapper
  reporterOf: (name: string) => ProblemReporter
}

/** The edges that are drawn so far, and the nodes that they needed. */
export type EdgeDrawing = Input & {
  nodes: Map<string, ImportedNode>
  edges: Map<string, GraphEdge>
}

/** Where an edge begins. */
export type EdgeStart = { id: string; handle: string | null }

export function createEdgeDrawing(input: Input): EdgeDrawing {
  return { ...input, nodes: new Map(), edges: new Map() }
}

/** Adding the same edge or node a second time changes nothing. */
export function addEdge({ edges }: EdgeDrawing, from: EdgeStart, target: string): void {
  const edge = { source: from.id, sourceHandle: from.handle, target }
  edges.set(JSON.stringify(edge), edge)
}

/** Adds a node that n8n did not need, placed next to the node `near`. Returns its id. */
export function addHelperNode(
  { nodes }: EdgeDrawing,
  near: SourceNode,
  loop: LoopBlock | undefined,
  node: { id: string; type: string; config: Record<string, unknown> },
): string {
  const { position } = near
  nodes.set(node.id, {
    ...node,
    ...(position ? { position: { x: position.x + 80, y: position.y + 120 } } : {}),
    ...(loop ? { parentId: loop.id } : {}),
  })
  return node.id
}

export function findSourceNode({ built }: EdgeDrawing, name: string): SourceNode {
  return built.get(name)!.source
}

export function hasErrorOutput({ source }: BuiltNode): boolean {
  return source.raw.onError === 'continueErrorOutput'
}

/** The handle of our node for an output of the n8n node. Undefined if it has none for this output. */
export function findOutputHandle(
  { built }: EdgeDrawing,
  { from, output }: SourceLink,
): EdgeStart | undefined {
  const node = built.get(from)
  // A Merge node may read the results of a loop that has another Merge node in it, which is built later.
  if (!node) throw new Error('it reads the results of a loop that end at another Merge node')
  const handle = node.handles[output]
  if (handle !== undefined && handle !== '') return { id: node.exit, handle }
  if (hasErrorOutput(node) && output === node.handles.length) return { id: node.id, handle: 'error' }
  return undefined
}
