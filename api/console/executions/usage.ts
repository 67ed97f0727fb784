import { formatMoney } from '../kit/time.tsx'
import type { Execution } from './data.ts'

type Usage = NonNullable<Execution['usage']>

/** What calls to models took, in a line. */
export function tellUsage({ inputTokens, outputTokens, cost, calls, unpricedCalls }: Usage): string {
  const tokens = `${inputTokens.toLocaleString()} tokens in, ${outputTokens.toLocaleString()} out`
  const paid = cost === null ? 'cost not known' : formatMoney(cost)
  const without = cost !== null && unpricedCalls > 0 ? `, and ${unpricedCalls} of which it is not known` : ''
  return `${calls} ${calls === 1 ? 'call' : 'calls'}: ${tokens}, ${paid}${without}`
}
