import { invalidConfig } from '../nodes/kit/failure.ts'
import type { NodeContext } from '../nodes/kit/node.ts'
import { retryOutages } from '../run/outages.ts'
import type { Fit } from './validate.ts'

/** The most characters of JSON of a value that is held against a schema. */
const MAX_CHECKED = 16_000_000

/**
 * Holds a value against a JSON Schema, in an evaluator process with its limits. Misfits come as a list of `path:
 * message` with at most 21 entries, an empty one for a value that fits. While there are no processes it waits: the
 * value may have been paid for. Throws a NodeFailure: InvalidConfig for a schema that cannot be used, ExpressionLimit
 * for one that takes too long or too much memory, and those of `evaluator.convert`.
 */
export async function checkJson(
  { evaluator, bindings, signal }: Pick<NodeContext, 'evaluator' | 'bindings' | 'signal'>,
  schema: unknown,
  value: unknown,
): Promise<string[]> {
  const text = JSON.stringify(value) ?? 'null'
  if (text.length > MAX_CHECKED) return [`the value: has more than ${MAX_CHECKED / 1_000_000} MB of JSON`]
  const conversion = { kind: 'schema', schema: JSON.stringify(schema), value: text } as const
  const fit = (await retryOutages(signal, () => evaluator.convert(conversion, bindings))) as Fit
  if ('unusable' in fit) throw invalidConfig('schema', `cannot be used: ${fit.unusable}`)
  return fit.problems
}

/**
 * Reads a JSON Schema in an evaluator process, before anything is paid for that must fit it. Throws a NodeFailure like
 * `checkJson`.
 */
export async function demandSchema(
  context: Pick<NodeContext, 'evaluator' | 'bindings' | 'signal'>,
  schema: unknown,
): Promise<void> {
  await checkJson(context, schema, null)
}
