import { isObject } from '../../workflows/json.ts'
import { invalidConfig } from './kit/failure.ts'
import type { NodeRunner } from './kit/node.ts'

/** SWITCH: passes its input on by the handle of the first case whose condition holds, or by `default`. */
export const runSwitch: NodeRunner = async ({ config, input, bindings, evaluator }) => {
  if (!Array.isArray(config.cases)) throw invalidConfig('cases', 'must be an array')
  for (const [at, one] of config.cases.entries()) {
    if (!isObject(one) || typeof one.handle !== 'string')
      throw invalidConfig(`cases[${at}]`, 'must be an object with a handle')
    if (await evaluator.test(one.condition, bindings)) return { output: input, handle: one.handle }
  }
  return { output: input, handle: 'default' }
}
