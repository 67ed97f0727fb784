import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { findStart, type GraphNode } from '../../workflows/graph/graph.ts'
import type { Presets } from '../../workflows/run/plan.ts'
import { type Act, covers } from '../acts.ts'
import { change, record, write } from '../change.ts'
import type { Tx } from '../connection.ts'
import {
  type CallbackTarget,
  insertCallback,
  makeCallback,
  type NewCallback,
} from '../executions/callbacks.ts'
import { readIdentity } from '../executions/executions.ts'
import type { Recovery, Trigger } from '../executions/triggers.ts'
import { Fault, missing } from '../fault.ts'
import { copyTeamFiles } from '../files/files.ts'
import { findFileIds } from '../files/named.ts'
import { demandStill, holdRight, type Right, rightHolds } from '../people/rights.ts'
import { type Actor, demand, type Scope, type Store } from '../scope.ts'
import { cleanText } from '../text.ts'
import { openData, writeData } from '../waits/jsontext.ts'
import { findEarlier, hashData } from './earlier.ts'
import { findPlace, type GatePlace, holdGate, NO_GATE } from './gate.ts'
import { type Pins, readPins } from './pins.ts'
import { rememberStarted } from './runstart.ts'
import { isUnchanged, readStartable, recallStartable, type StartableWorkflow } from './startable.ts'

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

/** The trace context (W3C) of a request, which becomes the parent of the run's spans. */
export type TraceContext = { traceparent?: string | undefined; tracestate?: string | undefined }

/**
 * What an execution is started with. With the same `idempotencyKey` and the same data, a second call starts
 * no other execution; with the same `id`, it starts none whatever its data.
 */
export type StartInput = TraceContext & {
  node: Pick<GraphNode, 'id'>
  trigger: Trigger
  data: Record<string, unknown>
  by: Actor
  /** The caller's right, if somebody asks for the execution: it is read again when the execution is written. */
  right?: Right
  idempotencyKey?: string | undefined
  /** Like an `idempotencyKey`, whatever the data. */
  once?: string | undefined
  id?: string
  /**
   * The execution whose node starts this one; `key` is that node, as nodeId#iteration. `depth` is that of
   * this execution: 1 if its parent has no parent. The parent does not wait for a detached execution, which
   * lives on when the parent has ended.
   */
  parent?: { executionId: string; key: string; depth: number; detached?: boolean }
  /** The execution that this one retries or reruns, and which of the two it is. */
  retriedFrom?: string
  recovery?: Recovery
  /** The chat whose message starts it. It also belongs to the chat of its parent, or of the execution it repeats. */
  chatSessionId?: string
  /** The execution whose failure starts this one. */
  failed?: string
  /** Outputs that nodes are given instead of being executed. */
  given?: Presets | undefined
  /** The only node to execute; all nodes if it is undefined. */
  onlyNode?: string | undefined
  /** Whom to tell when it has ended. */
  callback?: NewCallback | undefined
  /** What else the request contained: it must be the same in every request with the same `idempotencyKey`. */
  asked?: unknown
  /** The sweeper is to start it at once; else the caller does, and the sweeper only after five seconds. */
  swept?: boolean
  /** Who starts it by which act, if that is to have an audit entry. */
  act?: { scope: Scope; name: Act } | undefined
  /** What is to be said about the data, in the record of the trigger. */
  inputWarning?: string | undefined
  /** Writes rows that belong to the execution `id`, before its own row is written and its gate is locked. */
  prepare?: (tx: Tx) => Promise<void>
  /** Gives the execution its files, once its row is written. */
  adopt?: ((tx: Tx, executionId: string) => Promise<void>) | undefined
}

/** The data written as JSON, once. */
type WrittenStart = StartInput & { text: string }

/**
 * Accepts an execution that somebody asks for (OPERATOR; BUILDER if outputs are `pinned`): writes the PENDING
 * row and its START errand in one statement. The workflow may be inactive. Throws NOT_FOUND if the team has
 * no such workflow, CONFLICT if the graph has no trigger, the key was used with other data, or the workflow's
 * limit turns it away, and INVALID for pinned outputs that do not fit the graph.
 */
export async function startExecution(
  scope: Scope,
  workflowId: string,
  {
    pinned = {},
    callback: target,
    ...input
  }: { teamId: string; pinned?: Pins | undefined; callback?: CallbackTarget | undefined } & Pick<
    StartInput,
    'data' | 'inputWarning' | 'idempotencyKey' | keyof TraceContext
  >,
): Promise<StartedExecution> {
  const { store, actor: by } = scope
  const hasPins = Object.keys(pinned).length > 0
  // An approval can be skipped by pinning it, so this needs the right to change the graph.
  const right: Right = { scope, least: hasPins ? 'BUILDER' : 'OPERATOR' }
  const trigger = by.kind === 'SDK_TOKEN' ? 'API' : 'MANUAL'
  // Whoever may start executions may read those of the team, but for others' chats, and so give their files to a new
  // one.
  const files = findFileIds(input.data, pinned)
  const adopt =
    files.size > 0
      ? (tx: Tx, id: string) => copyTeamFiles(tx, scope, { teamId: input.teamId, to: id, which: files })
      : undefined
  if (!hasPins && !target && !adopt) {
    const started = await startUnchanged(store, workflowId, input.teamId, { ...input, trigger, by, right })
    if (started) return started
  }
  const workflow = await readStartable(store, workflowId, (teamId) => {
    demand(scope, teamId, 'OPERATOR')
    return teamId === input.teamId
  })
  if (!workflow) throw new Fault('NOT_FOUND', 'The team has no such workflow')
  const node = findStart(workflow.graph)
  if (!node) throw new Fault('CONFLICT', 'The workflow has no trigger to start at')
  demand(scope, workflow.teamId, right.least)
  const given = hasPins ? readPins(workflow.graph, pinned) : undefined
  const callback = target && makeCallback(store.keys, target)
  return addExecution(store, workflow, { ...input, node, trigger, by, right, given, callback, adopt })
}

