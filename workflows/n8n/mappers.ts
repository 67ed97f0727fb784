import type { SourceNode } from './document.ts'
import { type Mapper, ONE, placeholder } from './mapper.ts'
import { CALLS } from './nodes/calls.ts'
import { FLOW } from './nodes/flow.ts'
import { LISTS } from './nodes/lists.ts'
import { set } from './nodes/set.ts'
import { OTHER_TRIGGER, TRIGGERS } from './nodes/triggers.ts'
import { VALUES } from './nodes/values.ts'

const MAPPERS: Record<string, Mapper> = { ...TRIGGERS, ...FLOW, ...CALLS, ...LISTS, ...VALUES, set }

const CODES = new Set(['code', 'function', 'functionItem', 'executeCommand'])

/** What has no counterpart. */
function createStop(why: string): Mapper {
  return {
    takes: 'any',
    gives: () => ONE,
    map(node, { complain }) {
      complain('node', 'type', `A node that stops the run is in its place: ${why}`, node.raw)
      return placeholder(node, why)
    },
  }
}

const CODE = createStop('there is no node that runs code')
const UNKNOWN = createStop('there is no such node here')
const FIRST_BATCHES = createStop('its first version loops by an IF on noItemsLeft: see FOR_EACH')

/** How a node is taken over; whatever is unknown gets a placeholder, or a trigger by hand. */
export function findMapper({ type, version }: SourceNode): Mapper {
  const known = Object.hasOwn(MAPPERS, type) ? MAPPERS[type] : undefined
  if (known) return known.takes === 'loop' && version < 2 ? FIRST_BATCHES : known
  if (/trigger$/i.test(type)) return OTHER_TRIGGER
  return CODES.has(type) ? CODE : UNKNOWN
}
