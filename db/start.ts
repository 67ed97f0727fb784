import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { findStart, type Graph, type GraphNode } from '../workflows/graph.ts'
import type { Given } from '../workflows/plan.ts'
import { Fault } from './fault.ts'
import { FREE, findPlace, holdGate, type Place } from './gate.ts'
import { rememberOwner } from './owners.ts'
import { type Pins, readPins } from './pins.ts'
import { type Actor, demand, record, type Scope, type Store, type Tx } from './scope.ts'
import { readSettings, type Settings } from './settings.ts'
import { readVersion } from './versions.ts'

export type Trigger = 'MANUAL' | 'API' | 'WEBHOOK' | 'SCHEDULE' | 'SUB_WORKFLOW' | 'ERROR'

/**
 * `startedAt` is when it was accepted. `fresh` is false where an earlier call with the same key began it, `queued`
 * true while it waits for a place at its workflow's limit: then it starts by itself, from the outbox.
 */
export type Started = {
  executionId: string
  status: string
  startedAt: Date
  fresh: boolean
  queued: boolean
}

/** A workflow as it stands, with what a run of it needs to know. */
export type Startable = {
  id: string
  teamId: string
  name: string
  version: number
  active: boolean
  settings: Settings
  graph: Graph
}

/**
 * What begins a run. With an `idempotencyKey` a second call with the same data begins none; with an `id` a second
 * call begins none whatever its data.
 */
export type Start = {
  node: Pick<GraphNode, 'id'>
  trigger: Trigger
  data: Record<string, unknown>
  by: Actor
  idempotencyKey?: string | undefined
  /** Trace context of the request: the run's spans come under it. */
  traceparent?: string | undefined
  id?: string
  /**
   * The run whose node starts this one: nodeId#iteration; `depth` is this run's, 1 below a run without a parent. A
   * detached run lives on when its parent has ended, which does not wait for it.
   */
  parent?: { executionId: string; key: string; depth: number; detached?: boolean }
  /** The run that this one takes up, and how. */
  retriedFrom?: string
  recovery?: 'RETRY' | 'RERUN'
  /** Outputs that nodes are given instead of being run. */
  given?: Given | undefined
  /** The one node that is run. */
  onlyNode?: string | undefined
  /** What else was asked for: of the same `idempotencyKey` it must be the same. */
  asked?: unknown
  /** Has the sweeper start it, at once, instead of the caller. */
  swept?: boolean
  /** Writes what belongs to the run, of this `id`, before its own row and before its place at a limit is held. */
  prepare?: (tx: Tx) => Promise<void>
}

/**
 * Accepts a run by hand or over the API (OPERATOR): the execution PENDING and its START for Temporal in one
 * statement. An inactive workflow runs too. Throws CONFLICT where the graph has no trigger, where the key was used
 * with other data, or where the workflow's limit turns it away. Outputs may be `pinned` (BUILDER; INVALID for what
 * the graph has no place for).
 */
export async function startExecution(
  scope: Scope,
  workflowId: string,
  {
    pinned = {},
    ...input
  }: { teamId: string; pinned?: Pins | undefined } & Pick<Start, 'data' | 'idempotencyKey' | 'traceparent'>,
): Promise<Started> {
  const workflow = await readStartable(scope.store, workflowId, (teamId) => {
    demand(scope, teamId, 'OPERATOR')
    return teamId === input.teamId
  })
  if (!workflow) throw new Fault('NOT_FOUND', 'The team has no such workflow')
  const node = findStart(workflow.graph)
  if (!node) throw new Fault('CONFLICT', 'The workflow has no trigger to start at')
  const pins = Object.keys(pinned).length > 0
  // Whoever may not change the graph must not pass an approval by.
  if (pins) demand(scope, workflow.teamId, 'BUILDER')
  const given = pins ? readPins(workflow.graph, pinned) : undefined
  const trigger = scope.actor.kind === 'SDK_TOKEN' ? 'API' : 'MANUAL'
  return addExecution(scope.store, workflow, { ...input, node, trigger, by: scope.actor, given })
}

/** The workflow, if there is one and `admits` its team; `admits` throws to say more than that there is none. */
export async function readStartable(
  store: Store,
  id: string,
  admits: (teamId: string) => boolean,
): Promise<Startable | undefined> {
  const row = await store.db
    .selectFrom('workflows')
    .select(['id', 'teamId', 'name', 'version', 'active', 'settings'])
    .where('id', '=', id)
    .executeTakeFirst()
  if (!row || !admits(row.teamId)) return undefined
  return { ...row, settings: readSettings(row.settings), graph: await readVersion(store, id, row.version) }
}

/**
 * Writes the execution and its START, or finds the one that the same key or id began. The right is checked before.
 * Throws CONFLICT where the workflow's limit turns it away; a SCHEDULE or ERROR run is then written as CANCELLED.
 */
export async function addExecution(store: Store, workflow: Startable, start: Start): Promise<Started> {
  const awaited = start.parent && !start.parent.detached
  // Without the retry, a run deleted between the two statements would be neither found nor made.
  for (let attempt = 1; attempt <= 3; attempt++) {
    const added = await (workflow.settings.concurrency || awaited || start.prepare
      ? insertGuarded(store, workflow, start)
      : insert(store, workflow, start, FREE)
    ).catch(rethrowMissing)
    // Whoever started it asks for it next.
    if (added) rememberOwner(store, added.executionId, workflow.teamId)
    const started = added ?? (await findEarlier(store, workflow.id, start))
    if (started) return started
  }
  throw new Fault('CONFLICT', 'The execution of this Idempotency-Key is being removed')
}

