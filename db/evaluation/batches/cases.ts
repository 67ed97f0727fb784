import { randomUUID } from 'node:crypto'
import { type RawBuilder, sql } from 'kysely'
import { record, write } from '../../change.ts'
import type { Tx } from '../../connection.ts'
import { cancelOpen } from '../../executions/cancel.ts'
import { lockFor } from '../../locks.ts'
import { nameJudging } from '../../monitoring/usage/calls.ts'
import { later, postpone, type Queue, renew, selectFree, settle } from '../../queue.ts'
import type { Store } from '../../scope.ts'
import { cleanText } from '../../text.ts'
import type { EvalProvider } from '../providers.ts'
import { BATCH_ENDED, type BatchDimension, endBatch, startersMay } from './runs.ts'

/** How many cases of a team may be under way, in all its batches and all processes. */
const MOST_OF_TEAM = 10

/** How many open batches are looked at for one case. */
const MOST_LOOKED_AT = 50

/** A case that this process works on, until its claim expires. */
export type ClaimedCase = {
  id: string
  runId: string
  claim: string
  place: number
  input: Record<string, unknown>
  expectedOutput: string | null
  actualOutput: string | null
  executionId: string | null
  executionCounted: boolean
  startedAt: Date
  teamId: string
  workflowId: string
  workflowVersion: number
  provider: EvalProvider
  model: string
  credentialId: string
  dimensions: BatchDimension[]
  passThreshold: number
  runWorkflow: boolean
  startedByKind: 'USER' | 'SDK_TOKEN' | 'SYSTEM'
  startedById: string | null
}

/** The cases that are under way: to settle, renew and postpone them. The next of a batch waits for its turn instead. */
const CASES: Queue = {
  table: 'batch_cases',
  id: 'id',
  open: sql`q.status = 'RUNNING'`,
  due: 'claimed_until',
  token: 'claim',
}

/**
 * Claims a case for `leaseMs`: one whose last claim has ended, or the next of a batch. The team that has the fewest
 * cases under way comes first; `full` are teams that get none. Undefined if there is nothing to do. A batch that must
 * not go on is ended instead.
 */
export async function claimCase(
  store: Store,
  leaseMs: number,
  full: string[],
): Promise<ClaimedCase | undefined> {
  const { rows } = await sql<{ id: string; teamId: string }>`
    with open as materialized (
      select r.id, r.team_id, r.concurrency, r.created_at,
        (select count(*) from batch_cases c where c.run_id = r.id and c.status = 'RUNNING') as busy,
        exists (select from batch_cases c
          where c.run_id = r.id and c.status = 'RUNNING' and c.claimed_until < now()) as left_over,
        exists (select from batch_cases c where c.run_id = r.id and c.status = 'PENDING') as more
      from batch_runs r where r.status in ('PENDING', 'RUNNING')),
    teams as (select team_id, sum(busy) as busy from open group by team_id)
    select o.id, o.team_id from open o join teams t on t.team_id = o.team_id
    where o.team_id <> all(${full}::uuid[])
      and (o.left_over or o.more and o.busy < o.concurrency and t.busy < ${MOST_OF_TEAM})
    order by t.busy, o.busy, o.created_at limit ${MOST_LOOKED_AT}`.execute(store.db)
  for (const { id, teamId } of rows) {
    const claimed = await record(store, (tx) => claimOf(tx, { id, teamId }, leaseMs))
    if (claimed) return claimed
  }
  return undefined
}

type FoundBatch = { id: string; teamId: string }

async function claimOf(
  tx: Tx,
  { id, teamId }: FoundBatch,
  leaseMs: number,
): Promise<ClaimedCase | undefined> {
  // Those who count what is under way come one after the other.
  await lockFor(tx, 'batchClaims', teamId)
  const obstacle = await findObstacle(tx, id)
  if (obstacle) {
    await endBatch(tx, id, 'FAILED', obstacle)
    return undefined
  }
  const found = (await findLeftOver(tx, id)) ?? (await findNext(tx, { id, teamId }))
  if (found === undefined) return undefined
  const claim = randomUUID()
  await sql`update batch_runs set status = 'RUNNING', started_at = coalesce(started_at, now())
    where id = ${id} and status = 'PENDING'`.execute(tx)
  const { rows } = await sql<ClaimedCase>`
    update batch_cases c set status = 'RUNNING', claim = ${claim}, started_at = coalesce(c.started_at, now()),
      claimed_until = ${later(leaseMs)}
    from batch_runs r where c.id = ${found} and r.id = c.run_id and r.status = 'RUNNING'
    returning c.id, c.run_id, c.claim, c.place, c.input, c.expected_output, c.actual_output, c.execution_id,
      c.execution_counted, c.started_at, r.team_id, r.workflow_id, r.workflow_version, r.provider, r.model,
      r.credential_id, r.dimensions, r.pass_threshold, r.run_workflow, r.started_by_kind, r.started_by_id`.execute(
    tx,
  )
  return rows[0]
}

