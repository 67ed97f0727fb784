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
  /** Disabled: passes its input on, by its first handle, and leaves no record. */
  silent?: { handle: string | null }
  onError: OnError
  retry: Required<Retry>
  timeoutMs: number
  /** Nodes whose outputs its config names, beside those it is connected to. */
  needs: string[]
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
}

/** What is known of a run before it starts. */
export type RunContext = {
  id: string
  workflowId: string
  workflowName: string
  version: number
  trigger: string
  /** W3C trace context of the run's own span, where runs are traced. */
  traceparent?: string
}

/** The run as expressions see it in `$execution`; `startedAt` is ISO 8601. */
export type ExecutionContext = RunContext & { startedAt: string }

const MAX_INLINE = 32_000
const MIN_INLINE = 50
/** Temporal takes 2 MB a payload: all outputs must fit one, and beside the plan where a run continues as new. */
const OUTPUTS_BUDGET = 1_000_000
const CARRIED_BUDGET = 1_700_000
/** It takes 4 MB a message: so much for the inputs of all attempts that one answer of a worker may begin. */
const MESSAGE_BUDGET = 1_500_000

/** A stored version that this release cannot run. */
export class PlanError extends Error {}

/** Compiles a graph version for a run that starts at `triggerNodeId`. The graph has passed its checks; PlanError else. */
export function compilePlan(
  graph: Graph,
  run: { workflowId: string; version: number; triggerNodeId: string },
): Plan {
  const nodes = sortTopologically(graph).map((node) => planNode(node, run.triggerNodeId))
  const edges = graph.edges.map(({ source, sourceHandle, target }) => ({
    source,
    handle: sourceHandle,
    target,
  }))
  return { ...run, nodes, edges, inlineBytes: findInline(nodes, edges) }
}

function findInline(nodes: PlanNode[], edges: PlanEdge[]): number {
  const beside = CARRIED_BUDGET - new TextEncoder().encode(JSON.stringify({ nodes, edges })).length
  const each = Math.min(OUTPUTS_BUDGET, beside) / Math.max(1, nodes.length)
  const read = MESSAGE_BUDGET / Math.max(1, countInputs(nodes, edges))
  return Math.max(MIN_INLINE, Math.floor(Math.min(MAX_INLINE, each, read)))
}

/** Of the attempts that may be in flight at once, how many outputs they read together at the most. */
function countInputs(nodes: PlanNode[], edges: PlanEdge[]): number {
  const inputs = new Map(nodes.filter((node) => !isStep(node)).map((node) => [node.id, new Set(node.needs)]))
  for (const { source, target } of edges) inputs.get(target)?.add(source)
  const most = [...inputs.values()].map((ids) => ids.size).sort((a, b) => b - a)
  return most.slice(0, MAX_IN_FLIGHT).reduce((sum, count) => sum + count, 0)
}

function planNode(node: GraphNode, triggerNodeId: string): PlanNode {
  const type = nodeType(node.type)
  if (!type) throw new PlanError(`node ${node.id} is of the unknown type ${node.type}`)
  const head = { id: node.id, name: node.name, type: node.type }
  const retry = { ...type.retry, ...node.retry }
  if (node.disabled) {
    const [handle = null] = type.handles(node.config)
    const passing = { kind: 'pure', silent: { handle }, onError: 'FAIL' } as const
    return { ...head, ...passing, needs: [], retry, timeoutMs: type.timeoutMs }
  }
  const { nodes } = findReferences(node.config, 'config', type.conditions?.(node.config))
  const needs = new Set(nodes.map((reference) => reference.id))
  if (JSON.stringify(node.config).includes('$trigger')) needs.add(triggerNodeId)
  const own = type.kind === 'pure' && (node.retry !== undefined || node.timeoutMs !== undefined)
  return {
    ...head,
    kind: type.kind,
    ...(own ? { alone: true as const } : {}),
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
