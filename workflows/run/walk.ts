import { type LoopNode, type Plan, type PlanEdge, type PlanNode, splitHandles } from './plan.ts'
import type { NodeError } from './records.ts'

/**
 * How a node was settled: it left by a handle (null is the main one) or by several at once (see joinHandles), or
 * it was skipped.
 */
type Outcome = { handle: string | null } | { skipped: true }

/** The outcome of every node that is settled, by node id. */
export type Outcomes = Record<string, Outcome>

/** The most attempts of one run that may be under way at once. */
export const MAX_IN_FLIGHT = 64

/** The signal that makes a run look at a pause. Its argument is the stepKey of the node. */
export const NUDGE = 'nudge'

/** A REPEAT leaves by this handle after maxIterations. If no edge does, its main edges are taken. */
export const EXHAUSTED = 'exhausted'

const skipped: Outcome = { skipped: true }

/** An outcomes object without a prototype: node ids are keys. */
export function emptyOutcomes(from: Outcomes = {}): Outcomes {
  return Object.assign(Object.create(null), from)
}

type Index = {
  byId: Map<string, PlanNode>
  inward: Map<string, PlanEdge[]>
  /** The ids of the nodes with an edge that leaves by EXHAUSTED. */
  exhausted: Set<string>
  /** The nodes of the root ('') and of each loop's body, in the plan's order. */
  scopes: Map<string, PlanNode[]>
}

const indexes = new WeakMap<Plan, Index>()

function indexOf(plan: Plan): Index {
  let index = indexes.get(plan)
  if (!index) {
    index = { byId: new Map(), inward: new Map(), exhausted: new Set(), scopes: new Map() }
    for (const node of plan.nodes) {
      index.byId.set(node.id, node)
      push(index.scopes, node.parentId ?? '', node)
    }
    for (const edge of plan.edges) {
      push(index.inward, edge.target, edge)
      if (edge.handle === EXHAUSTED) index.exhausted.add(edge.source)
    }
    indexes.set(plan, index)
  }
  return index
}

function push<T>(lists: Map<string, T[]>, key: string, item: T): void {
  const list = lists.get(key)
  if (list) list.push(item)
  else lists.set(key, [item])
}

export function findNode(plan: Plan, id: string): PlanNode | undefined {
  return indexOf(plan).byId.get(id)
}

/** The loop with this id. The caller knows that the node is a loop. */
export function findLoop(plan: Plan, id: string): LoopNode {
  return findNode(plan, id) as LoopNode
}

/** The nodes of a loop's body, or of the root for ''. */
export function nodesIn(plan: Plan, loopId: string): PlanNode[] {
  return indexOf(plan).scopes.get(loopId) ?? []
}

/** The loops around a node, the outermost first. */
export function loopsAround(plan: Plan, node: PlanNode): LoopNode[] {
  const loops: LoopNode[] = []
  for (let id = node.parentId; id !== undefined; id = loops[0]!.parentId) loops.unshift(findLoop(plan, id))
  return loops
}

/**
 * The nodes of the root ('') or of a loop's body that may start now: not settled, not in `started`, with all in-edges
 * settled and at least one taken. In a body, nodes without in-edges may start too. Nodes that have become unreachable
 * are settled as skipped in `outcomes`. One pass is enough, since the plan's nodes are in topological order.
 */
export function findReady(
  plan: Plan,
  outcomes: Outcomes,
  started: { has(nodeId: string): boolean },
  loopId = '',
): PlanNode[] {
  const { inward } = indexOf(plan)
  const ready: PlanNode[] = []
  for (const node of nodesIn(plan, loopId)) {
    if (outcomes[node.id] || started.has(node.id)) continue
    const edges = inward.get(node.id)
    if (loopId === '' ? node.id === plan.triggerNodeId : !edges) {
      ready.push(node)
      continue
    }
    const states = (edges ?? []).map((edge) => edgeState(plan, edge, outcomes))
    if (states.includes('open')) continue
    if (states.includes('taken')) ready.push(node)
    else outcomes[node.id] = skipped
  }
  return ready
}

function edgeState(plan: Plan, edge: PlanEdge, outcomes: Outcomes): 'open' | 'taken' | 'dead' {
  const outcome = outcomes[edge.source]
  if (!outcome) return 'open'
  if ('skipped' in outcome) return 'dead'
  const several = splitHandles(outcome.handle)
  if (several) return several.includes(edge.handle) ? 'taken' : 'dead'
  const falls = outcome.handle === EXHAUSTED && !indexOf(plan).exhausted.has(edge.source)
  return edge.handle === (falls ? null : outcome.handle) ? 'taken' : 'dead'
}

