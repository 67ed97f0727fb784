import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { change } from '../../change.ts'
import { json, type Tx } from '../../connection.ts'
import { Fault, missing } from '../../fault.ts'
import { lockFor } from '../../locks.ts'
import { readOwner } from '../../owners.ts'
import type { Scope } from '../../scope.ts'
import { type BatchRun, type BatchSettings, type NewCase, readOne } from './runs.ts'

/** The number of batches of a team that may be open, so that a team cannot fill the database with cases. */
export const MOST_OPEN_BATCHES = 20
const INSERTED_AT_ONCE = 250

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
