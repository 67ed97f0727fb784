import type * as v from 'valibot'
import type { Retry } from './graph.ts'
import { CALLS } from './nodes/calls.ts'
import { DATA } from './nodes/data.ts'
import { FLOW } from './nodes/flow.ts'
import { HOOKS } from './nodes/hooks.ts'
import { ITEMS } from './nodes/items.ts'
import { PAUSES } from './nodes/pauses.ts'
import { TRIGGERS } from './nodes/triggers.ts'

/**
 * How a node runs. `trigger`: its output is what started the run. `pure`: computes from its inputs alone, in a
 * segment. `wait`: pure up to an instant, then a timer. `effect`: touches the world, an activity of its own.
 * `loop`: its children run once per item. `pause`: waits for somebody outside, who writes into its row.
 */
export const KINDS = ['trigger', 'pure', 'wait', 'effect', 'loop', 'pause'] as const
export type NodeKind = (typeof KINDS)[number]

export type NodeType = {
  kind: NodeKind
  summary: string
  /** What a config must be when saved: a text with `{{ }}` may stand where a value is computed. */
  config: v.GenericSchema<unknown, Record<string, unknown>>
  /** Source handles; a function where the config names them. `null` is the main handle. */
  handles: (config: Record<string, unknown>) => (string | null)[]
  /** Config keys whose whole text is an expression, with or without `{{ }}`: `condition`, `cases[].condition`. */
  conditions?: (config: Record<string, unknown>) => { path: string; text: string }[]
  retry: Required<Retry>
  timeoutMs: number
}

/** Every node type: adding one touches its table and one file in activities/nodes/. */
export const NODES = {
  ...TRIGGERS,
  ...FLOW,
  ...DATA,
  ...ITEMS,
  ...CALLS,
  ...HOOKS,
  ...PAUSES,
} as const satisfies Record<string, NodeType>

export type NodeTypeName = keyof typeof NODES

/** The table's row for a type, or undefined for a type nobody knows (a stored graph may be older or newer). */
export function nodeType(type: string): NodeType | undefined {
  return Object.hasOwn(NODES, type) ? NODES[type as NodeTypeName] : undefined
}
