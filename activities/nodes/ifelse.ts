import type { Conditions } from '../../workflows/nodes/conditions.ts'
import { testConditions } from './kit/conditions.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'

/** IF_ELSE: passes its input on by the handle `true` or `false`, as its condition or its conditions say. */
export const runIfElse: NodeRunner = async (context) => {
  const { config, input } = context
  return { output: input, handle: String(await testEither(context, config)) }
}

/** Whether `condition` or the list `conditions` holds. */
export async function testEither(
  context: Pick<NodeContext, 'evaluator' | 'bindings'>,
  { condition, conditions }: { condition?: unknown; conditions?: unknown },
): Promise<boolean> {
  const { evaluator, bindings } = context
  if (conditions === undefined) return evaluator.test(condition, bindings)
  return testConditions((await evaluator.render(conditions, bindings)) as Conditions, context)
}
