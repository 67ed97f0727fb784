import { readItems } from './kit/items.ts'
import type { NodeRunner } from './kit/node.ts'

/** FILTER: outputs {items}, the items for which the condition holds. */
export const runFilter: NodeRunner = async (context) => {
  const { config, bindings, evaluator } = context
  const items = await readItems(context)
  const kept = await evaluator.holding(items, config.condition, bindings)
  return { output: { items: kept.map((at) => items[at]) }, places: { of: items, from: kept } }
}
