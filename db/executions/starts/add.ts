import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { change, record, write } from '../../change.ts'
import type { Tx } from '../../connection.ts'
import { Fault, missing } from '../../fault.ts'
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
      : write(store, (tx) => insertExecution(tx, workflow, start, NO_GATE))
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
    const added = await insertExecution(tx, workflow, start, place, true)
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

/**
 * Returns undefined if the key or the id is taken, if the workflow has changed since it had its `stamp`, or if the
 * caller's right has ended, or if its cause is deleted. `held` says that the transaction holds the right already.
 */
export async function insertExecution(
  tx: Tx,
  workflow: StartableWorkflow,
  start: WrittenStart,
  { gateId, waits, refusal }: GatePlace,
  held = false,
): Promise<StartedExecution | undefined> {
  const key = start.idempotencyKey ?? start.once ?? null
  const data = start.text
  const hash = key === null ? null : hashData(start)
  const { inputs, outputs } = workflow.settings.saveData
  const warning = start.inputWarning === undefined ? null : cleanText(start.inputWarning, MAX_WARNING)
  const cause = findCause(start)
  const { rows } = await sql<StartedExecution>`
    with cause as materialized (
      select chat_session_id from executions where id = ${cause}::uuid for key share),
    added as (
      insert into executions (id, team_id, workflow_id, workflow_name, workflow_version, node_count, trigger,
        trigger_node_id, timeout_ms, input_data, input_bytes, started_by_kind, started_by_id, idempotency_key,
        idempotency_hash, traceparent, tracestate, parent_id, parent_key, depth, detached, retried_from, recovery, given,
        only_node, draft, keep_inputs, keep_outputs, input_warning, chat_session_id, gate_id, queued_at, status, completed_at,
        error_message)
      select ${start.id ?? uuid()}::uuid, ${workflow.teamId}, ${workflow.id}, ${workflow.name}, ${workflow.version},
        ${workflow.graph.nodes.length}, ${start.trigger}, ${start.node.id}, ${workflow.settings.timeoutMs},
        ${data}::json, ${Buffer.byteLength(data)}, ${start.by.kind}, ${start.by.id}, ${key}, ${hash},
        ${start.traceparent ?? null}, ${start.tracestate ?? null}, ${start.parent?.executionId ?? null}, ${start.parent?.key ?? null},
        ${start.parent?.depth ?? 0}, ${start.parent?.detached ?? false}, ${start.retriedFrom ?? null},
        ${start.recovery ?? null}, ${start.given ? JSON.stringify(start.given) : null}::json,
        ${start.onlyNode ?? null}, ${start.draft ?? false}, ${inputs}, ${outputs}, ${warning}, coalesce(${start.chatSessionId ?? null}::uuid,
          (select chat_session_id from cause)), ${gateId},
        case when ${waits} then clock_timestamp() end,
        case when ${refusal}::text is null then 'PENDING' else 'CANCELLED' end,
        case when ${refusal}::text is not null then now() end, ${refusal}
      where ${isUnchanged(workflow)} and (${cause}::uuid is null or exists (select from cause))
        and ${held || !start.right ? sql<boolean>`true` : rightHolds(start.right, workflow.teamId)}
      on conflict do nothing
      returning id, status, created_at, queued_at),
    queued as (
      insert into outbox (kind, subject_id, team_id, due_at)
      select 'START', id, ${workflow.teamId}, now() + case when ${start.swept ?? false} then interval '0' else interval '5 seconds' end
      from added where status = 'PENDING' and queued_at is null)
    select id as execution_id, status, created_at as started_at, true as fresh, queued_at is not null as queued
    from added`.execute(tx)
  return rows[0]
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
