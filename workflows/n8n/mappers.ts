import type { SourceNode } from './document.ts'
import { type Mapper, ONE, placeholder } from './mapper.ts'
import { CALLS } from './nodes/calls.ts'
import { FLOW } from './nodes/flow.ts'
import { LISTS } from './nodes/lists.ts'
import { set } from './nodes/set.ts'
import { OTHER_TRIGGER, TRIGGERS } from './nodes/triggers.ts'
import { VALUES } from './nodes/values.ts'

const MAPPERS: Record<string, Mapper> = { ...TRIGGERS, ...FLOW, ...CALLS, ...LISTS, ...VALUES, set }

const CODE = new Set(['code', 'function', 'functionItem', 'executeCommand'])

const unknown: Mapper = {
  takes: 'any',
  gives: () => ONE,
  map(node, { complain }) {
    const why = CODE.has(node.type) ? 'there is no node that runs code' : 'there is no such node here'
    complain('node', 'type', `A node that stops the run is in its place: ${why}`, node.raw)
    return placeholder(node, why)
  },
}

/** How a node is taken over; whatever is unknown gets a placeholder, or a trigger by hand. */
export function findMapper(node: SourceNode): Mapper {
  const known = Object.hasOwn(MAPPERS, node.type) ? MAPPERS[node.type] : undefined
  if (known) return known
  return /trigger$/i.test(node.type) ? OTHER_TRIGGER : unknown
}
