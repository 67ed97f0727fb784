import type { NodeRunner } from './node.ts'

/**
 * FILTER: outputs {items}, those for which the condition holds. A value that is no array counts as the one item
 * and nothing as none: JSONata gives a single match without its array.
 */
export const runFilter: NodeRunner = async ({ config, bindings, evaluator }) => {
  const value = await evaluator.render(config.items, bindings)
  const items = Array.isArray(value) ? value : value === null || value === undefined ? [] : [value]
  return { output: { items: await evaluator.filter(items, config.condition, bindings) } }
}
