import { wholeNumber } from '../../workflows/nodes/fields.ts'
import { renderKey } from './kit/config.ts'
import { readItems } from './kit/items.ts'
import type { NodeRunner } from './kit/node.ts'

const wholeCount = wholeNumber(0, 1_000_000_000)

/** LIMIT: outputs {items}, the first `count` of them, or the last; `offset` items are skipped at that end. */
export const runLimit: NodeRunner = async (context) => {
  const items = await readItems(context)
  const size = await renderKey(context, 'count', wholeCount)
  const offset = context.config.offset === undefined ? 0 : await renderKey(context, 'offset', wholeCount)
  const end = Math.max(items.length - offset, 0)
  const last = context.config.keep === 'last'
  const from = last ? Math.max(end - size, 0) : offset
  const kept = items.slice(from, last ? end : offset + size)
  return { output: { items: kept }, places: { of: items, from: kept.map((_, at) => from + at) } }
}
