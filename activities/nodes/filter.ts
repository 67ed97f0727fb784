import { testEither } from './ifelse.ts'
import { readItems, workedItem } from './kit/items.ts'
import type { NodeRunner } from './kit/node.ts'

/**
 * FILTER: outputs {items}, the items for which the condition holds. Without `items` it is given one item, and
 * keeps it or not.
 */
export const runFilter: NodeRunner = async (context) => {
  const { config, bindings, evaluator } = context
  if (config.items === undefined || config.conditions !== undefined) {
    return { output: { items: (await testEither(context, config)) ? [workedItem(context)] : [] } }
  }
  const items = await readItems(context)
  const kept = await evaluator.holding(items, config.condition, bindings)
  return { output: { items: kept.map((at) => items[at]) }, places: { of: items, from: kept } }
}
