import type { NodeRunner } from './kit/node.ts'

/** TRANSFORM: outputs the value of its expression; null if it finds nothing. */
export const runTransform: NodeRunner = async ({ config, bindings, evaluator }) => {
  return { output: await evaluator.evaluate(config.expression, bindings) }
}
