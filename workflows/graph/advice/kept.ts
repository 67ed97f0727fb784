import { isObject } from '../../json.ts'
import type { PlacedElement } from '../elements.ts'
import type { Graph, GraphEdge, GraphNode } from '../graph.ts'

/** The keys that do not change the work of an element: an editor moves and renames nodes. */
const APPEARANCE = ['position', 'name']

/**
 * Finds the elements of a graph that are the same as in the stored one, `known`. They are never refused for what is
 * wrong with them alone, since the rules may have changed after they were saved.
 */
export function createKeeper(known: Graph | undefined) {
  const nodes = new Map(known?.nodes.map((node) => [node.id, node]))
  const edges = new Map(known?.edges.map((edge) => [describe(edge), edge]))
  return {
    /** The stored node that is the same as this one, given as it was sent and as it was read. */
    findNode(raw: unknown, read: PlacedElement<GraphNode> | undefined): GraphNode | undefined {
      const stored = read && nodes.get(read.value.id)
      if (!stored) return undefined
      const wanted = describe(stored)
      return describe(read.value) === wanted || describe(raw) === wanted ? stored : undefined
    },
    /** The stored edge that is the same as one that was sent. */
    findEdge(raw: unknown): GraphEdge | undefined {
      return edges.size > 0 ? edges.get(describe(raw)) : undefined
    },
  }
}

/** The element as text, without what does not matter: the order of keys, those that are null, its appearance. */
function describe(element: unknown): string {
  const { ...rest } = Object(element)
  for (const key of APPEARANCE) delete rest[key]
  const plain = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null))
  return JSON.stringify(plain, (_, value) =>
    isObject(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value,
  )
}
