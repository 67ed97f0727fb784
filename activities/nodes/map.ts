import { readItems } from './kit/items.ts'
import type { NodeRunner } from './kit/node.ts'

/** MAP: outputs {items}, the expression's value for each item; null if it finds nothing. */
export const runMap: NodeRunner = async (context) => {
  const { config, bindings, evaluator } = context
  return { output: { items: await evaluator.map(await readItems(context), config.expression, bindings) } }
}
