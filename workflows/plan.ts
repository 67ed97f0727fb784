import { findReferences } from './expressions.ts'
import type { Graph, GraphNode, OnError, Retry } from './graph.ts'
import { type NodeKind, nodeType } from './nodes.ts'
import { isStep, MAX_IN_FLIGHT } from './walk.ts'

/** An output on its way: the value, or a reference to where it is stored. `bytes` is its size as JSON. */
export type Envelope = { v: unknown; bytes: number } | { ref: string; bytes: number }

/**
 * Outputs that nodes are given instead of being run, by node id. `from` is PINNED, or the execution whose output is
 * taken over.
 */
export type Given = Record<string, { output: Envelope; handle: string | null; from: string }>

/** The reference to the execution's own input, kept in its row. */
export const INPUT_REF = 'input'

export type PlanNode = {
  id: string
  name: string
  type: string
  kind: NodeKind
  /** Pure, but with a retry or time limit of its own: an activity instead of a step in a segment. */
  alone?: true
  /** The loop whose body it is in. */
  parentId?: string
  loop?: LoopSpec
  /** Its config reads `$item` or `$index`. */
  readsItem?: true
  /** Not run: this is its output. */
  given?: Given[string]
  /** Disabled: passes its input on, by its first handle, and leaves no record. */
  silent?: { handle: string | null }
  onError: OnError
  retry: Required<Retry>
  timeoutMs: number
  /** Nodes whose outputs its config names, beside those it is connected to. */
  needs: string[]
}

/** How a loop runs. `pure`: a segment can do all of it; `collects`: a failed iteration does not end it. */
export type LoopSpec = {
  mode: 'each' | 'repeat'
  concurrency: number
  collects: boolean
  max: number
  pure: boolean
}

export type PlanEdge = { source: string; handle: string | null; target: string }

/** What a run needs to know of its graph version: the shape and how each node runs, never the configs. */
export type Plan = {
  workflowId: string
  version: number
  triggerNodeId: string
  /** In topological order, ties in the author's order. */
  nodes: PlanNode[]
  /** In the author's order. */
  edges: PlanEdge[]
  /** Outputs up to this many bytes of JSON travel inline, so that whatever Temporal is told at once fits. */
  inlineBytes: number
  /** Of a node that runs alone: its `$item`. */
  item?: Envelope
}

/** What is known of a run before it starts. */
export type RunContext = {
  id: string
  workflowId: string
  workflowName: string
  version: number
  trigger: string
  /** IANA: the workflow's, else UTC. */
  timezone: string
  /** W3C trace context of the run's own span, where runs are traced. */
  traceparent?: string
}

/** The run as expressions see it in `$execution`; `startedAt` is ISO 8601. */
export type ExecutionContext = RunContext & { startedAt: string }

/** A FOR_EACH takes so many items at most. */
export const MAX_ITEMS = 100_000

const MAX_INLINE = 32_000
const MIN_INLINE = 50
/** Temporal takes 2 MB a payload: all outputs must fit one, and beside the plan where a run continues as new. */
const OUTPUTS_BUDGET = 1_000_000
const CARRIED_BUDGET = 1_700_000
/** It takes 4 MB a message: so much for the inputs of all attempts that one answer of a worker may begin. */
const MESSAGE_BUDGET = 1_500_000
/** All iterations under way have so much of the state beside their outputs; of each of their nodes it keeps this. */
const FRAMES_BUDGET = 500_000
const SETTLED_BYTES = 150

/** A stored version that this release cannot run. */
export class PlanError extends Error {}

/** Compiles a graph version for a run that starts at `triggerNodeId`. The graph has passed its checks; PlanError else. */
export function compilePlan(
  graph: Graph,
  run: { workflowId: string; version: number; triggerNodeId: string },
): Plan {
  const bodies = { isPure: createPurity(graph), roomOf: createRoom(graph) }
  const nodes = sortTopologically(graph).map((node) => planNode(node, run.triggerNodeId, bodies))
  const edges = graph.edges.map(({ source, sourceHandle, target }) => ({
    source,
    handle: sourceHandle,
    target,
  }))
  return { ...run, nodes, edges, inlineBytes: findInline(nodes, edges) }
}

/** The plan of a run in which some nodes are given their outputs. */
export function giveOutputs(plan: Plan, given: Given): Plan {
  const nodes = plan.nodes.map((node): PlanNode => {
    const gift = given[node.id]
    if (!gift || node.silent || node.kind === 'trigger') return node
    const { alone: _, loop: __, ...rest } = node
    return { ...rest, kind: 'pure', given: gift, needs: [] }
  })
  return { ...plan, nodes }
}

function findInline(nodes: PlanNode[], edges: PlanEdge[]): number {
  const copies = countCopies(nodes)
  const frames = nodes.reduce((sum, node) => sum + copies(node) * weigh(node), 0)
  const plan = new TextEncoder().encode(JSON.stringify({ nodes, edges })).length
  const beside = CARRIED_BUDGET - plan - frames
  const outputs = nodes.reduce((sum, node) => sum + copies(node) * countKept(node, nodes, edges), 0)
  const each = Math.min(OUTPUTS_BUDGET, beside) / Math.max(1, outputs)
  const read = MESSAGE_BUDGET / Math.max(1, countInputs(nodes, edges))
  return Math.max(MIN_INLINE, Math.floor(Math.min(MAX_INLINE, each, read)))
}

