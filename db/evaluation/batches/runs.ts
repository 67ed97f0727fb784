import { createHash } from 'node:crypto'
import { type RawBuilder, sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { change } from '../../change.ts'
import { type Db, json, type Tx } from '../../connection.ts'
import { cancelOpen } from '../../executions/cancel.ts'
import { Fault, missing } from '../../fault.ts'
import { lockFor } from '../../locks.ts'
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

/** The number of batches of a team that may be open, so that a team cannot fill the database with cases. */
export const MOST_OPEN_BATCHES = 20
const INSERTED_AT_ONCE = 250

const COLUMNS = sql`r.id, r.workflow_id, r.workflow_version, r.name, r.status, r.reason, r.total_cases, r.completed_cases,
  r.passed_cases, r.failed_cases, r.provider as judge_provider, r.model as judge_model,
  r.credential_id as judge_credential_id, (select coalesce(json_agg(d->>'name'), '[]') from json_array_elements(r.dimensions) d)
  as eval_dimensions, r.pass_threshold, r.max_cost::float8 as max_cost, r.run_workflow, r.concurrency, r.input_tokens,
  r.output_tokens, r.cost::float8 as cost, r.calls, r.unpriced_calls, r.started_by_name as started_by, r.created_at,
  r.started_at, r.completed_at`

/**
 * Accepts a batch (BUILDER) with its cases, which the service then works on. A request with the same `idempotencyKey`
 * and the same content gets the batch of the first. Throws NOT_FOUND, and CONFLICT if the key was used with other
 * content, or if too many batches of the team are open.
 */
export async function createBatchRun(
  scope: Scope,
  workflowId: string,
  settings: BatchSettings,
  given: { cases: NewCase[]; idempotencyKey: string | undefined; asked: unknown },
): Promise<BatchRun> {
  const { store, actor } = scope
  const { cases, idempotencyKey: key = null } = given
  const teamId = await readOwner(store, 'workflows', workflowId)
  const { values, hash } = await prepareCases(cases, given.asked)
  return change(scope, 'BATCH_EVALUATION_CREATED', teamId, async (tx) => {
    const workflow = await tx
      .selectFrom('workflows')
      .select('version')
      .where('id', '=', workflowId)
      .forKeyShare()
      .executeTakeFirst()
    if (!workflow) throw missing('workflow')
    // Requests with the same key, and those that count, go one after the other.
    await lockFor(tx, 'newBatches', teamId)
    const earlier = key === null ? undefined : await findByKey(tx, workflowId, key)
    if (earlier && !earlier.hash.equals(hash))
      throw new Fault('CONFLICT', 'This Idempotency-Key was used with another body')
    if (earlier) return { result: await readOne(tx, earlier.id), unchanged: true }
    await demandRoom(tx, teamId)
    const id = uuid()
    const { dimensions, ...rest } = settings
    await tx
      .insertInto('batchRuns')
      .values({
        ...{ id, teamId, workflowId, ...rest, dimensions: json(dimensions), totalCases: cases.length },
        ...{ workflowVersion: workflow.version, userId: scope.userId },
        ...{ startedByKind: actor.kind, startedById: actor.id, startedByName: actor.name },
        tokenId: scope.access?.kind === 'SDK_TOKEN' ? scope.access.id : null,
        ...{ idempotencyKey: key, idempotencyHash: key === null ? null : hash },
      })
      .execute()
    for (let from = 0; from < values.length; from += INSERTED_AT_ONCE) {
      const rows = values.slice(from, from + INSERTED_AT_ONCE).map(({ input, ...value }, at) => {
        return { ...value, id: uuid(), runId: id, place: from + at, input: sql<never>`${input}::json` }
      })
      await tx.insertInto('batchCases').values(rows).execute()
    }
    const { name, provider, model, credentialId, maxCost, runWorkflow } = settings
    const details = {
      workflowId,
      name,
      cases: cases.length,
      provider,
      model,
      credentialId,
      maxCost,
      runWorkflow,
    }
    return { result: await readOne(tx, id), resourceId: id, details }
  })
}

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

async function readOne(tx: Tx, id: string): Promise<BatchRun> {
  const run = await findBatch(tx, id)
  if (!run) throw missing('batch')
  return run
}

async function findByKey(tx: Tx, workflowId: string, key: string) {
  const earlier = await tx
    .selectFrom('batchRuns')
    .select(['id', 'idempotencyHash'])
    .where('workflowId', '=', workflowId)
    .where('idempotencyKey', '=', key)
    .executeTakeFirst()
  return earlier && { id: earlier.id, hash: earlier.idempotencyHash! }
}

async function demandRoom(tx: Tx, teamId: string): Promise<void> {
  const { rows } = await sql<{ open: number }>`select count(*)::int as open from batch_runs
    where team_id = ${teamId} and status in ('PENDING', 'RUNNING')`.execute(tx)
  if (rows[0]!.open < MOST_OPEN_BATCHES) return
  throw new Fault(
    'CONFLICT',
    `The team has ${MOST_OPEN_BATCHES} batches under way already: wait, or cancel some`,
  )
}

/** The rows of cases, and a hash of all that was asked for. There may be 16 MB: it is done in pieces. */
async function prepareCases(cases: NewCase[], asked: unknown) {
  const whole = createHash('sha256').update(JSON.stringify(asked) ?? '')
  const values: {
    input: string
    inputHash: Buffer
    actualOutput: string | null
    expectedOutput: string | null
  }[] = []
  let since = performance.now()
  for (const { input, output, expected } of cases) {
    const inputHash = createHash('sha256').update(writeSorted(input)).digest()
    whole.update(inputHash).update(JSON.stringify([output, expected]))
    values.push({ input: JSON.stringify(input), inputHash, actualOutput: output, expectedOutput: expected })
    if (performance.now() - since < SLICE_MS) continue
    await new Promise((resolve) => setImmediate(resolve))
    since = performance.now()
  }
  return { values, hash: whole.digest() }
}

const SLICE_MS = 8

/** JSON with the keys of each object in their order. */
const writeSorted = (value: unknown): string =>
  JSON.stringify(value, (_key, at: unknown) => {
    if (typeof at !== 'object' || at === null || Array.isArray(at)) return at
    return Object.fromEntries(Object.entries(at).sort(([a], [b]) => (a < b ? -1 : 1)))
  })

/** Whether those who started batches `r` may still do so; false of none that has gone. */
export function startersMay(): RawBuilder<boolean> {
  return sql<boolean>`(r.user_id is not null and exists (
    select from members m where m.team_id = r.team_id and m.user_id = r.user_id and m.role in ('BUILDER', 'ADMIN'))
    and (r.token_id is null or exists (select from sdk_tokens t where t.id = r.token_id and t.revoked_at is null
      and (t.expires_at is null or t.expires_at > now()) and t.role in ('BUILDER', 'ADMIN'))))`
}
