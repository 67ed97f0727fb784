import * as v from 'valibot'
import type { Usage } from '../../../db/monitoring/usage/usage.ts'
import { countSchema } from '../../http/responses.ts'

export const costSchema = v.pipe(
  v.nullable(v.pipe(v.number(), v.minValue(0))),
  v.description(
    'US dollars, of all calls whose cost is known. Null if there are calls, and it is known of none of them',
  ),
  v.examples([0.0125]),
)

const cachedTokens = v.pipe(
  countSchema,
  v.description('Those of the input that were read from a cache, at its price'),
)
const reasoningTokens = v.pipe(
  countSchema,
  v.description('Those of the output that the model spent on reasoning'),
)
const calls = v.pipe(
  countSchema,
  v.description('All calls that were sent, also those that were refused or cut off'),
)
const unpricedCalls = v.pipe(
  countSchema,
  v.description(
    'The calls whose cost is not known, because the model has no price or the vendor reported no tokens. The ' +
      'cost is without them',
  ),
)

/** The fields of a Usage, as answers have them. */
export const usageFields = {
  inputTokens: countSchema,
  outputTokens: countSchema,
  cost: costSchema,
  cachedTokens,
  reasoningTokens,
  calls,
  unpricedCalls,
}

/** The usage of an execution or of one of its records. */
export const UsageSchema = v.pipe(
  v.object(usageFields),
  v.title('ModelUsage'),
  v.description(
    'What calls to models took, with those of all attempts. A record that has called no model has none; that of an ' +
      'agent is the sum of its steps',
  ),
)

/** The same fields with the names that a total has. */
export const totalFields = {
  totalInputTokens: countSchema,
  totalOutputTokens: countSchema,
  totalCost: costSchema,
  totalCachedTokens: cachedTokens,
  totalReasoningTokens: reasoningTokens,
  calls,
  unpricedCalls,
}

/** A usage with the names that a total has. */
export function showTotal(usage: Usage) {
  const { inputTokens, outputTokens, cost, cachedTokens, reasoningTokens, calls, unpricedCalls } = usage
  return {
    totalInputTokens: inputTokens,
    totalOutputTokens: outputTokens,
    totalCost: cost,
    totalCachedTokens: cachedTokens,
    totalReasoningTokens: reasoningTokens,
    calls,
    unpricedCalls,
  }
}
