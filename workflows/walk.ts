import type { Envelope, Plan, PlanEdge, PlanNode } from './plan.ts'

/** How a node left: by the handle whose edges are taken (null is main), or not at all. */
export type Outcome = { handle: string | null } | { skipped: true }

/** Outcomes by node id, of every node that is settled. */
export type Outcomes = Record<string, Outcome>

/**
 * What one step did, in the order in which a segment did it. SUCCESS and FAILED settle a node. WAITING: until an
 * instant, or `pause`: for somebody outside. LOOPING: a loop has its items. TURNED and FOLDED tell of a loop only:
 * REPEAT's condition was tested; results of iterations went into a chunk.
 */
export type NodeRecord = {
  nodeId: string
  iteration: string
  status: 'SUCCESS' | 'FAILED' | 'WAITING' | 'LOOPING' | 'TURNED' | 'FOLDED'
  output?: Envelope
  error?: NodeError
  handle: string | null
  /** Epoch milliseconds until which a WAITING node waits; null of a pause is for ever. */
  until?: number | null
  pause?: true
  /** LOOPING: how many iterations at most, and where the items are. */
  loop?: { count: number; pages: Page[] }
  /** TURNED: REPEAT has come to its end. */
  over?: boolean
  /** FOLDED: the iterations whose results `output` holds, and how many of the last chunks. */
  folded?: number[]
  merged?: number
  startedAt: number
  completedAt: number
}

/** Some of a loop's items, an array, from the item `from` on; `deep`: an array of pages instead. */
export type Page = { from: number; items: Envelope; deep?: true }

export type NodeError = { message: string; type: string }

/** Said where Temporal itself gave up on an activity: every attempt lost its worker. */
export const WORKER_LOST: NodeError = { message: 'No worker finished this node', type: 'WorkerLost' }

/** Attempts of one run at once. */
export const MAX_IN_FLIGHT = 64

/** Failure types of a run, read by the projection. */
export const RUN_TIMED_OUT = 'RunTimedOut'
export const NODE_FAILED = 'NodeFailed'
export const ENGINE_FAILED = 'EngineFailed'

/** The signal that something outside may have settled a node that waits; its argument is the node's stepKey. */
export const NUDGE = 'nudge'

/** How the reason begins with which the sweeper terminates a run that no worker can carry on: FAILED. */
export const STUCK_REASON = 'The run was stuck in its workflow code'

/** How a REPEAT leaves that came to its most iterations: by the main handle where no edge takes this one up. */
export const EXHAUSTED = 'exhausted'

const skipped: Outcome = { skipped: true }

/** An outcomes object without a prototype: node ids are keys. */
export function emptyOutcomes(from: Outcomes = {}): Outcomes {
  return Object.assign(Object.create(null), from)
}

type Index = {
  byId: Map<string, PlanNode>
  inward: Map<string, PlanEdge[]>
  /** The nodes that an edge leaves by EXHAUSTED. */
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

/** The nodes of a loop's body, or of the root for ''. */
export function nodesIn(plan: Plan, loopId: string): PlanNode[] {
  return indexOf(plan).scopes.get(loopId) ?? []
}

/** The loops around a node, the outermost first. */
export function loopsAround(plan: Plan, node: PlanNode): PlanNode[] {
  const loops: PlanNode[] = []
  for (let id = node.parentId; id !== undefined; id = loops[0]!.parentId) loops.unshift(findNode(plan, id)!)
  return loops
}

/**
 * The nodes of a scope that may start now: not settled, not in `started`, all in-edges settled and one of them
 * taken; in a body, those without in-edges too. Branches that are not taken are settled as skipped on the way
 * (written into `outcomes`). One pass is enough, since the plan's nodes are in topological order.
 */
export function next(
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
  const falls = outcome.handle === EXHAUSTED && !indexOf(plan).exhausted.has(edge.source)
  return edge.handle === (falls ? null : outcome.handle) ? 'taken' : 'dead'
}

/** The nodes whose outputs make this node's `$input`: the sources of its taken in-edges, once each, in edge order. */
export function sourcesOf(plan: Plan, nodeId: string, outcomes: Outcomes): string[] {
  const taken = (indexOf(plan).inward.get(nodeId) ?? []).filter(
    (edge) => edgeState(plan, edge, outcomes) === 'taken',
  )
  return [...new Set(taken.map((edge) => edge.source))]
}

/** Whether a body's node gets the iteration's item for its `$input`: nothing in the body comes before it. */
export function isEntry(plan: Plan, node: PlanNode): boolean {
  return node.parentId !== undefined && !indexOf(plan).inward.has(node.id)
}

/** The nodes of a scope that ran and from which no taken edge leads on: their outputs are the scope's. */
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

/** How a node's failure leaves it: handled by onError (the error is its output then), or fatal to its scope. */
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
  return node.kind !== 'effect' && !node.alone
}

/** A node in an iteration: the key of what is under way, of signals, and of timers' summaries in the history. */
export function stepKey(nodeId: string, iteration: string): string {
  return `${nodeId}#${iteration}`
}
