import { isDeepStrictEqual } from 'node:util'
import { type Graph, type GraphNode, isOnItems, languageOf } from '../../../workflows/graph/graph.ts'
import { nodeType } from '../../../workflows/nodes/nodes.ts'
import { graphNodeId } from '../../../workflows/run/plan.ts'

/** The statuses of the nodes that have a record outside of loops, and the nodes that failed inside loops. */
export type EarlierExecution = { statuses: Map<string, string>; failedInside: Set<string> }

/**
 * What another execution may take over of the nodes outside of loops, by their ids. `outputs`: they succeeded, their
 * type, config and all nodes upstream are the same in both graphs, and no node upstream is executed again. Where
 * expressions mean something else, only nodes without any are the same. A loop is taken over as a whole, unless one of
 * its iterations failed, or one of a loop inside it. `agents`: those that stopped, and may go on where they did; the
 * same holds for them.
 */
export function findReusable(
  before: Graph,
  after: Graph,
  past: EarlierExecution,
): { outputs: string[]; agents: string[] } {
  const old = indexGraph(before)
  const current = indexGraph(after)
  const failedLoops = new Set<string>()
  for (const id of past.failedInside) {
    // A node whose calls for its items are like a loop of its own.
    if (graphNodeId(id) !== id) failedLoops.add(graphNodeId(id))
    for (
      let loop = old.byId.get(graphNodeId(id))?.parentId;
      loop !== undefined;
      loop = old.byId.get(loop)?.parentId
    ) {
      failedLoops.add(loop)
    }
  }
  const isSameLanguage = isDeepStrictEqual(languageOf(before), languageOf(after))
  const isSame = (id: string): boolean =>
    isDeepStrictEqual(describe(old, id), describe(current, id)) && (isSameLanguage || !mayCompute(old, id))
  const known = new Map<string, boolean>()
  /** Whether the node and all nodes before it would give the same outputs again. */
  const holds = (id: string): boolean => {
    let held = known.get(id)
    if (held === undefined) {
      const status = past.statuses.get(id)
      held =
        (status === undefined || status === 'SUCCESS') &&
        !failedLoops.has(id) &&
        isSame(id) &&
        (old.sources.get(id) ?? []).every(([source]) => holds(source))
      known.set(id, held)
    }
    return held
  }
  const outside = before.nodes.filter((node) => node.parentId === undefined)
  const isAgent = (node: GraphNode) =>
    nodeType(node.type)?.kind === 'agent' && !isOnItems(node) && !node.disabled
  const mayGoOn = (id: string) =>
    past.statuses.get(id) !== 'SUCCESS' &&
    isSame(id) &&
    (old.sources.get(id) ?? []).every(([source]) => holds(source))
  return {
    outputs: outside
      .filter((node) => nodeType(node.type)?.kind !== 'trigger')
      .map(({ id }) => id)
      .filter((id) => past.statuses.get(id) === 'SUCCESS' && holds(id)),
    agents: outside
      .filter(isAgent)
      .map(({ id }) => id)
      .filter(mayGoOn),
  }
}

type Index = {
  byId: Map<string, GraphNode>
  children: Map<string, string[]>
  /** The edges into each node, in the author's order: inputs are merged in this order. */
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

/** All that a node's output depends on, except the nodes before it; for a loop, also its body. */
function describe(index: Index, id: string): unknown {
  const node = index.byId.get(id)
  if (!node) return undefined
  const { type, config, disabled = false, parentId, perItem = false, allItems = false, onError } = node
  // A node that works on items may succeed with some that have failed.
  const items = isOnItems(node) ? { perItem: Boolean(perItem), allItems, onError } : undefined
  const body = index.children.get(id)?.map((child) => [child, describe(index, child)])
  return { type, config, disabled, parentId, items, sources: index.sources.get(id), body }
}

/** Whether a node, or one of a loop's body, may have expressions in its config. */
function mayCompute(index: Index, id: string): boolean {
  const { type, config } = index.byId.get(id)!
  const conditions = nodeType(type)?.conditions?.(config) ?? []
  if (conditions.length > 0 || /\{\{|"=/.test(JSON.stringify(config))) return true
  return index.children.get(id)?.some((child) => mayCompute(index, child)) ?? false
}
