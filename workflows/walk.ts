import type { Envelope, Plan, PlanNode } from './plan.ts'

/** How a node left: by the handle whose edges are taken (null is main), or not at all. */
export type Outcome = { handle: string | null } | { skipped: true }

/** Outcomes by node id, of every node that is settled. */
export type Outcomes = Record<string, Outcome>

/** What one node did; the same shape from a segment's pure steps and from an activity's end. */
export type NodeRecord = {
  nodeId: string
  iteration: string
  status: 'SUCCESS' | 'FAILED' | 'WAITING'
  output?: Envelope
  error?: NodeError
  handle: string | null
  /** Epoch milliseconds until which a WAITING node waits. */
  until?: number
  startedAt: number
  completedAt: number
}

export type NodeError = { message: string; type: string }

/** Said where Temporal itself gave up on an activity: every attempt lost its worker. */
export const WORKER_LOST: NodeError = { message: 'No worker finished this node', type: 'WorkerLost' }

/** Attempts of one run at once. */
export const MAX_IN_FLIGHT = 64

/** Failure types of a run, read by the projection. */
export const RUN_TIMED_OUT = 'RunTimedOut'
export const NODE_FAILED = 'NodeFailed'
export const ENGINE_FAILED = 'EngineFailed'

/** The signal that something outside may have settled a node that waits; its argument is the node's timerKey. */
export const NUDGE = 'nudge'

/** How the reason begins with which the sweeper terminates a run that no worker can carry on: FAILED. */
export const STUCK_REASON = 'The run was stuck in its workflow code'

const skipped: Outcome = { skipped: true }

/** An outcomes object without a prototype: node ids are keys. */
export function emptyOutcomes(from: Outcomes = {}): Outcomes {
  return Object.assign(Object.create(null), from)
}

/**
 * The nodes that may start now: not settled, not in `started`, all in-edges settled and one of them taken.
 * Branches that are not taken are settled as skipped on the way (written into `outcomes`). One pass is enough,
 * since the plan's nodes are in topological order.
 */
export function next(plan: Plan, outcomes: Outcomes, started: ReadonlySet<string>): PlanNode[] {
  const inward = edgesByTarget(plan)
  const ready: PlanNode[] = []
  for (const node of plan.nodes) {
    if (outcomes[node.id] || started.has(node.id)) continue
    if (node.id === plan.triggerNodeId) {
      ready.push(node)
      continue
    }
    const states = (inward.get(node.id) ?? []).map((edge) => edgeState(outcomes[edge.source], edge.handle))
    if (states.includes('open')) continue
    if (states.includes('taken')) ready.push(node)
    else outcomes[node.id] = skipped
  }
  return ready
}

function edgeState(source: Outcome | undefined, handle: string | null): 'open' | 'taken' | 'dead' {
  if (!source) return 'open'
  return 'handle' in source && source.handle === handle ? 'taken' : 'dead'
}

const indexed = new WeakMap<Plan, Map<string, Plan['edges']>>()

function edgesByTarget(plan: Plan): Map<string, Plan['edges']> {
  let index = indexed.get(plan)
  if (!index) {
    index = new Map()
    for (const edge of plan.edges) {
      const edges = index.get(edge.target)
      if (edges) edges.push(edge)
      else index.set(edge.target, [edge])
    }
    indexed.set(plan, index)
  }
  return index
}

/** The nodes whose outputs make this node's `$input`: the sources of its taken in-edges, once each, in edge order. */
export function sourcesOf(plan: Plan, nodeId: string, outcomes: Outcomes): string[] {
  const taken = (edgesByTarget(plan).get(nodeId) ?? []).filter(
    (edge) => edgeState(outcomes[edge.source], edge.handle) === 'taken',
  )
  return [...new Set(taken.map((edge) => edge.source))]
}

/** The nodes that ran and from which no taken edge leads on: their outputs are the run's. */
export function endsOf(plan: Plan, outcomes: Outcomes): string[] {
  const left = new Set(
    plan.edges
      .filter((edge) => edgeState(outcomes[edge.source], edge.handle) === 'taken')
      .map((e) => e.source),
  )
  return plan.nodes
    .filter((node) => {
      const outcome = outcomes[node.id]
      return outcome && 'handle' in outcome && !left.has(node.id)
    })
    .map((node) => node.id)
}

/** How a node's failure leaves it: handled by onError (the error is its output then), or fatal to the run. */
export function settleFailure(
  node: PlanNode,
  error: NodeError,
): { handle: string | null; output: unknown } | 'fatal' {
  const output = { error: { message: error.message, type: error.type, nodeId: node.id } }
  if (node.onError === 'CONTINUE') return { handle: null, output }
  if (node.onError === 'BRANCH') return { handle: 'error', output }
  return 'fatal'
}

/** The outputs a pure node may ask for when it runs: of its possible sources and of the nodes its config names. */
export function outputsFor(
  plan: Plan,
  nodes: Iterable<PlanNode>,
  outputs: Record<string, Envelope>,
): Record<string, Envelope> {
  const chosen: Record<string, Envelope> = Object.create(null)
  const take = (id: string) => {
    const output = outputs[id]
    if (output) chosen[id] = output
  }
  for (const node of nodes) {
    for (const edge of edgesByTarget(plan).get(node.id) ?? []) take(edge.source)
    node.needs.forEach(take)
  }
  return chosen
}

/** Whether the node runs as a step of a segment. */
export function isStep(node: PlanNode): boolean {
  return node.kind !== 'effect' && !node.alone
}

/** A timer's summary in the history: by it the projection knows whose timer it is. */
export function timerKey(nodeId: string, iteration: string): string {
  return `${nodeId}#${iteration}`
}
