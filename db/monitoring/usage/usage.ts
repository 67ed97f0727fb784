import { sql } from 'kysely'
import type { Store } from '../../scope.ts'

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
  /** The calls whose cost is unknown: the cost is without them. */
  unpricedCalls: number
}

/** Whether the cost of a row of `model_calls c` is unknown. A call that may still be under way does not count yet. */
export const IS_UNPRICED = sql`case when c.cost is not null then false when c.status <> 'OPEN' then true
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

/** What an execution's calls took, as a column of a select from `executions`: JSON of Sums; null if it has made none. */
export const RUN_SUMS = sql<Sums | null>`(select to_json(s) from (
  select ${SUMS} from model_calls c where c.execution_id = executions.id having count(*) > 0) s)`

/** What all calls of an execution took so far; zeros if it has made none. */
export async function readRunUsage({ db }: Pick<Store, 'db'>, executionId: string): Promise<Usage> {
  const { rows } = await sql<Sums>`
    select ${SUMS} from model_calls c where c.execution_id = ${executionId}`.execute(db)
  return readSums(rows[0]!)
}

/** The tokens of all calls of an ended execution; null if it has made some, and no vendor has reported what they took. */
export async function readReportedTokens(
  { db }: Pick<Store, 'db'>,
  executionId: string,
): Promise<{ inputTokens: number | null; outputTokens: number | null }> {
  const { rows } = await sql<{ inputTokens: number | null; outputTokens: number | null }>`
    select case when is_known then input end as input_tokens, case when is_known then output end as output_tokens
    from (select coalesce(sum(input_tokens), 0)::bigint as input, coalesce(sum(output_tokens), 0)::bigint as output,
        count(*) filter (where input_tokens is null) = 0
          or count(*) filter (where input_tokens is not null and status <> 'REFUSED') > 0 as is_known
      from model_calls where execution_id = ${executionId}) s`.execute(db)
  return rows[0]!
}

/** Which record a usage is of. `step` is null for that of a node, which has its steps in it. */
export type RecordKey = { nodeId: string; iteration: string; step: number | null }

/** The sums of a record, or with `level` 3 those of its execution. */
export type RecordSums = RecordKey & Sums & { level: 0 | 1 | 3 }

/** The columns of RecordSums over rows of `model_calls c`, and what they are grouped by. */
const RECORD_SUMS = sql`c.node_id as "nodeId", c.iteration, c.step, grouping(c.node_id, c.step) as level, ${SUMS}`
const BY_RECORD = sql`(c.node_id, c.iteration), (c.node_id, c.iteration, c.step)`

/**
 * What an execution's calls took, in all and by record, as a column of a select from `executions e`: JSON of RecordSums;
 * null if it has made none.
 */
export const ALL_SUMS = sql`(select json_agg(s) from (
  select ${RECORD_SUMS} from model_calls c where c.execution_id = e.id
  group by grouping sets ((), ${BY_RECORD}) having count(*) > 0) s)`

/**
 * What the calls of an execution's records took. An agent's own record has the sum of its steps.
 */
export async function readRecordUsage(
  { db }: Pick<Store, 'db'>,
  executionId: string,
  records: RecordKey[],
): Promise<UsageOf> {
  const nodeIds = records.map(({ nodeId }) => nodeId)
  const iterations = records.map(({ iteration }) => iteration)
  const { rows } = await sql<RecordSums>`
    select ${RECORD_SUMS} from model_calls c where c.execution_id = ${executionId}
      and (c.node_id, c.iteration) in (select * from unnest(${nodeIds}::text[], ${iterations}::text[]))
    group by grouping sets (${BY_RECORD})`.execute(db)
  return findUsage(rows)
}

/** Finds the usage of a record, or with null that of the execution; undefined if it has called no model. */
type UsageOf = (record: RecordKey | null) => Usage | undefined

export function findUsage(rows: RecordSums[]): UsageOf {
  const known = new Map(rows.map(({ level, ...row }) => [level === 3 ? null : nameRecord(row), row]))
  return (record) => {
    const sums = known.get(record && nameRecord(record))
    return sums && readSums(sums)
  }
}

const nameRecord = ({ nodeId, iteration, step }: RecordKey) => `${nodeId}#${iteration}!${step ?? ''}`
