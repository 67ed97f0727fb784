import type { PlanEdge, PlanNode } from '../run/plan.ts'
import { isStep, MAX_IN_FLIGHT } from '../run/walk.ts'
import type { Graph } from './graph.ts'

/** An output travels inline up to as many bytes as there is room for, within these. */
const MAX_INLINE = 32_000
const MIN_INLINE = 50

/**
 * Temporal accepts payloads of up to 2 MB. All inline outputs of a run must fit into one (OUTPUTS_BUDGET),
 * and when it continues as new, into one together with the plan and the state (CARRIED_BUDGET).
 */
const OUTPUTS_BUDGET = 1_000_000
const CARRIED_BUDGET = 1_700_000

/**
 * Temporal accepts messages of up to 4 MB. One response of a worker may start many attempts: this is for
 * their inputs.
 */
const MESSAGE_BUDGET = 1_500_000

/**
 * Bytes of a run's state for all iterations under way, without their outputs, and the bytes that a settled
 * node takes.
 */
const FRAMES_BUDGET = 500_000
const SETTLED_BYTES = 150

/** How many bytes an output may have to travel inline, so that a run keeps to Temporal's limits. */
export function findInline(nodes: PlanNode[], edges: PlanEdge[]): number {
  const copies = countCopies(nodes)
  const frames = nodes.reduce((sum, node) => sum + copies(node) * weigh(node), 0)
  const plan = new TextEncoder().encode(JSON.stringify({ nodes, edges })).length
  const left = CARRIED_BUDGET - plan - frames
  const outputs = nodes.reduce((sum, node) => sum + copies(node) * countKept(node, nodes, edges), 0)
  const each = Math.min(OUTPUTS_BUDGET, left) / Math.max(1, outputs)
  const read = MESSAGE_BUDGET / Math.max(1, countInputs(nodes, edges))
  return Math.max(MIN_INLINE, Math.floor(Math.min(MAX_INLINE, each, read)))
}

/** How many outputs are read, at most, by all attempts that may be in flight at once. */
function countInputs(nodes: PlanNode[], edges: PlanEdge[]): number {
  const inputs = new Map(
    nodes
      .filter((node) => !isStep(node))
      .map((node) => [node.id, new Set([...node.needs, ...(node.pairs ?? [])])]),
  )
  for (const { source, target } of edges) inputs.get(target)?.add(source)
  const copies = countCopies(nodes)
  const repeats = new Set(nodes.filter(({ loop }) => loop?.mode === 'repeat').map(({ id }) => id))
  const siblings = Map.groupBy(nodes, ({ parentId }) => parentId)
  // The item of a REPEAT's iteration may be made of one output for each node of the body (of the iteration
  // before), or for each node before the loop.
  const countItem = ({ parentId }: PlanNode): number => {
    if (parentId === undefined || !repeats.has(parentId)) return 0
    const before = edges.filter(({ target }) => target === parentId).length
    return Math.max(siblings.get(parentId)!.length, before)
  }
  const most = nodes
    .filter((node) => inputs.has(node.id))
    .flatMap((node) => new Array<number>(copies(node)).fill(inputs.get(node.id)!.size + countItem(node)))
    .sort((a, b) => b - a)
  return most.slice(0, MAX_IN_FLIGHT).reduce((sum, count) => sum + count, 0)
}

/** How many copies of a node's output the state keeps: two more for each REPEAT that hands it on. */
function countKept({ id, parentId }: PlanNode, nodes: PlanNode[], edges: PlanEdge[]): number {
  const repeats = nodes.filter(({ loop }) => loop?.mode === 'repeat')
  if (repeats.length === 0) return 1
  const feeds = new Set(edges.filter(({ source }) => source === id).map(({ target }) => target))
  return 1 + 2 * repeats.filter((repeat) => repeat.id === parentId || feeds.has(repeat.id)).length
}

/** How many iterations may be under way at once around a node, each with an output of that node. */
function countCopies(nodes: PlanNode[]): (node: PlanNode) => number {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const count = (node: PlanNode): number => {
    const loop = node.parentId === undefined ? undefined : byId.get(node.parentId)
    if (!loop) return 1
    return Math.min(MAX_IN_FLIGHT, count(loop) * (loop.loop?.pure ? 1 : (loop.loop?.concurrency ?? 1)))
  }
  return count
}

/** How many bytes a settled node takes in a run's state, without its output. */
function weigh({ id }: { id: string }): number {
  return SETTLED_BYTES + 2 * id.length
}

/** How many iterations of a loop may be under way at once before their nodes fill FRAMES_BUDGET. */
export function createRoom(graph: Graph): (loopId: string) => number {
  const children = Map.groupBy(graph.nodes, ({ parentId }) => parentId)
  const weighBody = (loopId: string): number =>
    (children.get(loopId) ?? []).reduce((sum, child) => sum + weigh(child) + weighBody(child.id), 0)
  return (loopId) => Math.max(1, Math.floor(FRAMES_BUDGET / Math.max(1, weighBody(loopId))))
}

/** How many iterations of one node may be under way at once before they fill FRAMES_BUDGET. */
export function countRoom(node: { id: string }): number {
  return Math.floor(FRAMES_BUDGET / weigh(node))
}
