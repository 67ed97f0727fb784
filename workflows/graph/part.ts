import type { Plan } from '../run/plan.ts'
import type { Graph } from './graph.ts'

/** No id of a node has a colon. A release that does not know such a part finds no node of it, and executes nothing. */
const UNTIL = 'until:'

/** The part of a graph that an execution consists of: one node alone, a node and what leads to it, or all of it. */
type Part = { onlyNode: string | null; until: string | null }

/** How it is stored that an execution consists of a node and what leads to it. */
export function writeUntil(nodeId: string): string {
  return UNTIL + nodeId
}

/** The part that is stored; a node alone is stored as its id. */
export function readPart(stored: string | null): Part {
  if (stored?.startsWith(UNTIL)) return { onlyNode: null, until: stored.slice(UNTIL.length) }
  return { onlyNode: stored, until: null }
}

type Drawn = {
  nodes: { id: string; parentId?: string | undefined }[]
  edges: { source: string; target: string }[]
}

/** The ids of a node outside of loops and of all that leads to it, with the bodies of loops among them. */
export function findLeading({ nodes, edges }: Drawn, nodeId: string): Set<string> {
  const inward = Map.groupBy(edges, ({ target }) => target)
  const inside = Map.groupBy(nodes, ({ parentId }) => parentId)
  const found = new Set<string>([nodeId])
  for (const id of found) {
    for (const { source } of inward.get(id) ?? []) found.add(source)
    for (const child of inside.get(id) ?? []) found.add(child.id)
  }
  return found
}

/** The plan without what does not lead to the node. It is not skipped when the plan is run: it is not there. */
export function prunePlan(plan: Plan, until: string): Plan {
  const kept = findLeading(plan, until)
  return {
    ...plan,
    nodes: plan.nodes.filter(({ id }) => kept.has(id)),
    edges: plan.edges.filter(({ source, target }) => kept.has(source) && kept.has(target)),
  }
}

/** Why an execution that starts at the trigger cannot end with the node; undefined if it can. */
export function findUntilProblem(graph: Graph, triggerId: string, until: string): string | undefined {
  const node = graph.nodes.find(({ id }) => id === until)
  if (!node) return 'there is no such node'
  if (node.disabled) return 'is disabled, so that it is not executed'
  if (node.parentId !== undefined)
    return `is in the body of the loop "${node.parentId}": name the loop instead`
  if (!findLeading(graph, until).has(triggerId)) return `the trigger "${triggerId}" does not lead to it`
  return undefined
}
