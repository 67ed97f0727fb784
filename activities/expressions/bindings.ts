import type { Reads } from '../../workflows/expressions/expressions.ts'
import { setOwn } from '../../workflows/json.ts'
import type { Trail } from '../../workflows/run/frame.ts'
import { expressionFailure, expressionLimit } from './failures.ts'
import { weighValue } from './weight.ts'

/**
 * The values that expressions can read, by variable. `item` and `index` are bound in loops only, and where a node
 * works on each of `items`, and `args` in the settings of an agent's tool: what the model calls it with. `response`,
 * `pageCount` and `request` are there for the pages of an HTTP request. For JavaScript, `names` are ids of nodes by
 * their names.
 */
export type Bindings = {
  input: unknown
  nodes: Record<string, unknown>
  trigger: unknown
  vars: Record<string, unknown>
  execution: Record<string, unknown>
  item?: unknown
  index?: number
  /** The number of the iteration of the loop around the node, from 0; nothing outside of loops. */
  runIndex?: number
  args?: unknown
  response?: unknown
  pageCount?: number
  request?: unknown
  items?: unknown[]
  names?: Record<string, string>
  /** No variable: how items are paired with those of nodes before (see findPairedItem). */
  trail?: Trail
}

/** The most characters of JSON that one job sends to a process. */
const MAX_SENT = 32_000_000

/** In weighValue's measure, which is up to five times the JSON. */
const MAX_WEIGHT = 8 * MAX_SENT

/**
 * The JSON of the values that expressions read, with the outputs of only those nodes that they name. `spent`
 * is the number of characters that the job sends besides. Throws a NodeFailure if that is too much, or nested
 * too deeply.
 */
export function writeRoots(allReads: Reads[], bindings: Bindings, spent = 0): string {
  const roots: Record<string, unknown> = {}
  const nodes: Record<string, unknown> = {}
  for (const reads of allReads) {
    if (reads.context) roots.input = bindings.input
    for (const name of reads.roots) if (name !== 'nodes') roots[name] = bindings[name as keyof Bindings]
    for (const id of reads.nodes) if (Object.hasOwn(bindings.nodes, id)) setOwn(nodes, id, bindings.nodes[id])
  }
  let weight = 0
  for (const value of [...Object.values(roots), ...Object.values(nodes)])
    weight += weighValue(value, MAX_WEIGHT)
  if (weight > MAX_WEIGHT) throw tooMuch()
  let text: string
  try {
    text = JSON.stringify({ ...roots, nodes })
  } catch {
    throw expressionFailure('the values that an expression reads are nested too deeply')
  }
  if (text.length + spent > MAX_SENT) throw tooMuch()
  return text
}

function tooMuch() {
  return expressionLimit(`the expressions of one node may read at most ${MAX_SENT / 1_000_000} MB`)
}

/** The workflow that a job is for: all executions of one share a turn. */
export function findQueueKey({ execution }: Bindings): string {
  return String(execution.workflowId ?? execution.id ?? '')
}
