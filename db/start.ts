import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { findStart, type Graph, type GraphNode } from '../workflows/graph.ts'
import type { Given } from '../workflows/plan.ts'
import { Fault } from './fault.ts'
import { rememberOwner } from './owners.ts'
import { type Actor, demand, type Scope, type Store } from './scope.ts'
import { readVersion } from './versions.ts'
import type { Settings } from './workflows.ts'

export type Trigger = 'MANUAL' | 'API' | 'WEBHOOK' | 'SCHEDULE' | 'SUB_WORKFLOW' | 'ERROR'

/** `startedAt` is when it was accepted. `fresh` is false where an earlier call with the same key began it. */
export type Started = { executionId: string; status: string; startedAt: Date; fresh: boolean }

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
  node: GraphNode
  trigger: Trigger
  data: Record<string, unknown>
  by: Actor
  idempotencyKey?: string | undefined
  /** Trace context of the request: the run's spans come under it. */
  traceparent?: string | undefined
  id?: string
  /** The run whose node starts this one: nodeId#iteration; `depth` is this run's, 1 below a run without a parent. */
  parent?: { executionId: string; key: string; depth: number }
  retriedFrom?: string
  /** Outputs that nodes are given instead of being run. */
  given?: Given
}

/**
 * Accepts a run by hand or over the API (OPERATOR): the execution PENDING and its START for Temporal in one
 * statement. An inactive workflow runs too. Throws CONFLICT where the graph has no trigger, or where the key
 * was used with other data.
 */
export async function startExecution(
  scope: Scope,
  workflowId: string,
  input: { teamId: string } & Pick<Start, 'data' | 'idempotencyKey' | 'traceparent'>,
): Promise<Started> {
  const workflow = await readStartable(scope.store, workflowId, (teamId) => {
    demand(scope, teamId, 'OPERATOR')
    return teamId === input.teamId
  })
  if (!workflow) throw new Fault('NOT_FOUND', 'The team has no such workflow')
  const node = findStart(workflow.graph)
  if (!node) throw new Fault('CONFLICT', 'The workflow has no trigger to start at')
  const trigger = scope.actor.kind === 'SDK_TOKEN' ? 'API' : 'MANUAL'
  return addExecution(scope.store, workflow, { ...input, node, trigger, by: scope.actor })
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
  return { ...row, settings: row.settings as Settings, graph: await readVersion(store, id, row.version) }
}

/** Writes the execution and its START, or finds the one that the same key began. The right is checked before. */
export async function addExecution(store: Store, workflow: Startable, start: Start): Promise<Started> {
  const key = start.idempotencyKey ?? null
  const data = JSON.stringify(start.data)
  const hash = key === null ? null : hashData(start.data)
  // Without the retry, a run deleted between the two statements would be neither found nor made.
  for (let attempt = 1; attempt <= 3; attempt++) {
    const { rows } = await sql<Started>`
      with added as (
        insert into executions (id, team_id, workflow_id, workflow_name, workflow_version, node_count, trigger,
          trigger_node_id, timeout_ms, input_data, input_bytes, started_by_kind, started_by_id, idempotency_key,
          idempotency_hash, traceparent, parent_id, parent_key, depth, retried_from, given)
        values (${start.id ?? uuid()}, ${workflow.teamId}, ${workflow.id}, ${workflow.name}, ${workflow.version},
          ${workflow.graph.nodes.length}, ${start.trigger}, ${start.node.id}, ${workflow.settings.timeoutMs},
          ${data}::json, ${Buffer.byteLength(data)}, ${start.by.kind}, ${start.by.id}, ${key}, ${hash},
          ${start.traceparent ?? null}, ${start.parent?.executionId ?? null}, ${start.parent?.key ?? null},
          ${start.parent?.depth ?? 0}, ${start.retriedFrom ?? null},
          ${start.given ? JSON.stringify(start.given) : null}::json)
        on conflict do nothing
        returning id, status, created_at),
      queued as (insert into outbox (kind, subject_id) select 'START', id from added)
      select id as execution_id, status, created_at as started_at, true as fresh from added`
      .execute(store.db)
      .catch(rethrowMissing)
    if (rows[0]) {
      // Whoever started it asks for it next.
      rememberOwner(store, rows[0].executionId, workflow.teamId)
      return rows[0]
    }
    const earlier = await store.db
      .selectFrom('executions')
      .select(['id as executionId', 'status', 'createdAt as startedAt', 'idempotencyHash'])
      .where('workflowId', '=', workflow.id)
      .where((eb) => (start.id ? eb('id', '=', start.id) : eb('idempotencyKey', '=', key)))
      .executeTakeFirst()
    if (!earlier) continue
    const { idempotencyHash, ...started } = earlier
    if (start.id || (hash && idempotencyHash?.equals(hash))) return { ...started, fresh: false }
    throw new Fault('CONFLICT', 'This Idempotency-Key was used with another body')
  }
  throw new Fault('CONFLICT', 'The execution of this Idempotency-Key is being removed')
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
function hashData(data: Record<string, unknown>): Buffer {
  const text = JSON.stringify(data, (_key, value: unknown) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
  return createHash('sha256').update(text).digest()
}
