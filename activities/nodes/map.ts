import { readItems } from './items.ts'
import type { NodeRunner } from './node.ts'

/** MAP: outputs {items}, what the expression makes of each; nothing as null. */
export const runMap: NodeRunner = async (context) => {
  const { config, bindings, evaluator } = context
  return { output: { items: await evaluator.map(await readItems(context), config.expression, bindings) } }
}
