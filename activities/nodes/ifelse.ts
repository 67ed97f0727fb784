import type { Conditions } from '../../workflows/nodes/conditions.ts'
import { testConditions } from './kit/conditions.ts'
import { workedItem } from './kit/items.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'
import { getField } from './kit/paths.ts'

/** IF_ELSE: passes its input on by the handle `true` or `false`, as its condition or its conditions say. */
export const runIfElse: NodeRunner = async (context) => {
  const { config, input } = context
  return { output: input, handle: String(await testEither(context, config)) }
}

/** Whether `condition` or the list `conditions` holds. */
export async function testEither(
  context: Pick<NodeContext, 'evaluator' | 'bindings' | 'input'>,
  { condition, conditions }: { condition?: unknown; conditions?: unknown },
): Promise<boolean> {
  const { evaluator, bindings } = context
  if (conditions === undefined) return evaluator.test(condition, bindings)
  const rendered = (await evaluator.render(conditions, bindings)) as Conditions
  return testConditions(markMissing(conditions as Conditions, rendered, workedItem(context)), context)
}

const PATH = /^=\{\{\s*\$json\.([\w.]+)\s*\}\}$/

/**
 * Conditions in which what is missing is undefined, and not null: null counts as the number 0, as JavaScript has
 * it, and what is missing as no number. It is missing if a plain path leads nowhere, or an expression to nothing.
 */
function markMissing(given: Conditions, rendered: Conditions, item: unknown): Conditions {
  const mark = (text: unknown, value: unknown) => {
    if (value !== null || typeof text !== 'string') return value
    const [, path] = PATH.exec(text) ?? []
    return path === undefined ? undefined : getField(item, path)
  }
  const conditions = rendered.conditions.map((test, i) => ({
    ...test,
    left: mark(given.conditions[i]?.left, test.left),
    right: mark(given.conditions[i]?.right, test.right),
  }))
  return { ...rendered, conditions }
}
