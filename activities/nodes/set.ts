import { isObject } from '../../workflows/json.ts'
import { invalidConfig } from './kit/failure.ts'
import type { NodeRunner } from './kit/node.ts'

/** SET: outputs exactly its rendered values. */
export const runSet: NodeRunner = async ({ config, bindings, evaluator }) => {
  if (!isObject(config.values)) throw invalidConfig('values', 'must be an object')
  return { output: await evaluator.render(config.values, bindings) }
}
