import { isObject, setOwn } from '../../../workflows/json.ts'
import type { Into } from '../../../workflows/nodes/into.ts'
import { workedItem } from './items.ts'
import type { NodeContext } from './node.ts'
import { copyValue, setField } from './paths.ts'

/** The output of a node that puts a value into a field of its item, or into an object of its own. */
export function putInto(context: NodeContext, value: unknown): Record<string, unknown> {
  const { field, keep = true, dots = false } = context.config.into as Into
  const item = workedItem(context)
  const output = keep && isObject(item) ? (dots ? copyValue(item) : { ...item }) : {}
  if (value === undefined) return output
  if (dots) setField(output, field, value)
  else setOwn(output, field, value)
  return output
}
