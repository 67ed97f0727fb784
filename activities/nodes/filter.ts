import { readItems } from './items.ts'
import type { NodeRunner } from './node.ts'

/** FILTER: outputs {items}, those for which the condition holds. */
export const runFilter: NodeRunner = async (context) => {
  const { config, bindings, evaluator } = context
  return { output: { items: await evaluator.filter(await readItems(context), config.condition, bindings) } }
}
