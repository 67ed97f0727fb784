import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { perDatabase } from '../../cache.ts'
import { change, record, write } from '../../change.ts'
import { isDatabaseAway, type Tx } from '../../connection.ts'
import { Fault, missing } from '../../fault.ts'
import { createBatches } from '../../operation/batches.ts'
import { demandStill, holdRight, rightHolds } from '../../people/rights.ts'
import type { Store } from '../../scope.ts'
import { cleanText } from '../../text.ts'
import { insertCallback } from '../callbacks.ts'
import { readIdentity } from '../executions.ts'
import { openData, writeData } from '../waits/jsontext.ts'
import { findEarlier, hashData } from './earlier.ts'
import { findPlace, type GatePlace, holdGate, NO_GATE } from './gate.ts'
import type { AnyStart, Start } from './origins.ts'
import { rememberStarted } from './runstart.ts'
import { isUnchanged, type StartableWorkflow } from './startable.ts'

/**
 * `startedAt` is when the execution was accepted. `fresh` is false if an earlier request with the same key
 * started it. `queued` is true while it waits at its workflow's limit, from where it starts by itself.
 */
export type StartedExecution = {
  executionId: string
  status: string
  startedAt: Date
  fresh: boolean
  queued: boolean
}

const MAX_WARNING = 500

/** The data written as JSON, once. */
export type WrittenStart = AnyStart & { text: string }

/**
 * Writes the execution and its START errand, or finds the one that the same key or id has started. If a user or token
 * asks for it, the caller must have checked their right, which is checked once more here. If the workflow's limit turns
 * it away, throws CONFLICT, or writes it as CANCELLED if its trigger is SCHEDULE or ERROR. Also throws CONFLICT if the
 * key was used with other data or the parent has ended, NOT_FOUND if the workflow is deleted, and UNAVAILABLE if its
 * version is.
 */
export async function addExecution(
  store: Store,
  known: StartableWorkflow,
  given: Start,
): Promise<StartedExecution> {
  let workflow = known
  const start: WrittenStart = { ...given, text: writeData(given.data) }
  const awaited = start.parent && !start.parent.detached
  // Without a retry, an execution deleted between the two statements would be neither found nor made.
  for (let attempt = 1; attempt <= 3; attempt++) {
    const added = await (workflow.settings.concurrency ||
    awaited ||
    start.prepare ||
    start.adopt ||
    start.act ||
    start.callback
      ? insertGuarded(store, workflow, start)
      : insertUngated(store, workflow, start)
    ).catch(rethrowMissing)
    if (added) rememberStarted(store, workflow, start, added)
    else if (start.right) await write(store, (tx) => demandStill(tx, start.right!, workflow.teamId))
    const started = added ?? (await findEarlier(store.db, workflow.id, start))
    if (started) return started
    if (start.renew) workflow = await start.renew()
  }
  const cause = findCause(start)
  if (cause !== null && !(await readIdentity(store, cause))) throw missing('execution')
  throw new Fault('CONFLICT', 'The execution with this Idempotency-Key is being deleted')
}

/**
 * Inserts subject to the workflow's limit, only while the execution that waits for this one is open, with its
 * callback, and with an audit entry if it is an act.
 */
function insertGuarded(
  store: Store,
  workflow: StartableWorkflow,
  start: WrittenStart,
): Promise<StartedExecution | undefined> {
  const { parent, data, prepare, act, right, callback } = start
  const add = async (tx: Tx) => {
    if (right) await holdRight(tx, right, workflow.teamId)
    if (prepare) {
      if (await findEarlier(tx, workflow.id, start)) return undefined
      await prepare(tx)
    }
    if (parent && !parent.detached) {
      // The lock keeps the parent from ending before our row is there to be cancelled with it.
      const open = await sql`select from executions
        where id = ${parent.executionId} and status in ('PENDING', 'RUNNING') for share`.execute(tx)
      if (open.rows.length === 0)
        throw new Fault('CONFLICT', 'The execution that waits for this one has ended')
    }
    const gate = await holdGate(tx, workflow.id, () => openData(data), start.draft)
    // A repeated call must not be turned away, nor take another execution's place.
    if (gate && (await findEarlier(tx, workflow.id, start))) return undefined
    const place = gate ? await findPlace(tx, gate, start) : NO_GATE
    const [added] = await insertExecutions(tx, [{ workflow, start, place, isHeld: true }])
    const { teamId } = workflow
    if (added) await start.adopt?.(tx, added.executionId)
    if (added && callback) await insertCallback(tx, { executionId: added.executionId, teamId }, callback)
    return added
  }
  if (!act) return record(store, add)
  return change(act.scope, act.name, workflow.teamId, async (tx) => {
    const result = await add(tx)
    if (!result) return { result, unchanged: true }
    const details = { workflowId: workflow.id, version: workflow.version, retriedFrom: start.retriedFrom }
    return { result, resourceId: result.executionId, details }
  })
}

