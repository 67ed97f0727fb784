import { isDeepStrictEqual } from 'node:util'
import type { Graph, GraphNode } from '../workflows/graph.ts'
import { nodeType } from '../workflows/nodes.ts'

/** What is known of a run: the status of each node that ran outside of loops, and the nodes that failed inside. */
export type Past = { statuses: Map<string, string>; failedInside: Set<string> }

/**
 * The nodes whose outputs another run may take over: they succeeded, and their type, config and all nodes upstream
 * are the same in both graphs and none of those is to run anew. A loop is taken as a whole, unless an iteration of
 * it, or of a loop in it, failed.
 */
export function findTaken(before: Graph, after: Graph, past: Past): string[] {
  const [old, young] = [indexGraph(before), indexGraph(after)]
  const spoilt = new Set<string>()
  for (const id of past.failedInside) {
    for (let loop = old.byId.get(id)?.parentId; loop !== undefined; loop = old.byId.get(loop)?.parentId) {
      spoilt.add(loop)
    }
  }
  const isSame = (id: string): boolean => isDeepStrictEqual(describe(old, id), describe(young, id))
  const known = new Map<string, boolean>()
  /** Whether the node, and all before it, came to what they would come to again. */
  const holds = (id: string): boolean => {
    let held = known.get(id)
    if (held === undefined) {
      const status = past.statuses.get(id)
      held =
        (status === undefined || status === 'SUCCESS') &&
        !spoilt.has(id) &&
        isSame(id) &&
        (old.sources.get(id) ?? []).every(([source]) => holds(source))
      known.set(id, held)
    }
    return held
  }
  return before.nodes
    .filter((node) => node.parentId === undefined && nodeType(node.type)?.kind !== 'trigger')
    .map(({ id }) => id)
    .filter((id) => past.statuses.get(id) === 'SUCCESS' && holds(id))
}

type Index = {
  byId: Map<string, GraphNode>
  children: Map<string, string[]>
  /** The in-edges of each node in the author's order, by which inputs are merged. */
  sources: Map<string, [source: string, handle: string | null][]>
}

function indexGraph({ nodes, edges }: Graph): Index {
  const index: Index = { byId: new Map(), children: new Map(), sources: new Map() }
  for (const node of nodes) {
    index.byId.set(node.id, node)
    const { parentId } = node
    if (parentId !== undefined) {
      index.children.set(parentId, [...(index.children.get(parentId) ?? []), node.id].sort())
    }
  }
  for (const { source, sourceHandle, target } of edges) {
    index.sources.set(target, [...(index.sources.get(target) ?? []), [source, sourceHandle]])
  }
  return index
}

/** All of a node that its output depends on, but for those before it; of a loop its body too. */
function describe(index: Index, id: string): unknown {
  const node = index.byId.get(id)
  if (!node) return undefined
  const { type, config, disabled = false, parentId } = node
  const body = index.children.get(id)?.map((child) => [child, describe(index, child)])
  return { type, config, disabled, parentId, sources: index.sources.get(id), body }
}
