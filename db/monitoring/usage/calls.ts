import { sql } from 'kysely'
import { write } from '../../change.ts'
import { json } from '../../connection.ts'
import { IS_NO_TEST } from '../../executions/triggers.ts'
import type { Store } from '../../scope.ts'
import { cleanText } from '../../text.ts'

/** The workflow of calls for guardrails outside of executions: none. */
export const NO_WORKFLOW = '00000000-0000-0000-0000-000000000000'

/** The node of calls to a judge. A workflow may have one of this name; its activities have other ones than `nameJudging`. */
export const JUDGING_NODE = 'evaluation'

/** The activity of calls to a judge for a dimension. */
export const nameJudging = (dimension: string) => `${JUDGING_NODE} ${dimension}`

const IS_JUDGING = sql`(c.node_id = ${sql.lit(JUDGING_NODE)} and c.activity_id like ${sql.lit(nameJudging('%'))})`

/** Whether a row of `model_calls c` is of an execution, and its `execution_id` the id of one. */
export const IS_OF_RUN = sql`(c.workflow_id <> ${sql.lit(NO_WORKFLOW)} and not ${IS_JUDGING})`

/** Whether a row of `model_calls c` counts for alerts: not what evaluations, playbooks and tests of drafts have begun. */
export const IS_WATCHED = sql`(not ${IS_JUDGING} and coalesce((
  select ${IS_NO_TEST} from executions e where e.id = c.execution_id), true))`

/**
 * Who calls a model: an attempt of a node, or of a step of an agent. Outside of executions the workflow is NO_WORKFLOW, and
 * the execution's id is the call's own. A judge has the workflow's id, and instead of an execution's that of the evaluation
 * or of the case.
 */
export type ModelCaller = {
  executionId: string
  activityId: string
  /** As Temporal counts them. */
  attempt: number
  /** A random UUID of this try to carry out the attempt. */
  caller: string
  teamId: string
  workflowId: string
  nodeId: string
  iteration: string
  step: number | null
}

/** What a call is made to. */
export type CalledModel = { provider: string; model: string; credentialId: string | null }

/** How a call has ended. Tokens are null if the vendor has reported none, the cost if it is not known. */
export type ModelCallEnd = {
  status: string
  tokens: {
    input: number
    output: number
    cached: number
    cacheWrite: number
    reasoning: number
  } | null
  /** US dollars, as a decimal number of at most ten places. */
  cost: string | null
  price: unknown
  firstMs: number | null
  latencyMs: number
  /** What it took that is not counted in tokens. */
  units?: { unit: string; count: number }
}

const MOST_MODEL = 200

/**
 * Notes a call that is about to be sent, the `call`th of its attempt. May be repeated. What others of the same activity
 * have left open is lost: only one attempt is made at a time. Should one of them still hear of its end, it says so.
 */
export async function noteModelCall(
  store: Store,
  by: ModelCaller,
  call: number,
  { provider, model, credentialId }: CalledModel,
): Promise<void> {
  const { executionId, activityId, attempt, caller, teamId, workflowId, nodeId, iteration, step } = by
  await write(store, (tx) =>
    sql`with lost as (
      update model_calls set status = 'LOST' where execution_id = ${executionId} and activity_id = ${activityId}
        and status = 'OPEN' and caller <> ${caller})
    insert into model_calls (execution_id, activity_id, attempt, caller, call, team_id, workflow_id, node_id, iteration,
      step, provider, model, credential_id)
    values (${executionId}, ${activityId}, ${attempt}, ${caller}, ${call}, ${teamId}, ${workflowId}, ${nodeId},
      ${iteration}, ${step}, ${provider}, ${cleanText(model, MOST_MODEL)}, ${credentialId})
    on conflict do nothing`.execute(tx),
  )
}

/** Notes how a call has ended. May be repeated, and come after others have taken it for lost. */
export async function noteModelCallEnd(
  store: Store,
  { executionId, activityId, attempt, caller }: ModelCaller,
  call: number,
  { status, tokens, cost, price, firstMs, latencyMs, units }: ModelCallEnd,
): Promise<void> {
  await write(store, (tx) =>
    sql`update model_calls set status = ${status}, input_tokens = ${tokens?.input ?? null},
      output_tokens = ${tokens?.output ?? null}, cached_tokens = ${tokens?.cached ?? null},
      cache_write_tokens = ${tokens?.cacheWrite ?? null}, reasoning_tokens = ${tokens?.reasoning ?? null},
      cost = ${cost}, price = ${price === null ? null : json(price)}, first_ms = ${firstMs}, latency_ms = ${latencyMs},
      unit = ${units?.unit ?? null}, units = ${units?.count ?? null}
    where execution_id = ${executionId} and activity_id = ${activityId} and attempt = ${attempt}
      and caller = ${caller} and call = ${call}`.execute(tx),
  )
}

/**
 * The usage of earlier attempts of the same activity. `lost` are the calls whose usage is unknown, because they were
 * cut off, or never ended: they are in neither sum.
 */
export async function readEarlierCalls(
  { db }: Pick<Store, 'db'>,
  { executionId, activityId, caller }: Pick<ModelCaller, 'executionId' | 'activityId' | 'caller'>,
): Promise<{ tokens: number; cost: number; lost: number }> {
  const { rows } = await sql<{ tokens: string | number; cost: string | number; lost: number }>`
    select coalesce(sum(input_tokens + output_tokens), 0) as tokens, coalesce(sum(cost), 0) as cost,
      count(*) filter (where input_tokens is null)::int as lost
    from model_calls where execution_id = ${executionId} and activity_id = ${activityId}
      and caller <> ${caller}`.execute(db)
  const { tokens, cost, lost } = rows[0]!
  return { tokens: Number(tokens), cost: Number(cost), lost }
}