/** Of the attempts that may be in flight at once, how many outputs they read together at the most. */
function countInputs(nodes: PlanNode[], edges: PlanEdge[]): number {
  const inputs = new Map(nodes.filter((node) => !isStep(node)).map((node) => [node.id, new Set(node.needs)]))
  for (const { source, target } of edges) inputs.get(target)?.add(source)
  const copies = countCopies(nodes)
  const repeats = new Set(nodes.filter(({ loop }) => loop?.mode === 'repeat').map(({ id }) => id))
  const siblings = Map.groupBy(nodes, ({ parentId }) => parentId)
  /** REPEAT's iteration gets what all ends of the one before it, or what all before the loop, came to. */
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

/** How often a run's state keeps an output: a REPEAT keeps twice more what its next iteration gets. */
function countKept({ id, parentId }: PlanNode, nodes: PlanNode[], edges: PlanEdge[]): number {
  const repeats = nodes.filter(({ loop }) => loop?.mode === 'repeat')
  if (repeats.length === 0) return 1
  const feeds = new Set(edges.filter(({ source }) => source === id).map(({ target }) => target))
  return 1 + 2 * repeats.filter((repeat) => repeat.id === parentId || feeds.has(repeat.id)).length
}

/** How many iterations of its loops, each with an output of the node, may be under way at once. */
function countCopies(nodes: PlanNode[]): (node: PlanNode) => number {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const count = (node: PlanNode): number => {
    const loop = node.parentId === undefined ? undefined : byId.get(node.parentId)
    if (!loop) return 1
    return Math.min(MAX_IN_FLIGHT, count(loop) * (loop.loop?.pure ? 1 : (loop.loop?.concurrency ?? 1)))
  }
  return count
}

/** Whether a segment can run all of a loop's body, loops in it included. */
function createPurity(graph: Graph): (loopId: string) => boolean {
  const isPure = (loopId: string): boolean =>
    graph.nodes
      .filter((node) => node.parentId === loopId && !node.disabled)
      .every((node) => {
        const kind = nodeType(node.type)?.kind
        if (kind === 'loop') return isPure(node.id)
        return kind === 'pure' && node.retry === undefined && node.timeoutMs === undefined
      })
  return isPure
}

/** What a run's state keeps of a settled node, beside its output. */
function weigh({ id }: { id: string }): number {
  return SETTLED_BYTES + 2 * id.length
}

/** Of a loop, how many iterations may be under way at once, by what their nodes take up. */
function createRoom(graph: Graph): (loopId: string) => number {
  const children = Map.groupBy(graph.nodes, ({ parentId }) => parentId)
  const weighBody = (loopId: string): number =>
    (children.get(loopId) ?? []).reduce((sum, child) => sum + weigh(child) + weighBody(child.id), 0)
  return (loopId) => Math.max(1, Math.floor(FRAMES_BUDGET / Math.max(1, weighBody(loopId))))
}

function planLoop(node: GraphNode, pure: boolean, room: number): LoopSpec {
  const { concurrency, onItemError, maxIterations } = node.config as Record<string, unknown>
  const mode = node.type === 'REPEAT' ? 'repeat' : 'each'
  return {
    mode,
    concurrency: pure || typeof concurrency !== 'number' ? 1 : Math.min(concurrency, room),
    collects: onItemError === 'collect',
    max: typeof maxIterations === 'number' ? maxIterations : MAX_ITEMS,
    pure,
  }
}

type Bodies = { isPure: (loopId: string) => boolean; roomOf: (loopId: string) => number }

function planNode(node: GraphNode, triggerNodeId: string, { isPure, roomOf }: Bodies): PlanNode {
  const type = nodeType(node.type)
  if (!type) throw new PlanError(`node ${node.id} is of the unknown type ${node.type}`)
  const { parentId } = node
  const head = { id: node.id, name: node.name, type: node.type, ...(parentId ? { parentId } : {}) }
  const retry = { ...type.retry, ...node.retry }
  if (node.disabled) {
    const [handle = null] = type.handles(node.config)
    const passing = { kind: 'pure', silent: { handle }, onError: 'FAIL' } as const
    return { ...head, ...passing, needs: [], retry, timeoutMs: type.timeoutMs }
  }
  const { nodes } = findReferences(node.config, 'config', type.conditions?.(node.config))
  const needs = new Set(nodes.map((reference) => reference.id))
  const config = JSON.stringify(node.config)
  if (config.includes('$trigger')) needs.add(triggerNodeId)
  const readsItem = parentId !== undefined && /\$(item|index)\b/.test(config)
  const own = type.kind === 'pure' && (node.retry !== undefined || node.timeoutMs !== undefined)
  return {
    ...head,
    kind: type.kind,
    ...(own ? { alone: true as const } : {}),
    ...(type.kind === 'loop' ? { loop: planLoop(node, isPure(node.id), roomOf(node.id)) } : {}),
    ...(readsItem ? { readsItem: true as const } : {}),
    onError: node.onError,
    retry,
    timeoutMs: node.timeoutMs ?? type.timeoutMs,
    needs: [...needs],
  }
}

/** Kahn's algorithm; among the nodes that are free, the author's order decides. */
function sortTopologically(graph: Graph): GraphNode[] {
  const open = new Map(graph.nodes.map((node) => [node.id, 0]))
  const targets = new Map<string, string[]>(graph.nodes.map((node) => [node.id, []]))
  for (const edge of graph.edges) {
    open.set(edge.target, (open.get(edge.target) ?? 0) + 1)
    targets.get(edge.source)?.push(edge.target)
  }
  const byId = new Map(graph.nodes.map((node) => [node.id, node]))
  const queue = graph.nodes.filter((node) => open.get(node.id) === 0)
  const sorted: GraphNode[] = []
  for (let at = 0; at < queue.length; at++) {
    const node = queue[at]!
    sorted.push(node)
    for (const target of targets.get(node.id) ?? []) {
      const left = open.get(target)! - 1
      open.set(target, left)
      if (left === 0) queue.push(byId.get(target)!)
    }
  }
  return sorted
}