/** An execution to be written. `isHeld`: the transaction holds the right already. */
type NewExecution = { workflow: StartableWorkflow; start: WrittenStart; place: GatePlace; isHeld?: boolean }

/** Larger ones are written alone: a statement for many is no larger than others. */
const MAX_SHARED_CHARS = 20_000
const MOST_TOGETHER = 8

/**
 * Writes an execution without a gate by itself, or in one statement with those of its workflow and kind of right that
 * come while one before is being written: where that one has to wait, because the workflow is being deleted, no others
 * do. Returns undefined as insertExecutions does.
 */
export function insertUngated(
  store: Store,
  workflow: StartableWorkflow,
  start: WrittenStart,
): Promise<StartedExecution | undefined> {
  const one = { workflow, start, place: NO_GATE }
  // What waits for another transaction waits alone: for the same key or id, and for the row of a cause.
  const waits = start.id ?? start.idempotencyKey ?? start.once ?? findCause(start)
  if (waits || start.text.length > MAX_SHARED_CHARS) return writeAlone(store, one)
  // Each connection keeps the statements that it has prepared: a mix of rights would make one of each order.
  const access = start.right && (start.right.scope.access ? 'held' : 'own')
  return insertsInTurn(store.db)(`${workflow.id} ${access}`, one).then((written) => written())
}

const writeAlone = async (store: Pick<Store, 'db'>, one: NewExecution) =>
  (await write(store, (tx) => insertExecutions(tx, [one])))[0]

/** The output says what became of each: it returns it, or throws. */
const insertsInTurn = perDatabase((db) =>
  createBatches(async (_key, all: NewExecution[]): Promise<(() => StartedExecution | undefined)[]> => {
    try {
      const written = await write({ db }, (tx) => insertExecutions(tx, all))
      return written.map((one) => () => one)
    } catch (error) {
      if (all.length === 1 || isDatabaseAway(error)) throw error
      // What is wrong with one must not harm the others.
      const each = await Promise.allSettled(all.map((one) => writeAlone({ db }, one)))
      return each.map((done) => () => {
        if (done.status === 'rejected') throw done.reason
        return done.value
      })
    }
  }, MOST_TOGETHER),
)

/** The columns of an execution that are written as they are given, in the order of listColumns. */
const GIVEN =
  sql.raw(`team_id, workflow_id, workflow_name, workflow_version, node_count, trigger, trigger_node_id, timeout_ms,
  input_data, input_bytes, started_by_kind, started_by_id, idempotency_key, idempotency_hash, traceparent,
  tracestate, parent_id, parent_key, depth, detached, retried_from, recovery, given, only_node, draft, keep_inputs,
  keep_outputs, input_warning`)

/**
 * Writes executions and their START errands. Each is undefined if its key or id is taken, if its workflow has changed
 * since it had its `stamp`, if its caller's right has ended, or if its cause is deleted.
 */
