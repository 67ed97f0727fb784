import { readItems } from './kit/items.ts'
import type { NodeRunner } from './kit/node.ts'

/** FILTER: outputs {items}, the items for which the condition holds. */
export const runFilter: NodeRunner = async (context) => {
  const { config, bindings, evaluator } = context
  return { output: { items: await evaluator.filter(await readItems(context), config.condition, bindings) } }
}
