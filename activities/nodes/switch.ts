import { isObject } from '../../workflows/json.ts'
import { testEither } from './ifelse.ts'
import { invalidConfig, NodeFailure } from './kit/failure.ts'
import type { NodeRunner } from './kit/node.ts'

/**
 * SWITCH: passes its input on by the handle of the first case whose condition holds, or by `default`. With
 * `choose`, by the handle of the case with that number, counted from 0.
 */
export const runSwitch: NodeRunner = async (context) => {
  const { config, input, bindings, evaluator } = context
  if (!Array.isArray(config.cases)) throw invalidConfig('cases', 'must be an array')
  if (config.choose !== undefined) {
    const at = Number(await evaluator.render(config.choose, bindings))
    const chosen: unknown = config.cases[at]
    if (isObject(chosen)) return { output: input, handle: String(chosen.handle) }
    const message = `The output ${at} is not allowed. It has to be between 0 and ${config.cases.length - 1}`
    throw new NodeFailure(message, { type: 'InvalidInput' })
  }
  const handles: string[] = []
  for (const [at, one] of config.cases.entries()) {
    if (!isObject(one) || typeof one.handle !== 'string')
      throw invalidConfig(`cases[${at}]`, 'must be an object with a handle')
    if (!(await testEither(context, one))) continue
    if (config.all !== true) return { output: input, handle: one.handle }
    handles.push(one.handle)
  }
  if (handles.length > 0) return { output: input, handle: handles[0]!, handles }
  return { output: input, handle: typeof config.otherwise === 'string' ? config.otherwise : 'default' }
}