async function insertExecutions(tx: Tx, all: NewExecution[]): Promise<(StartedExecution | undefined)[]> {
  const named = all.map((one) => ({ ...one, id: one.start.id ?? uuid() }))
  const causes = named.flatMap(({ start }) => findCause(start) ?? [])
  const { rows } = await sql<StartedExecution>`
    with asked (id, ${GIVEN}, chat_session_id, gate_id, waits, refusal, swept, cause, may)
      as materialized (values ${sql.join(named.map(listColumns))}),
    cause as materialized (
      select id, chat_session_id from executions where id = any(${causes}::uuid[]) order by id for key share),
    added as (
      insert into executions (id, ${GIVEN}, chat_session_id, gate_id, queued_at, status, completed_at, error_message)
      select a.id, ${GIVEN}, coalesce(a.chat_session_id, c.chat_session_id), gate_id,
        case when waits then clock_timestamp() end, case when refusal is null then 'PENDING' else 'CANCELLED' end,
        case when refusal is not null then now() end, refusal
      from asked a left join cause c on c.id = a.cause
      where may and (a.cause is null or c.id is not null)
      on conflict do nothing
      returning id, status, created_at, queued_at),
    queued as (
      insert into outbox (kind, subject_id, team_id, due_at)
      select 'START', id, a.team_id, now() + case when a.swept then interval '0' else interval '5 seconds' end
      from added join asked a using (id) where status = 'PENDING' and queued_at is null)
    select id as execution_id, status, created_at as started_at, true as fresh, queued_at is not null as queued
    from added`.execute(tx)
  const added = new Map(rows.map((row) => [row.executionId, row]))
  return named.map(({ id }) => added.get(id))
}

/** The values of `asked` for one execution. */
function listColumns({ id, workflow, start, place, isHeld }: NewExecution & { id: string }) {
  const { teamId, name, version, graph, settings } = workflow
  const { by, parent, right, text } = start
  const key = start.idempotencyKey ?? start.once ?? null
  const hash = key === null ? null : hashData(start)
  const { inputs, outputs } = settings.saveData
  const warning = start.inputWarning === undefined ? null : cleanText(start.inputWarning, MAX_WARNING)
  const given = start.given ? JSON.stringify(start.given) : null
  const holds = isHeld || !right ? sql<boolean>`true` : rightHolds(right, teamId)
  return sql`(${id}::uuid, ${teamId}::uuid, ${workflow.id}::uuid, ${name}::text, ${version}::int,
    ${graph.nodes.length}::int, ${start.trigger}::text, ${start.node.id}::text, ${settings.timeoutMs}::bigint,
    ${text}::json, ${Buffer.byteLength(text)}::int, ${by.kind}::text, ${by.id}::uuid, ${key}::text, ${hash}::bytea,
    ${start.traceparent ?? null}::text, ${start.tracestate ?? null}::text, ${parent?.executionId ?? null}::uuid,
    ${parent?.key ?? null}::text, ${parent?.depth ?? 0}::int, ${parent?.detached ?? false}::boolean,
    ${start.retriedFrom ?? null}::uuid, ${start.recovery ?? null}::text, ${given}::json, ${start.onlyNode ?? null}::text,
    ${start.draft ?? false}::boolean, ${inputs}::boolean, ${outputs}::boolean, ${warning}::text,
    ${start.chatSessionId ?? null}::uuid, ${place.gateId}::uuid, ${place.waits}::boolean, ${place.refusal}::text,
    ${start.swept ?? false}::boolean, ${findCause(start)}::uuid, ${isUnchanged(workflow)} and ${holds})`
}

/**
 * The execution without which there would not be the new one. What it has of a chat goes on to the new one, so it must
 * not be deleted before that is written: it would no longer be known whose chat it is.
 */
function findCause({ parent, retriedFrom, reusedFrom, failed }: AnyStart): string | null {
  return parent?.executionId ?? retriedFrom ?? reusedFrom ?? failed ?? null
}

function rethrowMissing(error: unknown): never {
  if ((error as { constraint?: string }).constraint === 'executions_version_fkey') {
    // A newer version was saved and this one deleted after the workflow was read.
    throw new Fault('UNAVAILABLE', 'The workflow has just changed; try again', { retryAfter: 1 })
  }
  const gone = (error as { code?: string }).code === '23503'
  throw gone ? new Fault('NOT_FOUND', 'There is no such workflow') : error
}
