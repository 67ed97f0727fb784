import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { findStart, type Graph, type GraphNode } from '../../workflows/graph/graph.ts'
import type { Presets } from '../../workflows/run/plan.ts'
import type { Act } from '../acts.ts'
import { change, record, write } from '../change.ts'
import type { Db, Tx } from '../connection.ts'
import type { Recovery, Trigger } from '../executions/triggers.ts'
import { Fault } from '../fault.ts'
import { rememberOwner } from '../owners.ts'
import { demandStill, holdRight, type Right, rightHolds } from '../people/rights.ts'
import { type Actor, demand, type Scope, type Store } from '../scope.ts'
import { readSettings, type WorkflowSettings } from '../workflows/settings.ts'
import { readVersion } from '../workflows/versions.ts'
import { findPlace, type GatePlace, holdGate, NO_GATE } from './gate.ts'
import { type Pins, readPins } from './pins.ts'

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

/** A workflow as it is now, with all that starting an execution needs; `graph` is that of `version`. */
export type StartableWorkflow = {
  id: string
  teamId: string
  name: string
  version: number
  active: boolean
  settings: WorkflowSettings
  graph: Graph
}

/**
 * What an execution is started with. With the same `idempotencyKey` and the same data, a second call starts
 * no other execution; with the same `id`, it starts none whatever its data.
 */
export type StartInput = {
  node: Pick<GraphNode, 'id'>
  trigger: Trigger
  data: Record<string, unknown>
  by: Actor
  /** The caller's right, if somebody asks for the execution: it is read again when the execution is written. */
  right?: Right
  idempotencyKey?: string | undefined
  /** Like an `idempotencyKey`, whatever the data. */
  once?: string | undefined
  /** The request's trace context, which becomes the parent of the run's spans. */
  traceparent?: string | undefined
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
  /** Outputs that nodes are given instead of being executed. */
  given?: Presets | undefined
  /** The only node to execute; all nodes if it is undefined. */
  onlyNode?: string | undefined
  /** What else the request contained: it must be the same in every request with the same `idempotencyKey`. */
  asked?: unknown
  /** The sweeper is to start it at once; else the caller does, and the sweeper only after five seconds. */
  swept?: boolean
  /** Who starts it by which act, if that is to have an audit entry. */
  act?: { scope: Scope; name: Act } | undefined
  /** Writes rows that belong to the execution `id`, before its own row is written and its gate is locked. */
  prepare?: (tx: Tx) => Promise<void>
}

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
    ...input
  }: { teamId: string; pinned?: Pins | undefined } & Pick<
    StartInput,
    'data' | 'idempotencyKey' | 'traceparent'
  >,
): Promise<StartedExecution> {
  const workflow = await readStartable(scope.store, workflowId, (teamId) => {
    demand(scope, teamId, 'OPERATOR')
    return teamId === input.teamId
  })
  if (!workflow) throw new Fault('NOT_FOUND', 'The team has no such workflow')
  const node = findStart(workflow.graph)
  if (!node) throw new Fault('CONFLICT', 'The workflow has no trigger to start at')
  const hasPins = Object.keys(pinned).length > 0
  // An approval can be skipped by pinning it, so this needs the right to change the graph.
  const right: Right = { scope, least: hasPins ? 'BUILDER' : 'OPERATOR' }
  demand(scope, workflow.teamId, right.least)
  const given = hasPins ? readPins(workflow.graph, pinned) : undefined
  const trigger = scope.actor.kind === 'SDK_TOKEN' ? 'API' : 'MANUAL'
  return addExecution(scope.store, workflow, { ...input, node, trigger, by: scope.actor, right, given })
}

/**
 * The workflow if it exists and `admits` returns true for its team, else undefined. `admits` may throw, to
 * report more than that there is no such workflow.
 */
export async function readStartable(
  store: Store,
  id: string,
  admits: (teamId: string) => boolean,
): Promise<StartableWorkflow | undefined> {
  const row = await store.db
    .selectFrom('workflows')
    .select(['id', 'teamId', 'name', 'version', 'active', 'settings'])
    .where('id', '=', id)
    .executeTakeFirst()
  if (!row || !admits(row.teamId)) return undefined
  return { ...row, settings: readSettings(row.settings), graph: await readVersion(store, id, row.version) }
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
  start: StartInput,
): Promise<StartedExecution> {
  const awaited = start.parent && !start.parent.detached
  // Without a retry, an execution deleted between the two statements would be neither found nor made.
  for (let attempt = 1; attempt <= 3; attempt++) {
    const added = await (workflow.settings.concurrency || awaited || start.prepare || start.act
      ? insertGuarded(store, workflow, start)
      : write(store, (tx) => insert(tx, workflow, start, NO_GATE))
    ).catch(rethrowMissing)
    // The caller's next request is likely to be for this execution.
    if (added) rememberOwner(store, added.executionId, workflow.teamId)
    else if (start.right) await write(store, (tx) => demandStill(tx, start.right!, workflow.teamId))
    const started = added ?? (await findEarlier(store.db, workflow.id, start))
    if (started) return started
  }
  throw new Fault('CONFLICT', 'The execution with this Idempotency-Key is being deleted')
}

