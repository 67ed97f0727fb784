import { getOwn } from '../json.ts'
import type { SourceNode } from './document.ts'
import { type NodeMapper, ONE_ITEM } from './mapper.ts'
import { CALL_MAPPERS } from './nodes/calls.ts'
import { FLOW_MAPPERS } from './nodes/flow.ts'
import { LIST_MAPPERS } from './nodes/lists.ts'
import { SET_MAPPERS } from './nodes/set.ts'
import { TRIGGER_MAPPERS, UNKNOWN_TRIGGER_MAPPER } from './nodes/triggers.ts'
import { VALUE_MAPPERS } from './nodes/values.ts'
import { createPlaceholder } from './parts.ts'

const MAPPERS: Record<string, NodeMapper> = {
  ...TRIGGER_MAPPERS,
  ...FLOW_MAPPERS,
  ...CALL_MAPPERS,
  ...LIST_MAPPERS,
  ...SET_MAPPERS,
  ...VALUE_MAPPERS,
}

const CODE_TYPES = new Set(['code', 'function', 'functionItem', 'executeCommand'])

/** The mapper for an n8n node. Unknown nodes become placeholders, unknown triggers become manual ones. */
export function findNodeMapper({ type, version }: SourceNode): NodeMapper {
  const known = getOwn(MAPPERS, type)
  if (known) return known.takes === 'loop' && version < 2 ? FIRST_LOOP_MAPPER : known
  if (/trigger$/i.test(type)) return UNKNOWN_TRIGGER_MAPPER
  return CODE_TYPES.has(type) ? CODE_MAPPER : UNKNOWN_MAPPER
}

/** For nodes without a counterpart. */
function createPlaceholderMapper(reason: string): NodeMapper {
  return {
    takes: 'any',
    outputFlow: () => ONE_ITEM,
    map: (node, { report }) => createPlaceholder(node, reason, 'type', report),
  }
}

const CODE_MAPPER = createPlaceholderMapper('Perdure has no node that runs code')
const UNKNOWN_MAPPER = createPlaceholderMapper('Perdure has no node of this type')
const FIRST_LOOP_MAPPER = createPlaceholderMapper(
  'its first version loops with an If node on noItemsLeft, for which Perdure has FOR_EACH',
)
