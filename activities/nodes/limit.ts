import { whole } from '../../workflows/nodes/fields.ts'
import { readKey } from './config.ts'
import { readItems } from './items.ts'
import type { NodeRunner } from './node.ts'

const count = whole(0, 1_000_000_000)

/** LIMIT: outputs {items}, the first `count` after `offset`, or the last ones before it. */
export const runLimit: NodeRunner = async (context) => {
  const items = await readItems(context)
  const size = await readKey(context, 'count', count)
  const offset = context.config.offset === undefined ? 0 : await readKey(context, 'offset', count)
  const end = Math.max(items.length - offset, 0)
  const last = context.config.keep === 'last'
  return {
    output: { items: last ? items.slice(Math.max(end - size, 0), end) : items.slice(offset, offset + size) },
  }
}
