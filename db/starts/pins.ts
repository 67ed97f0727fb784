import { listHandles } from '../../workflows/graph/check.ts'
import type { Graph, GraphNode } from '../../workflows/graph/graph.ts'
import { nodeType } from '../../workflows/nodes/nodes.ts'
import type { Problem } from '../../workflows/problem.ts'
import { joinPath } from '../../workflows/problem.ts'
import type { Envelope, Presets } from '../../workflows/run/plan.ts'
import { invalid } from '../fault.ts'

/**
 * Outputs by node id that nodes get instead of being executed. `handle` is the one that the node leaves by:
 * null is the main one, and it may be left out if the node has only one.
 */
export type Pins = Record<string, { output: unknown; handle?: string | null | undefined }>

/** Stands in `from` and `givenBy` for an output that a user has pinned, in place of an execution's id. */
export const PINNED = 'PINNED'

/** Checks pinned outputs against the graph. Throws INVALID with all problems. */
export function readPins(graph: Graph, pins: Pins): Presets {
  const problems: Problem[] = []
  const given: Presets = Object.create(null)
  const nodes = new Map(graph.nodes.map((node) => [node.id, node]))
  for (const [id, { output, handle }] of Object.entries(pins)) {
    const path = joinPath('pinned', id)
    const problem = findPinProblem(nodes.get(id))
    if (problem) problems.push({ path, message: `cannot be pinned: ${problem}` })
    const handles = (problem ? undefined : listHandles(nodes.get(id)!)) ?? [null]
    const chosen = handle === undefined && handles.length === 1 ? handles[0]! : (handle ?? null)
    if (!problem && !handles.includes(chosen)) {
      const names = handles.map((name) => name ?? 'null (the main one)').join(', ')
      problems.push({ path: `${path}.handle`, message: `must be one of ${names}` })
    }
    given[id] = { output: wrapOutput(output), handle: chosen, from: PINNED }
  }
  if (problems.length > 0) throw invalid(problems)
  return given
}

/** Why the output of a node cannot be pinned; undefined if it can. */
export function findPinProblem(node: GraphNode | undefined): string | undefined {
  if (!node) return 'there is no such node'
  if (nodeType(node.type)?.kind === 'trigger') return 'it is a trigger, and its output is `data`'
  return node.disabled ? 'it is disabled' : undefined
}

/** Wraps an output as an inline envelope, whatever its size; undefined counts as null. */
export function wrapOutput(output: unknown): Envelope {
  return { v: output ?? null, bytes: Buffer.byteLength(JSON.stringify(output ?? null)) }
}
