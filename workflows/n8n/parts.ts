import type { SourceNode } from './document.ts'
import type { ProblemReporter } from './report.ts'

/** One of our nodes. Its id ends with the suffix, which is empty for the part that does the work. */
export type NodePart = {
  suffix: string
  type: string
  config: Record<string, unknown>
  retry?: Record<string, number>
}

/** Our nodes for one n8n node, as a chain. */
export type MappedNode = {
  parts: NodePart[]
  /** For each output of the n8n node, the handle of the last part. '' if no handle leads to the output. */
  handles?: (string | null)[]
  /** Second handles for an output: a Switch node may use the output of a rule as its fallback, too. */
  extraHandles?: { output: number; handle: string }[]
  /** It takes the place of a node that was not imported. */
  isPlaceholder?: true
}

/** An n8n node and our nodes for it. `entry` and `exit` are the ids of the first and the last one. */
export type BuiltNode = {
  source: SourceNode
  id: string
  mapped: MappedNode
  entry: string
  exit: string
  handles: (string | null)[]
}

/** One of our nodes, before the graph is checked. */
export type ImportedNode = Record<string, unknown> & {
  id: string
  type: string
  config: Record<string, unknown>
}

export function createPart(type: string, config: Record<string, unknown>, suffix = ''): NodePart {
  return { type, config, suffix }
}

/** For an n8n node that becomes exactly one of ours. */
export function mapToNode(type: string, config: Record<string, unknown>): MappedNode {
  return { parts: [createPart(type, config)] }
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
  // All outputs lead away from its only handle.
  const handles = Array<null>(100).fill(null)
  return {
    isPlaceholder: true,
    handles,
    parts: [createPart('STOP_AND_ERROR', { message: message.replaceAll('{{', '{ {').slice(0, 1_000) })],
  }
}

/** The part that does the work: it takes the n8n node's name, its retries and its error output. */
export function findMainPart(mapped: MappedNode): NodePart {
  return mapped.parts.find(({ suffix }) => suffix === '') ?? mapped.parts[0]!
}
