import type { NodeRunner } from './kit/node.ts'

/** IF_ELSE: passes its input on by the handle `true` or `false`, as its condition says. */
export const runIfElse: NodeRunner = async ({ config, input, bindings, evaluator }) => {
  return { output: input, handle: String(await evaluator.test(config.condition, bindings)) }
}
