import { listHandles } from '../../../workflows/graph/check.ts'
import { type Graph, type GraphNode, isOnItems } from '../../../workflows/graph/graph.ts'
import { itemsOf, partOf } from '../../../workflows/input.ts'
import { isObject } from '../../../workflows/json.ts'
import { nodeType } from '../../../workflows/nodes/nodes.ts'
import type { Problem } from '../../../workflows/problem.ts'
import { joinPath } from '../../../workflows/problem.ts'
import { type Envelope, joinHandles, type Presets } from '../../../workflows/run/plan.ts'
import { invalid } from '../../fault.ts'

/**
 * Outputs by node id that nodes get instead of being executed. `handle` is the one that the node leaves by:
 * null is the main one, and it may be left out if the node has only one.
 */
export type Pins = Record<string, { output: unknown; handle?: string | null | undefined }>

/** The value of `from` and `givenBy` for an output that a user has pinned, in place of an execution's id. */
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
    if (!problem && handle === undefined && isOnItems(nodes.get(id)!)) {
      const left = readItemHandles(output, handles)
      if (typeof left === 'string') problems.push({ path: `${path}.output`, message: left })
      else given[id] = { output: wrapOutput(output), handle: joinHandles(left, handles), from: PINNED }
      continue
    }
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

/**
 * The handles by which a node that works on items leaves with this output: those that have items. A text says what is
 * wrong with the output.
 */
function readItemHandles(output: unknown, handles: (string | null)[]): (string | null)[] | string {
  const parts = isObject(output) && isObject(output.handles) ? output.handles : undefined
  if (parts === undefined && !handles.includes(null))
    return `must be {handles: {...}} with an {items} for any of ${handles.join(', ')}, or be given with a handle`
  const other = Object.keys(parts ?? {}).find((name) => !handles.includes(name))
  if (other !== undefined) return `must not have the handle "${other}"`
  return handles.filter(
    (handle) => itemsOf(parts ? partOf(output, handle) : handle === null ? output : null).length > 0,
  )
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