/** Why a batch must not go on; undefined if it may. */
async function findObstacle(tx: Tx, id: string): Promise<string | undefined> {
  const { rows } = await sql<{ spent: boolean; unpriced: boolean; may: boolean; credential: boolean }>`
    select coalesce(r.cost >= r.max_cost, false) as spent, r.max_cost is not null and r.unpriced_calls > 0 as unpriced,
      ${startersMay()} as may,
      exists (select from credentials k where k.id = r.credential_id and k.team_id = r.team_id) as credential
    from batch_runs r where r.id = ${id}`.execute(tx)
  const found = rows[0]
  if (!found) return undefined
  if (!found.may) return 'Whoever started it may no longer build workflows of the team'
  if (!found.credential) return 'The credential of its judge no longer exists'
  if (found.spent) return 'It has cost as much as maxCost allows'
  if (found.unpriced)
    return 'What some calls cost is not known, so that maxCost cannot be kept: set a price for the model'
  return undefined
}

async function findLeftOver(tx: Tx, runId: string): Promise<string | undefined> {
  return findFree(tx, {
    which: sql`q.run_id = ${runId} and q.status = 'RUNNING' and q.claimed_until < now()`,
    order: sql`q.claimed_until`,
  })
}

async function findNext(tx: Tx, { id, teamId }: FoundBatch): Promise<string | undefined> {
  return findFree(tx, {
    which: sql`q.run_id = ${id} and q.status = 'PENDING'
      and (select count(*) < r.concurrency from batch_cases c, batch_runs r
        where r.id = ${id} and c.run_id = ${id} and c.status = 'RUNNING' group by r.concurrency) is not false
      and (select count(*) from batch_cases c join batch_runs r on r.id = c.run_id
        where r.team_id = ${teamId} and r.status in ('PENDING', 'RUNNING') and c.status = 'RUNNING') < ${MOST_OF_TEAM}`,
    order: sql`q.place`,
  })
}

async function findFree(
  tx: Tx,
  query: { which: RawBuilder<unknown>; order: RawBuilder<unknown> },
): Promise<string | undefined> {
  const { rows } = await sql<{ id: string }>`${selectFree('batch_cases', { ...query, limit: 1 })}`.execute(tx)
  return rows[0]?.id
}

/**
 * Prolongs a claim. False if another process has the case, or its batch was cancelled: then leave it. With `asking`
 * also if no more calls to the judge may be made.
 */
export async function keepCase(
  store: Store,
  held: Claim,
  leaseMs: number,
  { asking = false } = {},
): Promise<boolean> {
  const where = sql`exists (select from batch_runs r where r.id = q.run_id and r.status <> 'CANCELLED'
    and (not ${asking} or r.status = 'RUNNING' and coalesce(r.cost < r.max_cost, true)))`
  return write(store, (tx) => renew(tx, CASES, held, leaseMs, { where }))
}

type Claim = Pick<ClaimedCase, 'id' | 'claim'>

/** Gives a case back: it is not claimed before `restMs` have gone by. */
export async function leaveCase(store: Store, held: Claim, restMs: number): Promise<void> {
  await write(store, (tx) => postpone(tx, CASES, held, restMs))
}

/** Notes the execution that makes the output of a case, or cancels it if its batch has ended in the meantime. */
export async function noteCaseExecution(store: Store, id: string, executionId: string): Promise<void> {
  await record(store, async (tx) => {
    const { rows } = await sql<{
      open: boolean
    }>`update batch_cases c set execution_id = ${executionId} from batch_runs r
      where c.id = ${id} and r.id = c.run_id returning r.status = 'RUNNING' as open`.execute(tx)
    if (!rows[0]?.open) await cancelOpen(tx, [executionId], { why: BATCH_ENDED })
  })
}

