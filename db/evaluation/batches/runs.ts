import { type RawBuilder, sql } from 'kysely'
import { change } from '../../change.ts'
import type { Db, Tx } from '../../connection.ts'
import { cancelOpen } from '../../executions/cancel.ts'
import { missing } from '../../fault.ts'
import { readOwner } from '../../owners.ts'
import { makePage, type Page, type PageRequest } from '../../page.ts'
import { demand, type Scope } from '../../scope.ts'
import type { EvalProvider } from '../providers.ts'

export const BATCH_STATUSES = ['PENDING', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED'] as const
export type BatchStatus = (typeof BATCH_STATUSES)[number]

/** What a judge is asked about the output of a case. */
export type BatchDimension = { name: string; rubric: string }

/** How a batch is judged. Costs are in US dollars. */
export type BatchSettings = {
  name: string
  provider: EvalProvider
  model: string
  credentialId: string
  dimensions: BatchDimension[]
  /** 1 to 5. */
  passThreshold: number
  maxCost: number | null
  runWorkflow: boolean
  /** How many cases may be under way at the same time. */
  concurrency: number
}

export type NewCase = { input: Record<string, unknown>; output: string | null; expected: string | null }

/** A batch as the API shows it. */
export type BatchRun = {
  id: string
  workflowId: string
  workflowVersion: number
  name: string
  status: BatchStatus
  /** Why it is FAILED or CANCELLED. */
  reason: string | null
  totalCases: number
  /** Those that have ended: passedCases and failedCases together. */
  completedCases: number
  passedCases: number
  failedCases: number
  judgeProvider: EvalProvider
  judgeModel: string
  judgeCredentialId: string
  evalDimensions: string[]
  passThreshold: number
  maxCost: number | null
  runWorkflow: boolean
  concurrency: number
  inputTokens: number
  outputTokens: number
  cost: number
  calls: number
  unpricedCalls: number
  startedBy: string
  createdAt: Date
  startedAt: Date | null
  completedAt: Date | null
}

const COLUMNS = sql`r.id, r.workflow_id, r.workflow_version, r.name, r.status, r.reason, r.total_cases, r.completed_cases,
  r.passed_cases, r.failed_cases, r.provider as judge_provider, r.model as judge_model,
  r.credential_id as judge_credential_id, (select coalesce(json_agg(d->>'name'), '[]') from json_array_elements(r.dimensions) d)
  as eval_dimensions, r.pass_threshold, r.max_cost::float8 as max_cost, r.run_workflow, r.concurrency, r.input_tokens,
  r.output_tokens, r.cost::float8 as cost, r.calls, r.unpriced_calls, r.started_by_name as started_by, r.created_at,
  r.started_at, r.completed_at`

/** One page of a workflow's batches, the newest first (VIEWER). Throws NOT_FOUND. */
export async function listBatches(
  scope: Scope,
  workflowId: string,
  { page, size, status }: PageRequest & { status?: BatchStatus | undefined },
): Promise<Page<BatchRun>> {
  demand(scope, await readOwner(scope.store, 'workflows', workflowId), 'VIEWER')
  const { db } = scope.store
  const chosen = sql`r.workflow_id = ${workflowId} and (${status ?? null}::text is null or r.status = ${status ?? null})`
  const counted = await sql<{ total: number }>`
    select count(*)::int as total from batch_runs r where ${chosen}`.execute(db)
  const { rows } = await sql<BatchRun>`select ${COLUMNS} from batch_runs r where ${chosen}
    order by r.created_at desc, r.id desc limit ${size} offset ${page * size}`.execute(db)
  return makePage(rows, counted.rows[0]!.total, { page, size })
}

/** Reads a batch of the workflow (VIEWER). Throws NOT_FOUND. */
export async function readBatchRun(scope: Scope, { workflowId, runId }: BatchPath): Promise<BatchRun> {
  demand(scope, await readOwner(scope.store, 'workflows', workflowId), 'VIEWER')
  const run = await findBatch(scope.store.db, runId)
  if (run?.workflowId !== workflowId) throw missing('batch')
  return run
}

export type BatchPath = { workflowId: string; runId: string }

/** A batch, for the service itself; undefined if it does not exist. */
export async function findBatch(db: Db, id: string): Promise<BatchRun | undefined> {
  return (await sql<BatchRun>`select ${COLUMNS} from batch_runs r where r.id = ${id}`.execute(db)).rows[0]
}

/**
 * Ends an open batch (BUILDER), and the executions that its cases wait for; calls to the judge that are under way end, and
 * count. One that has ended stays as it is. Throws NOT_FOUND.
 */
export async function cancelBatch(scope: Scope, path: BatchPath): Promise<BatchRun> {
  const teamId = await readOwner(scope.store, 'workflows', path.workflowId)
  return change(scope, 'BATCH_EVALUATION_CANCELLED', teamId, async (tx) => {
    const run = await lockBatch(tx, path)
    if (!isBatchOpen(run.status)) return { result: run, unchanged: true }
    await endBatch(tx, run.id, 'CANCELLED', 'Somebody has cancelled it')
    const details = { workflowId: path.workflowId, name: run.name, completedCases: run.completedCases }
    return { result: await readOne(tx, run.id), resourceId: run.id, details }
  })
}

/** Deletes a batch with its results (BUILDER), and cancels it before if it is open. Throws NOT_FOUND. */
export async function deleteBatch(scope: Scope, path: BatchPath): Promise<void> {
  const teamId = await readOwner(scope.store, 'workflows', path.workflowId)
  await change(scope, 'BATCH_EVALUATION_DELETED', teamId, async (tx) => {
    const run = await lockBatch(tx, path)
    await endBatch(tx, run.id, 'CANCELLED', 'Somebody has deleted it')
    await tx.deleteFrom('batchRuns').where('id', '=', run.id).execute()
    const details = { workflowId: path.workflowId, name: run.name, cases: run.totalCases }
    return { result: undefined, resourceId: run.id, details }
  })
}

/** Notes that a user exports the results of a batch (VIEWER). Throws NOT_FOUND. */
export async function exportBatch(scope: Scope, path: BatchPath, format: string): Promise<BatchRun> {
  const run = await readBatchRun(scope, path)
  const teamId = await readOwner(scope.store, 'workflows', path.workflowId)
  await change(scope, 'BATCH_EVALUATION_EXPORTED', teamId, async () => {
    const details = { workflowId: path.workflowId, name: run.name, format }
    return { result: undefined, resourceId: run.id, details }
  })
  return run
}

/** The error message of executions that their batch no longer waits for. */
export const BATCH_ENDED = 'The batch evaluation that waited for it has ended'

export const isBatchOpen = (status: BatchStatus) => status === 'PENDING' || status === 'RUNNING'

/**
 * Ends a batch that is open, and cancels the executions that its cases wait for. Judged cases stay, and a case that is
 * being judged may still end.
 */
export async function endBatch(
  tx: Tx,
  id: string,
  status: 'FAILED' | 'CANCELLED',
  reason: string,
): Promise<void> {
  const { rows } =
    await sql`update batch_runs set status = ${status}, reason = ${reason}, completed_at = now()
    where id = ${id} and status in ('PENDING', 'RUNNING') returning id`.execute(tx)
  if (rows.length === 0) return
  const waiting = await tx
    .selectFrom('batchCases')
    .select('executionId')
    .where('runId', '=', id)
    .where('status', '=', 'RUNNING')
    .where('executionCounted', '=', false)
    .execute()
  const ids = waiting.flatMap(({ executionId }) => (executionId === null ? [] : [executionId]))
  if (ids.length > 0) await cancelOpen(tx, ids, { why: BATCH_ENDED })
}

async function lockBatch(tx: Tx, { workflowId, runId }: BatchPath): Promise<BatchRun> {
  const found = await tx
    .selectFrom('batchRuns')
    .select('id')
    .where('id', '=', runId)
    .where('workflowId', '=', workflowId)
    .forUpdate()
    .executeTakeFirst()
  if (!found) throw missing('batch')
  return readOne(tx, runId)
}

/** Reads a batch that was locked or made in the transaction. Throws NOT_FOUND. */
export async function readOne(tx: Tx, id: string): Promise<BatchRun> {
  const run = await findBatch(tx, id)
  if (!run) throw missing('batch')
  return run
}

/** Whether those who started batches `r` may still do so; false of none that has gone. */
export function startersMay(): RawBuilder<boolean> {
  return sql<boolean>`(r.user_id is not null and exists (
    select from members m where m.team_id = r.team_id and m.user_id = r.user_id and m.role in ('BUILDER', 'ADMIN'))
    and (r.token_id is null or exists (select from sdk_tokens t where t.id = r.token_id and t.revoked_at is null
      and (t.expires_at is null or t.expires_at > now()) and t.role in ('BUILDER', 'ADMIN'))))`
}
