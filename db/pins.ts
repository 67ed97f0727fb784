import { listHandles } from '../workflows/check.ts'
import type { Graph, Problem } from '../workflows/graph.ts'
import { nodeType } from '../workflows/nodes.ts'
import type { Envelope, Given } from '../workflows/plan.ts'
import { joinPath } from '../workflows/problem.ts'
import { invalid } from './fault.ts'

/** Outputs by node id that nodes are given instead of being run; `handle` is the one they leave by. */
export type Pins = Record<string, { output: unknown; handle?: string | null | undefined }>

/** How an output that was given by hand is marked. */
export const PINNED = 'PINNED'

/** Checks pinned outputs against the graph. Throws INVALID with all that is wrong. */
export function readPins(graph: Graph, pins: Pins): Given {
  const problems: Problem[] = []
  const given: Given = Object.create(null)
  for (const [id, { output, handle }] of Object.entries(pins)) {
    const path = joinPath('pinned', id)
    const problem = findProblem(graph, id)
    if (problem) problems.push({ path, message: problem })
    const handles = (problem ? undefined : listHandles(graph.nodes.find((node) => node.id === id)!)) ?? [null]
    const leaves = handle === undefined && handles.length === 1 ? handles[0]! : (handle ?? null)
    if (!problem && !handles.includes(leaves)) {
      const names = handles.map((name) => name ?? 'null (the main one)').join(', ')
      problems.push({ path: `${path}.handle`, message: `must be one of ${names}` })
    }
    given[id] = { output: wrapOutput(output), handle: leaves, from: PINNED }
  }
  if (problems.length > 0) throw invalid(problems)
  return given
}

/** Why a node of the graph cannot be given an output; undefined where it can. */
export function findProblem(graph: Graph, id: string): string | undefined {
  const node = graph.nodes.find((one) => one.id === id)
  if (!node) return 'there is no such node'
  if (nodeType(node.type)?.kind === 'trigger') return 'is a trigger: its output is `data`'
  return node.disabled ? 'is disabled' : undefined
}

export function wrapOutput(output: unknown): Envelope {
  return { v: output ?? null, bytes: Buffer.byteLength(JSON.stringify(output ?? null)) }
}