/** Undefined where the key or the id is taken. */
async function insert(
  { db }: Pick<Store, 'db'>,
  workflow: Startable,
  start: Start,
  { gateId, waits, refusal }: Place,
): Promise<Started | undefined> {
  const key = start.idempotencyKey ?? null
  const data = JSON.stringify(start.data)
  const hash = key === null ? null : hashData(start)
  const { inputs, outputs } = workflow.settings.saveData
  const { rows } = await sql<Started>`
    with added as (
      insert into executions (id, team_id, workflow_id, workflow_name, workflow_version, node_count, trigger,
        trigger_node_id, timeout_ms, input_data, input_bytes, started_by_kind, started_by_id, idempotency_key,
        idempotency_hash, traceparent, parent_id, parent_key, depth, detached, retried_from, recovery, given,
        only_node, keep_inputs, keep_outputs, gate_id, queued_at, status, completed_at, error_message)
      values (${start.id ?? uuid()}, ${workflow.teamId}, ${workflow.id}, ${workflow.name}, ${workflow.version},
        ${workflow.graph.nodes.length}, ${start.trigger}, ${start.node.id}, ${workflow.settings.timeoutMs},
        ${data}::json, ${Buffer.byteLength(data)}, ${start.by.kind}, ${start.by.id}, ${key}, ${hash},
        ${start.traceparent ?? null}, ${start.parent?.executionId ?? null}, ${start.parent?.key ?? null},
        ${start.parent?.depth ?? 0}, ${start.parent?.detached ?? false}, ${start.retriedFrom ?? null},
        ${start.recovery ?? null}, ${start.given ? JSON.stringify(start.given) : null}::json,
        ${start.onlyNode ?? null}, ${inputs}, ${outputs}, ${gateId},
        case when ${waits} then clock_timestamp() end,
        case when ${refusal}::text is null then 'PENDING' else 'CANCELLED' end,
        case when ${refusal}::text is not null then now() end, ${refusal})
      on conflict do nothing
      returning id, status, created_at, queued_at),
    queued as (
      insert into outbox (kind, subject_id, team_id, due_at)
      select 'START', id, ${workflow.teamId}, now() + case when ${start.swept ?? false} then interval '0' else interval '5 seconds' end
      from added where status = 'PENDING' and queued_at is null)
    select id as execution_id, status, created_at as started_at, true as fresh, queued_at is not null as queued
    from added`.execute(db)
  return rows[0]
}

/** Behind its workflow's limit, and only while the run that waits for it goes on. */
function insertGuarded(store: Store, workflow: Startable, start: Start): Promise<Started | undefined> {
  const { parent, data, prepare } = start
  return record(store, async (tx) => {
    const within = { ...store, db: tx }
    if (prepare) {
      if (await findEarlier(within, workflow.id, start)) return undefined
      await prepare(tx)
    }
    if (parent && !parent.detached) {
      // Locked for share, it does not end before we are there to be ended with it.
      const open = await sql`select from executions
        where id = ${parent.executionId} and status in ('PENDING', 'RUNNING') for share`.execute(tx)
      if (open.rows.length === 0) throw new Fault('CONFLICT', 'The run that waits for this one has ended')
    }
    const gate = await holdGate(tx, workflow.id, data)
    // What was begun once must not be turned away, nor take another's place.
    if (gate && (await findEarlier(within, workflow.id, start))) return undefined
    return insert(within, workflow, start, gate ? await findPlace(tx, gate, start) : FREE)
  })
}

/** The run that the same id or key began. Throws CONFLICT where that was with other data. */
async function findEarlier(
  { db }: Pick<Store, 'db'>,
  workflowId: string,
  start: Start,
): Promise<Started | undefined> {
  const { id, idempotencyKey } = start
  if (id === undefined && idempotencyKey === undefined) return undefined
  const earlier = await db
    .selectFrom('executions')
    .select(['id as executionId', 'status', 'createdAt as startedAt', 'queuedAt', 'idempotencyHash'])
    .where('workflowId', '=', workflowId)
    .where((eb) => (id ? eb('id', '=', id) : eb('idempotencyKey', '=', idempotencyKey!)))
    .executeTakeFirst()
  if (!earlier) return undefined
  const { idempotencyHash, queuedAt, ...started } = earlier
  if (id || idempotencyHash?.equals(hashData(start))) {
    return { ...started, fresh: false, queued: queuedAt !== null }
  }
  throw new Fault('CONFLICT', 'This Idempotency-Key was used with another body')
}

function rethrowMissing(error: unknown): never {
  if ((error as { constraint?: string }).constraint === 'executions_version_fkey') {
    // Between the reading of the workflow and the insert somebody saved a newer version and deleted this one.
    throw new Fault('UNAVAILABLE', 'The workflow has just changed; start again', { retryAfter: 1 })
  }
  const gone = (error as { code?: string }).code === '23503'
  throw gone ? new Fault('NOT_FOUND', 'There is no such workflow') : error
}

// The order of keys does not make another body.
function hashData({ data, given, onlyNode, asked }: Start): Buffer {
  const body = given || onlyNode ? [data, given, onlyNode, asked] : data
  const text = JSON.stringify(body, (_key, value: unknown) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
  return createHash('sha256').update(text).digest()
}