/** Keeps what the execution of a case has made, null if nothing, and counts once what it cost. */
export async function noteCaseOutput(
  store: Store,
  { id, runId, executionId }: Pick<ClaimedCase, 'id' | 'runId'> & { executionId: string },
  output: string | null,
): Promise<void> {
  await write(store, (tx) =>
    sql`with noted as (
      update batch_cases set actual_output = ${output}, execution_counted = true
      where id = ${id} and not execution_counted returning id),
    spent as (${spentOn(executionId, null)})
    ${addSpent(runId)}`.execute(tx),
  )
}

/** What the judge said of a case in one dimension. `score` is null if it gave no usable answer; `explanation` says why. */
export type CaseJudgement = { dimension: string; score: number | null; explanation: string; flagged: boolean }

/** The key of the question whether an output means what is expected; no dimension can have the name. */
export const GOLD_STANDARD = ':expected'

/** Keeps a judgement, and counts its tokens and its cost. An earlier judgement of the dimension stays. */
export async function saveJudgement(
  store: Store,
  { id, runId }: Pick<ClaimedCase, 'id' | 'runId'>,
  { dimension, score, explanation, flagged }: CaseJudgement,
): Promise<void> {
  await write(store, (tx) =>
    sql`with noted as (
      insert into batch_judgements (case_id, dimension, score, explanation, flagged)
      select id, ${dimension}, ${score}::int, ${cleanText(explanation, MOST_EXPLANATION)}, ${flagged}
      from batch_cases where id = ${id}
      on conflict do nothing returning case_id),
    spent as (${spentOn(id, nameJudging(dimension))})
    ${addSpent(runId)}`.execute(tx),
  )
}

const MOST_EXPLANATION = 5_000

export async function readJudgements({ db }: Store, caseId: string): Promise<CaseJudgement[]> {
  return db
    .selectFrom('batchJudgements')
    .select(['dimension', 'score', 'explanation', 'flagged'])
    .where('caseId', '=', caseId)
    .execute()
}

/** How a case has ended. `passed` is false if it FAILED. */
export type CaseEnd = {
  status: 'COMPLETED' | 'FAILED'
  reason: string | null
  compositeScore: number | null
  passed: boolean
  goldStandardMatch: boolean | null
  goldStandardRung: string | null
  goldStandardReasoning: string | null
}

/** Ends a case, and its batch with the last one. False if another process has the case. */
export async function endCase(
  store: Store,
  { runId, ...held }: Claim & { runId: string },
  end: CaseEnd,
): Promise<boolean> {
  const { status, passed } = end
  const set = sql`status = ${status}, reason = ${end.reason && cleanText(end.reason, 500)},
    composite_score = ${end.compositeScore}, passed = ${passed}, gold_standard_match = ${end.goldStandardMatch},
    gold_standard_rung = ${end.goldStandardRung},
    gold_standard_reasoning = ${end.goldStandardReasoning && cleanText(end.goldStandardReasoning, MOST_EXPLANATION)},
    completed_at = now(), claimed_until = null`
  return record(store, async (tx) => {
    if (!(await settle(tx, CASES, held, set))) return false
    const isDone = sql`r.status = 'RUNNING' and completed_cases + 1 = total_cases`
    await sql`update batch_runs r set completed_cases = completed_cases + 1,
      passed_cases = passed_cases + ${passed}::boolean::int, failed_cases = failed_cases + ${!passed}::boolean::int,
      status = case when ${isDone} then 'COMPLETED' else r.status end,
      completed_at = case when ${isDone} then now() else completed_at end
      where r.id = ${runId}`.execute(tx)
    return true
  })
}

/** What the calls to models of an execution took, or those of one activity that is told. */
function spentOn(executionId: string, activityId: string | null) {
  return sql`select coalesce(sum(input_tokens), 0) as input, coalesce(sum(output_tokens), 0) as output,
      coalesce(sum(cost), 0) as cost, count(*) as calls, 
      count(*) filter (where status = 'SUCCESS' and cost is null) as unpriced
    from model_calls where execution_id = ${executionId}
      and (${activityId}::text is null or activity_id = ${activityId})`
}

function addSpent(runId: string) {
  return sql`update batch_runs r set input_tokens = r.input_tokens + spent.input,
      output_tokens = r.output_tokens + spent.output, cost = r.cost + spent.cost, calls = r.calls + spent.calls,
      unpriced_calls = r.unpriced_calls + spent.unpriced
    from noted, spent where r.id = ${runId}`
}
