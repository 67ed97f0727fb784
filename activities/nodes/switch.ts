import { isObject } from '../../workflows/inputs.ts'
import { invalidConfig } from './failure.ts'
import type { NodeRunner } from './node.ts'

/** SWITCH: passes its input on by the handle of the first case that holds; later cases are not looked at. */
export const runSwitch: NodeRunner = async ({ config, input, bindings, evaluator }) => {
  if (!Array.isArray(config.cases)) throw invalidConfig('cases', 'must be an array')
  for (const [at, one] of config.cases.entries()) {
    if (!isObject(one) || typeof one.handle !== 'string')
      throw invalidConfig(`cases[${at}]`, 'must name a handle')
    if (await evaluator.test(one.condition, bindings)) return { output: input, handle: one.handle }
  }
  return { output: input, handle: 'default' }
}
