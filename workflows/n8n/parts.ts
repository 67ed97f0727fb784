import type { SourceNode } from './document.ts'
import type { ProblemReporter } from './report.ts'
import { writeLiteral } from './texts.ts'

/** Our node for one n8n node. */
export type MappedNode = {
  type: string
  config: Record<string, unknown>
  /** Whether it works on each item by itself, or once on all of them; neither for nodes that start an execution. */
  works?: 'each' | 'all'
  /** For each output of the n8n node, our handle; '' if it has none. Without `handles` there is one output. */
  handles?: (string | null)[]
  retry?: Record<string, number>
  /** A node before it, which makes of each item that comes the one that it works on. */
  feeder?: { type: string; config: Record<string, unknown> }
  /** A node behind it, which makes its output what n8n's is. It takes the name. `handle`: by which its input comes. */
  shaper?: {
    type: string
    config: Record<string, unknown>
    perItem?: true
    allItems?: true
    handle?: string
  }
  /** It takes the place of a node that was not imported. */
  isPlaceholder?: true
  /** The n8n node belongs to this one, and is no node of its own here. */
  partOf?: string
}

/** An n8n node and our node for it. Edges end at `entry`, and begin at `exit`. */
export type BuiltNode = { source: SourceNode; id: string; entry: string; exit: string; mapped: MappedNode }

/** One of our nodes, before the graph is checked. */
export type ImportedNode = Record<string, unknown> & {
  id: string
  type: string
  config: Record<string, unknown>
}

/** A node that works on each item by itself. */
export function mapEach(type: string, config: Record<string, unknown>): MappedNode {
  return { type, config, works: 'each' }
}

/** A node that works once on all items. */
export function mapAll(type: string, config: Record<string, unknown>): MappedNode {
  return { type, config, works: 'all' }
}

/**
 * Reports that a node was not imported, and makes the one in its place. That one fails the execution, which
 * must not go on as if the work were done. `reason` completes "was not imported:"; `path` says what in the
 * node it is about.
 */
export function createPlaceholder(
  node: SourceNode,
  reason: string,
  path: string,
  report: ProblemReporter,
): MappedNode {
  const problem =
    `This node was not imported: ${reason}. A STOP_AND_ERROR node in its place fails the execution: ` +
    'replace it with nodes that do the same.'
  report('node', path, problem, node.raw)
  const message = `The n8n node "${node.name}" (${node.fullType}) was not imported: ${reason}`
  return {
    type: 'STOP_AND_ERROR',
    config: { message: writeLiteral(message.slice(0, 1_000)), replaces: describeOriginal(node) },
    // All outputs lead away from its only handle.
    handles: Array<null>(100).fill(null),
    isPlaceholder: true,
  }
}

/** The description of the node that a placeholder replaces. Its parameters are text: nothing evaluates them. */
function describeOriginal({ fullType, version, parameters }: SourceNode): Record<string, unknown> {
  const text = JSON.stringify(parameters)
  const shown = text.length > MAX_PARAMETERS ? `${text.slice(0, MAX_PARAMETERS)}...` : text
  // Nothing in here is an expression.
  return { type: fullType.slice(0, 200), version, parameters: shown.replaceAll('{{', '{ {') }
}

const MAX_PARAMETERS = 20_000