/** A taken in-edge. `part`: its source left by several handles, and what left by this one comes along it. */
export type TakenEdge = { source: string; part?: string | null }

/** The sources of a node's `$input`: its taken in-edges in edge order, but only one of those that bring the same. */
export function takenInto(plan: Plan, nodeId: string, outcomes: Outcomes): TakenEdge[] {
  const taken: TakenEdge[] = []
  for (const edge of indexOf(plan).inward.get(nodeId) ?? []) {
    if (edgeState(plan, edge, outcomes) !== 'taken') continue
    const { source } = edge
    const { handle } = outcomes[source] as Extract<Outcome, { handle: unknown }>
    const one: TakenEdge = splitHandles(handle) ? { source, part: edge.handle } : { source }
    if (!taken.some((other) => other.source === source && other.part === one.part)) taken.push(one)
  }
  return taken
}

/** The nodes whose outputs make a node's `$input`: sources of taken in-edges, once each, in edge order. */
export function sourcesOf(plan: Plan, nodeId: string, outcomes: Outcomes): string[] {
  return [...new Set(takenInto(plan, nodeId, outcomes).map(({ source }) => source))]
}

/** Whether a body's node gets the iteration's item for its `$input`: nothing in the body comes before it. */
export function isEntry(plan: Plan, node: PlanNode): boolean {
  return node.parentId !== undefined && !indexOf(plan).inward.has(node.id)
}

/** The nodes of the root or a body that ran and have no taken edge out: their outputs are its result. */
export function endsOf(plan: Plan, outcomes: Outcomes, loopId = ''): string[] {
  const nodes = nodesIn(plan, loopId)
  const left = new Set<string>()
  for (const { id } of nodes) for (const source of sourcesOf(plan, id, outcomes)) left.add(source)
  return nodes
    .filter((node) => {
      const outcome = outcomes[node.id]
      return outcome && 'handle' in outcome && !left.has(node.id)
    })
    .map((node) => node.id)
}

/**
 * How a node's failure leaves it: handled by onError (the error is its output then), or fatal to its scope.
 */
export function settleFailure(
  node: PlanNode,
  error: NodeError,
): { handle: string | null; output: unknown } | 'fatal' {
  const output = { error: { message: error.message, type: error.type, nodeId: node.id } }
  if (node.onError === 'CONTINUE') return { handle: null, output }
  if (node.onError === 'BRANCH') return { handle: 'error', output }
  return 'fatal'
}

/** Whether the node runs as a step of a segment. */
export function isStep(node: PlanNode): boolean {
  return node.kind !== 'effect' && node.kind !== 'agent' && !node.alone
}

/** The key of a node in an iteration: for what is under way, for signals, and as the summary of a timer. */
export function stepKey(nodeId: string, iteration: string): string {
  return `${nodeId}#${iteration}`
}

/** The iteration of an agent's step, as it is in keys: that of the node, and behind it the step's number. */
export function joinStep(iteration: string, step: number | null | undefined): string {
  return step == null ? iteration : `${iteration}!${step}`
}

/** The iteration and the step's number that joinStep has joined; the number is null without one. */
export function splitStep(path: string): { iteration: string; step: number | null } {
  const [iteration = '', step] = path.split('!')
  return { iteration, step: step === undefined ? null : Number(step) }
}

/** The parts of an activity's id: the node, its iteration ('' outside of loops), and the step of an agent. */
export function readActivityId(id: string): { nodeId: string; iteration: string; step: number | null } {
  const { iteration: place, step } = splitStep(id)
  const [nodeId = '', iteration = ''] = place.split('#')
  return { nodeId, iteration, step }
}

/** Whether a key of `busy` is of a step in a loop's body, in iteration `path` ('' for any) or within it. */
export function isWithin(plan: Plan, key: string, loopId: string, path: string): boolean {
  const [nodeId = '', iteration = ''] = key.split('#')
  const node = findNode(plan, nodeId)
  if (!node || !loopsAround(plan, node).some(({ id }) => id === loopId)) return false
  const at = iteration.split('!')[0]!
  return path === '' || at === path || at.startsWith(`${path}.`)
}
