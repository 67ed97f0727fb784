import { createPause } from '../pace.ts'
import { readFields, readItems, writeKey } from './items.ts'
import type { NodeRunner } from './node.ts'

/** DEDUPLICATE: outputs {items}, of those with equal fields (or equal as a whole) the first or the last, in their order. */
export const runDeduplicate: NodeRunner = async (context) => {
  const items = await readItems(context)
  const by = context.config.by as string | string[] | undefined
  const values = by === undefined ? items : await readFields(context, items, [by].flat())
  const last = context.config.keep === 'last'
  const pause = createPause()
  const chosen = new Map<string, number>()
  for (const [at, value] of values.entries()) {
    await pause()
    const key = writeKey(value)
    if (last || !chosen.has(key)) chosen.set(key, at)
  }
  const kept = new Set(chosen.values())
  return { output: { items: items.filter((_, at) => kept.has(at)) } }
}
