import { isObject } from '../../workflows/inputs.ts'
import { invalidConfig } from './failure.ts'
import type { NodeRunner } from './node.ts'

/** SET: outputs exactly its rendered values. */
export const runSet: NodeRunner = async ({ config, bindings, evaluator }) => {
  if (!isObject(config.values)) throw invalidConfig('values', 'must be an object')
  return { output: await evaluator.render(config.values, bindings) }
}
