import { readItems } from './kit/items.ts'
import type { NodeRunner } from './kit/node.ts'

/** MAP: outputs {items}, the expression's value for each item; null if it finds nothing. */
export const runMap: NodeRunner = async (context) => {
  const { config, bindings, evaluator } = context
  const items = await readItems(context)
  const values = await evaluator.map(items, config.expression, bindings)
  return { output: { items: values }, places: { of: items, from: [...items.keys()] } }
}