/**
 * Writes an execution of a workflow as this process read it last, if its row is still the same and nothing speaks
 * against it. Undefined if all of it must be looked at again.
 */
async function startUnchanged(
  store: Store,
  workflowId: string,
  teamId: string,
  start: Omit<StartInput, 'node'> & { right: Right },
): Promise<StartedExecution | undefined> {
  const workflow = recallStartable(store, workflowId)
  const node = workflow && findStart(workflow.graph)
  const { scope, least } = start.right
  const held = scope.roles.get(teamId)
  if (!held || !covers(held, least)) return undefined
  if (!node || workflow.teamId !== teamId || workflow.settings.concurrency || start.idempotencyKey)
    return undefined
  const whole = { ...start, node, text: writeData(start.data) }
  const added = await write(store, (tx) => insert(tx, workflow, whole, NO_GATE)).catch((error) => {
    // It was deleted at this moment.
    if ((error as { code?: string }).code === '23503') return undefined
    throw error
  })
  if (added) rememberStarted(store, workflow, whole, added)
  return added
}

/**
 * Writes the execution and its START errand, or finds the one that the same key or id has started. If
 * somebody asks for it, the caller must have checked their right, which is checked once more here. If the workflow's limit turns it away, throws CONFLICT, or writes it as
 * CANCELLED if its trigger is SCHEDULE or ERROR. Also throws CONFLICT if the key was used with other data or
 * the parent has ended, NOT_FOUND if the workflow is deleted, and UNAVAILABLE if its version is.
 */
export async function addExecution(
  store: Store,
  workflow: StartableWorkflow,
  given: StartInput,
): Promise<StartedExecution> {
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
      : write(store, (tx) => insert(tx, workflow, start, NO_GATE))
    ).catch(rethrowMissing)
    if (added) rememberStarted(store, workflow, start, added)
    else if (start.right) await write(store, (tx) => demandStill(tx, start.right!, workflow.teamId))
    const started = added ?? (await findEarlier(store.db, workflow.id, start))
    if (started) return started
  }
  const cause = findCause(start)
  if (cause !== null && !(await readIdentity(store, cause))) throw missing('execution')
  throw new Fault('CONFLICT', 'The execution with this Idempotency-Key is being deleted')
}

/**
 * The execution without which there would not be the new one. What it has of a chat goes on to the new one, so it must
 * not be deleted before that is written: nobody would know any more whose chat it is.
 */
function findCause({ parent, retriedFrom, failed }: StartInput): string | null {
  return parent?.executionId ?? retriedFrom ?? failed ?? null
}

/**
 * Returns undefined if the key or the id is taken, if the workflow has changed since it had its `stamp`, or if the
 * caller's right has ended, or if
 * its cause is deleted. `held` says that the transaction holds the right already.
 */
async function insert(
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
        only_node, keep_inputs, keep_outputs, input_warning, chat_session_id, gate_id, queued_at, status, completed_at,
        error_message)
      select ${start.id ?? uuid()}::uuid, ${workflow.teamId}, ${workflow.id}, ${workflow.name}, ${workflow.version},
        ${workflow.graph.nodes.length}, ${start.trigger}, ${start.node.id}, ${workflow.settings.timeoutMs},
        ${data}::json, ${Buffer.byteLength(data)}, ${start.by.kind}, ${start.by.id}, ${key}, ${hash},
        ${start.traceparent ?? null}, ${start.tracestate ?? null}, ${start.parent?.executionId ?? null}, ${start.parent?.key ?? null},
        ${start.parent?.depth ?? 0}, ${start.parent?.detached ?? false}, ${start.retriedFrom ?? null},
        ${start.recovery ?? null}, ${start.given ? JSON.stringify(start.given) : null}::json,
        ${start.onlyNode ?? null}, ${inputs}, ${outputs}, ${warning}, coalesce(${start.chatSessionId ?? null}::uuid,
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
    const gate = await holdGate(tx, workflow.id, () => openData(data))
    // A repeated call must not be turned away, nor take another execution's place.
    if (gate && (await findEarlier(tx, workflow.id, start))) return undefined
    const added = await insert(tx, workflow, start, gate ? await findPlace(tx, gate, start) : NO_GATE, true)
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

function rethrowMissing(error: unknown): never {
  if ((error as { constraint?: string }).constraint === 'executions_version_fkey') {
    // Somebody saved a newer version and deleted this one after we had read the workflow.
    throw new Fault('UNAVAILABLE', 'The workflow has just changed; try again', { retryAfter: 1 })
  }
  const gone = (error as { code?: string }).code === '23503'
  throw gone ? new Fault('NOT_FOUND', 'There is no such workflow') : error
}
