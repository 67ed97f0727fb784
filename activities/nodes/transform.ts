import type { NodeRunner } from './node.ts'

/** TRANSFORM: outputs the value of its expression, nothing as null. */
export const runTransform: NodeRunner = async ({ config, bindings, evaluator }) => {
  return { output: await evaluator.evaluate(config.expression, bindings) }
}