/**
 * Returns undefined if the key or the id is taken, or if the caller's right has ended. `held` says that the
 * transaction holds the right already.
 */
async function insert(
  tx: Tx,
  workflow: StartableWorkflow,
  start: StartInput,
  { gateId, waits, refusal }: GatePlace,
  held = false,
): Promise<StartedExecution | undefined> {
  const key = start.idempotencyKey ?? start.once ?? null
  const data = JSON.stringify(start.data)
  const hash = key === null ? null : hashData(start)
  const { inputs, outputs } = workflow.settings.saveData
  const { rows } = await sql<StartedExecution>`
    with added as (
      insert into executions (id, team_id, workflow_id, workflow_name, workflow_version, node_count, trigger,
        trigger_node_id, timeout_ms, input_data, input_bytes, started_by_kind, started_by_id, idempotency_key,
        idempotency_hash, traceparent, parent_id, parent_key, depth, detached, retried_from, recovery, given,
        only_node, keep_inputs, keep_outputs, gate_id, queued_at, status, completed_at, error_message)
      select ${start.id ?? uuid()}::uuid, ${workflow.teamId}, ${workflow.id}, ${workflow.name}, ${workflow.version},
        ${workflow.graph.nodes.length}, ${start.trigger}, ${start.node.id}, ${workflow.settings.timeoutMs},
        ${data}::json, ${Buffer.byteLength(data)}, ${start.by.kind}, ${start.by.id}, ${key}, ${hash},
        ${start.traceparent ?? null}, ${start.parent?.executionId ?? null}, ${start.parent?.key ?? null},
        ${start.parent?.depth ?? 0}, ${start.parent?.detached ?? false}, ${start.retriedFrom ?? null},
        ${start.recovery ?? null}, ${start.given ? JSON.stringify(start.given) : null}::json,
        ${start.onlyNode ?? null}, ${inputs}, ${outputs}, ${gateId},
        case when ${waits} then clock_timestamp() end,
        case when ${refusal}::text is null then 'PENDING' else 'CANCELLED' end,
        case when ${refusal}::text is not null then now() end, ${refusal}
      where ${held || !start.right ? sql<boolean>`true` : rightHolds(start.right, workflow.teamId)}
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
 * Inserts subject to the workflow's limit, only while the execution that waits for this one is open, and with
 * an audit entry if it is an act.
 */
function insertGuarded(
  store: Store,
  workflow: StartableWorkflow,
  start: StartInput,
): Promise<StartedExecution | undefined> {
  const { parent, data, prepare, act, right } = start
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
    const gate = await holdGate(tx, workflow.id, data)
    // A repeated call must not be turned away, nor take another execution's place.
    if (gate && (await findEarlier(tx, workflow.id, start))) return undefined
    return insert(tx, workflow, start, gate ? await findPlace(tx, gate, start) : NO_GATE, true)
  }
  if (!act) return record(store, add)
  return change(act.scope, act.name, workflow.teamId, async (tx) => {
    const result = await add(tx)
    if (!result) return { result, unchanged: true }
    const details = { workflowId: workflow.id, version: workflow.version, retriedFrom: start.retriedFrom }
    return { result, resourceId: result.executionId, details }
  })
}

/** The execution that the same id or key has started. Throws CONFLICT if the key was used with other data. */
async function findEarlier(
  db: Db,
  workflowId: string,
  start: StartInput,
): Promise<StartedExecution | undefined> {
  const { id, idempotencyKey, once } = start
  const key = idempotencyKey ?? once
  if (id === undefined && key === undefined) return undefined
  const earlier = await db
    .selectFrom('executions')
    .select(['id as executionId', 'status', 'createdAt as startedAt', 'queuedAt', 'idempotencyHash'])
    .where('workflowId', '=', workflowId)
    .where((eb) => {
      const byId = id === undefined ? [] : [eb('id', '=', id)]
      const byKey =
        key === undefined || (id !== undefined && once === undefined) ? [] : [eb('idempotencyKey', '=', key)]
      return eb.or([...byId, ...byKey])
    })
    .executeTakeFirst()
  if (!earlier) return undefined
  const { idempotencyHash, queuedAt, ...started } = earlier
  if (id || once || idempotencyHash?.equals(hashData(start))) {
    return { ...started, fresh: false, queued: queuedAt !== null }
  }
  throw new Fault('CONFLICT', 'This Idempotency-Key was used with another body')
}

function rethrowMissing(error: unknown): never {
  if ((error as { constraint?: string }).constraint === 'executions_version_fkey') {
    // Somebody saved a newer version and deleted this one after we had read the workflow.
    throw new Fault('UNAVAILABLE', 'The workflow has just changed; try again', { retryAfter: 1 })
  }
  const gone = (error as { code?: string }).code === '23503'
  throw gone ? new Fault('NOT_FOUND', 'There is no such workflow') : error
}

/** A hash of what the request contained; the order of keys in objects does not matter. */
function hashData({ data, given, onlyNode, asked }: StartInput): Buffer {
  const body = given || onlyNode ? [data, given, onlyNode, asked] : data
  const text = JSON.stringify(body, (_key, value: unknown) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
  return createHash('sha256').update(text).digest()
}
