import { sql } from 'kysely'
import type { Store } from '../scope.ts'

/** What calls to models took. The cost is in US dollars; null if it is known of none of the calls that answered. */
export type Usage = {
  inputTokens: number
  outputTokens: number
  /** Those of the input that were read from a cache. */
  cachedTokens: number
  /** Those of the output that were spent on reasoning. */
  reasoningTokens: number
  cost: number | null
  /** Every call that was sent, also those that were refused or cut off. */
  calls: number
  /** Those of which nobody knows what they cost: the cost is without them. */
  unpricedCalls: number
}

/** Whether nobody knows what a row of `model_calls c` cost. A call that may still be under way does not count yet. */
const IS_UNPRICED = sql`case when c.cost is not null then false when c.status <> 'OPEN' then true
  else not coalesce((select e.status in ('PENDING', 'RUNNING') from executions e where e.id = c.execution_id), false) end`

/** The sums over rows of `model_calls c`, to be read with `readSums`. */
export const SUMS = sql`count(*)::int as calls, count(*) filter (where ${IS_UNPRICED})::int as unpriced,
  count(*) filter (where c.status = 'SUCCESS' and c.cost is not null)::int as priced,
  coalesce(sum(c.input_tokens), 0) as input, coalesce(sum(c.output_tokens), 0) as output,
  coalesce(sum(c.cached_tokens), 0) as cached, coalesce(sum(c.reasoning_tokens), 0) as reasoning,
  coalesce(sum(c.cost), 0) as cost`

/** The columns of SUMS as they come; a `numeric` may be a text. */
export type Sums = {
  calls: number
  unpriced: number
  priced: number
  input: number
  output: number
  cached: number
  reasoning: number
  cost: string | number
}

/** The same sums of sums, by a name of their table. */
export const SUMS_OF_SUMS = sql`sum(calls)::int as calls, sum(unpriced)::int as unpriced, sum(priced)::int as priced,
  sum(input)::bigint as input, sum(output)::bigint as output, sum(cached)::bigint as cached,
  sum(reasoning)::bigint as reasoning, sum(cost) as cost`

export function readSums({ calls, unpriced, priced, input, output, cached, reasoning, cost }: Sums): Usage {
  return {
    inputTokens: input,
    outputTokens: output,
    cachedTokens: cached,
    reasoningTokens: reasoning,
    cost: unpriced > 0 && priced === 0 ? null : Number(cost),
    calls,
    unpricedCalls: unpriced,
  }
}

/** What an execution's calls took, as a column of a select from `executions`: JSON of Sums. */
export const RUN_SUMS = sql<Sums>`(select to_json(s) from (
  select ${SUMS} from model_calls c where c.execution_id = executions.id) s)`

/** What all calls of an execution took so far; zeros if it has made none. */
export async function readRunUsage({ db }: Pick<Store, 'db'>, executionId: string): Promise<Usage> {
  const { rows } = await sql<Sums>`
    select ${SUMS} from model_calls c where c.execution_id = ${executionId}`.execute(db)
  return readSums(rows[0]!)
}

/** Which record a usage is of. `step` is null for that of a node, which has its steps in it. */
export type RecordKey = { nodeId: string; iteration: string; step?: number | null | undefined }

/**
 * What the calls of an execution's records took: undefined for a record that has called no model. An agent's own record
 * has the sum of its steps.
 */
export async function readRecordUsage(
  { db }: Pick<Store, 'db'>,
  executionId: string,
  records: RecordKey[],
): Promise<(record: RecordKey) => Usage | undefined> {
  const nodeIds = records.map(({ nodeId }) => nodeId)
  const iterations = records.map(({ iteration }) => iteration)
  const { rows } = await sql<
    Sums & { nodeId: string; iteration: string; step: number | null; whole: boolean }
  >`
    select c.node_id, c.iteration, c.step, grouping(c.step) = 1 as whole, ${SUMS} from model_calls c
    where c.execution_id = ${executionId}
      and (c.node_id, c.iteration) in (select * from unnest(${nodeIds}::text[], ${iterations}::text[]))
    group by grouping sets ((c.node_id, c.iteration), (c.node_id, c.iteration, c.step))`.execute(db)
  const known = new Map(
    rows
      .filter(({ whole, step }) => whole || step !== null)
      .map(({ nodeId, iteration, step, ...sums }) => [
        nameRecord({ nodeId, iteration, step }),
        readSums(sums),
      ]),
  )
  return (record) => known.get(nameRecord(record))
}

const nameRecord = ({ nodeId, iteration, step }: RecordKey) => `${nodeId}#${iteration}!${step ?? ''}`
