import { createPacer } from '../expressions/pace.ts'
import { readFields, readItems, writeKey } from './kit/items.ts'
import type { NodeRunner } from './kit/node.ts'
import { findUnique, pickKeys, type UniqueRules } from './lists/unique.ts'

/**
 * DEDUPLICATE: outputs {items} in their order, without duplicates: of the items whose fields `by` are equal
 * (without `by`, of equal items) it keeps the first one, or the last one. With `types` the fields are compared at
 * every depth, and must have the same type in all items.
 */
export const runDeduplicate: NodeRunner = async (context) => {
  const items = await readItems(context)
  const by = context.config.by as string | string[] | undefined
  const values = by === undefined ? items : await readFields(context, items, [by].flat())
  if (context.config.types !== undefined) {
    const naming = { dots: context.config.dots !== false }
    const rules = { ...(context.config as UniqueRules), by: by === undefined ? undefined : [by].flat() }
    const { places, keys } =
      items.length === 0 ? { places: [], keys: [] } : await findUnique(items, rules, naming)
    const kept = places.map((at) => items[at])
    return { output: { items: rules.only ? kept.map((item) => pickKeys(item, keys)) : kept, from: places } }
  }
  const last = context.config.keep === 'last'
  const pace = createPacer()
  const chosen = new Map<string, number>()
  for (const [at, value] of values.entries()) {
    await pace()
    const key = await writeKey(value, pace)
    if (last || !chosen.has(key)) chosen.set(key, at)
  }
  const kept = new Set(chosen.values())
  const from = [...items.keys()].filter((at) => kept.has(at))
  return { output: { items: from.map((at) => items[at]) }, places: { of: items, from } }
}
