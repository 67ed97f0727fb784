import { sql } from 'kysely'
import { mergeInputs } from '../workflows/inputs.ts'
import type { Envelope, Plan } from '../workflows/plan.ts'
import { emptyOutcomes, endsOf, next, type Outcomes, sourcesOf } from '../workflows/walk.ts'
import { openEnvelope } from './blobs.ts'
import { readPlan } from './plans.ts'
import type { ExecutionStatus, Projection } from './projection.ts'
import type { Store } from './scope.ts'
import { cleanText } from './text.ts'

export type NodeExecution = {
  id: string
  nodeId: string
  nodeName: string
  nodeType: string
  status: string
  startedAt: Date
  completedAt: Date | null
  durationMs: number | null
  inputData: Record<string, unknown>
  outputData: Record<string, unknown> | null
  errorMessage: string | null
  retryCount: number
}

/** Values shown in one detail, in bytes of JSON; what does not fit in is named by its size only. */
const SHOWN_BYTES = 32_000_000

type Row = Omit<NodeExecution, 'durationMs' | 'inputData' | 'outputData'> & {
  output: unknown
  handle: string | null
}

type StoredNode = Omit<Row, 'startedAt' | 'completedAt'> & { startedAt: string; completedAt: string | null }

/** The node records in a select from `executions`: who polls a run asks for both, in one statement. */
export const STORED_NODES = sql<StoredNode[]>`(
  select coalesce(json_agg(json_build_object('id', id, 'nodeId', node_id, 'nodeName', node_name,
    'nodeType', node_type, 'status', status, 'startedAt', started_at, 'completedAt', completed_at,
    'output', output, 'handle', handle, 'errorMessage', error_message, 'retryCount', retry_count)
    order by started_at, position, node_id), '[]')
  from node_executions where execution_id = executions.id)`

/**
 * The node records of an execution in the order they started, and the run's output. A record's input is
 * derived: the outputs of the nodes before it, merged as the run merged them. The run's output is null
 * unless it ended SUCCESS. Values that are no objects are shown as `{value}`.
 */
export async function readNodeExecutions(
  store: Store,
  execution: {
    id: string
    workflowId: string
    workflowVersion: number
    status: string
    triggerNodeId: string
    nodes: StoredNode[]
  },
): Promise<{ nodeExecutions: NodeExecution[]; outputData: Record<string, unknown> | null }> {
  const rows = execution.nodes.map((row): Row => {
    const completedAt = row.completedAt === null ? null : new Date(row.completedAt)
    return { ...row, startedAt: new Date(row.startedAt), completedAt }
  })
  const plan = await readPlan(store, execution)
  const outcomes = readOutcomes(plan, rows)
  const values = createView(store, execution.id, plan, outcomes, rows)
  // The run's output comes first: what the records show may use up what one answer can hold.
  const outputData = execution.status === 'SUCCESS' ? await readOutput(plan, outcomes, values) : null
  const nodeExecutions: NodeExecution[] = []
  for (const { output, handle, ...row } of rows) {
    nodeExecutions.push({
      ...row,
      durationMs: row.completedAt ? row.completedAt.getTime() - row.startedAt.getTime() : null,
      inputData: asObject(await values.input(row.nodeId)),
      outputData: output === null ? null : asObject(await values.output(row.nodeId)),
    })
  }
  return { nodeExecutions, outputData }
}

async function readOutput(plan: Plan, outcomes: Outcomes, values: View): Promise<Record<string, unknown>> {
  const ends = endsOf(plan, outcomes)
  if (ends.length === 1) return asObject(await values.output(ends[0]!))
  const outputData: Record<string, unknown> = {}
  for (const id of ends) outputData[id] = await values.output(id)
  return outputData
}

/** The outcomes that the rows tell; disabled nodes, which leave no row, follow from those before them. */
function readOutcomes(plan: Plan, rows: Row[]): Outcomes {
  const outcomes = emptyOutcomes()
  for (const row of rows) {
    const left = row.output !== null && row.status !== 'RUNNING'
    if (left) outcomes[row.nodeId] = { handle: row.handle }
  }
  for (;;) {
    const passing = next(plan, outcomes, new Set()).filter((node) => node.silent)
    if (passing.length === 0) return outcomes
    for (const node of passing) outcomes[node.id] = node.silent!
  }
}

type View = ReturnType<typeof createView>

function createView(store: Store, executionId: string, plan: Plan, outcomes: Outcomes, rows: Row[]) {
  const envelopes = new Map(rows.map((row) => [row.nodeId, row.output as Envelope | null]))
  const opened = new Map<string, Promise<unknown>>()
  let left = SHOWN_BYTES

  // What a disabled node passes on is made of the outputs of those before it, however many ways lead to them.
  const origins = new Map<string, Set<string>>()
  const originsOf = (id: string): Set<string> => {
    let found = origins.get(id)
    if (!found) {
      const passing = outcomes[id] && !envelopes.has(id)
      const before = passing ? sourcesOf(plan, id, outcomes) : []
      found = passing ? new Set(before.flatMap((source) => [...originsOf(source)])) : new Set([id])
      origins.set(id, found)
    }
    return found
  }
  const size = (ids: string[]) =>
    [...new Set(ids.flatMap((id) => [...originsOf(id)]))].reduce(
      (sum, id) => sum + (envelopes.get(id)?.bytes ?? 0),
      0,
    )
  const show = async (bytes: number, read: () => Promise<unknown>) => {
    if (bytes > left) return { truncated: true, bytes }
    left -= bytes
    return read()
  }
  const value = (id: string): Promise<unknown> => {
    let promise = opened.get(id)
    if (!promise) {
      const envelope = envelopes.get(id)
      if (envelope) promise = openEnvelope(store, executionId, envelope)
      else promise = merged(id)
      opened.set(id, promise)
    }
    return promise
  }
  const merged = async (id: string) => {
    const sources = sourcesOf(plan, id, outcomes)
    return mergeInputs(await Promise.all(sources.map(value)))
  }
  return {
    output: (id: string) => show(size([id]), () => value(id)),
    async input(id: string): Promise<unknown> {
      const sources = sourcesOf(plan, id, outcomes)
      return sources.length === 0 ? undefined : show(size(sources), () => merged(id))
    },
  }
}

function asObject(value: unknown): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>
  return value === undefined ? {} : { value }
}

/** What stands after a projection was written. */
export type Saved = { status: ExecutionStatus; trigger: string; traceparent: string | null }

const ENDED: ExecutionStatus[] = ['SUCCESS', 'FAILED', 'CANCELLED']

/**
 * Writes what history says, in one statement. Guarded by (position in the chain, last event), so that two
 * projectors may do the same run; an ended row never opens again, and a run whose cancel was answered with 200
 * ends CANCELLED however it raced; one cancelled before it did anything stays as it is. Answers what then stands,
 * or null where this projection was no news: of all that project a run's end, one is answered. `values: false`
 * leaves outputs out; `again` writes anew what was read before, but nothing older.
 */
export async function saveProjection(
  store: Store,
  executionId: string,
  position: number,
  projection: Projection,
  options: { values: boolean; again?: boolean },
): Promise<Saved | null> {
  const { status, nodes } = projection
  const ended = ENDED.includes(status)
  const cancelled = 'The run was cancelled'
  const saved = await sql<Saved>`
    with guard as (
      update executions set
        status = case when ${ended} and cancel_requested_at is not null then 'CANCELLED' else ${status} end,
        error_message = case when ${ended} and cancel_requested_at is not null then ${cancelled}
          else ${projection.errorMessage === null ? null : cleanText(projection.errorMessage)} end,
        started_at = ${time(projection.startedAt)}::timestamptz,
        completed_at = ${time(projection.completedAt)}::timestamptz,
        run_position = ${position}, run_id = ${projection.runId}, last_event_id = ${projection.lastEventId},
        projection_failures = 0, checked_at = now()
      where id = ${executionId} and ((run_position, last_event_id) < (${position}, ${projection.lastEventId})
          or ${options.again === true} and (run_position, last_event_id) = (${position}, ${projection.lastEventId}))
        and (${ended} or status in ('PENDING', 'RUNNING'))
        and (${nodes.length > 0} or status <> 'CANCELLED')
      returning id, status, trigger, traceparent, trigger_node_id, keep_inputs,
        keep_outputs or not detached and exists (select from executions p
          where p.id = executions.parent_id and p.status in ('PENDING', 'RUNNING')) as keep_outputs),
    saved as (
      insert into node_executions as n
        (id, execution_id, node_id, iteration, node_name, node_type, status, started_at, completed_at,
         output, handle, error_message, retry_count, settled, position)
      select r.id, ${executionId}, r.node_id, r.iteration, r.node_name, r.node_type, r.status, r.started_at,
        r.completed_at,
        -- Outputs that are not kept stay with a child while its parent may read them; the trigger's is the input.
        case when keep_outputs and (keep_inputs or r.node_id <> trigger_node_id) then r.output::json end,
        r.handle, r.error_message, r.retry_count, r.status <> 'RUNNING', r.position
      from guard, unnest(
        ${nodes.map((node) => node.id)}::uuid[], ${nodes.map((node) => node.nodeId)}::text[],
        ${nodes.map((node) => node.iteration)}::text[], ${nodes.map((node) => cleanText(node.nodeName))}::text[],
        ${nodes.map((node) => node.nodeType)}::text[], ${nodes.map((node) => node.status)}::text[],
        ${nodes.map((node) => time(node.startedAt))}::timestamptz[],
        ${nodes.map((node) => time(node.completedAt))}::timestamptz[],
        ${nodes.map((node) => (options.values && node.output ? JSON.stringify(node.output) : null))}::text[],
        ${nodes.map((node) => node.handle)}::text[],
        ${nodes.map((node) => (node.errorMessage === null ? null : cleanText(node.errorMessage)))}::text[],
        ${nodes.map((node) => node.retryCount)}::int[], ${nodes.map((_, at) => at)}::int[]
      ) as r(id, node_id, iteration, node_name, node_type, status, started_at, completed_at,
             output, handle, error_message, retry_count, position)
      -- In the order in which attempts are written too: the two never wait for each other.
      order by r.id
      on conflict (execution_id, node_id, iteration) do update set
        status = excluded.status, started_at = excluded.started_at, completed_at = excluded.completed_at,
        output = excluded.output, handle = excluded.handle, error_message = excluded.error_message,
        retry_count = case when excluded.status in ('SUCCESS', 'FAILED') then excluded.retry_count
          else greatest(n.retry_count, excluded.retry_count) end,
        settled = excluded.settled, position = excluded.position)
    select status, trigger, traceparent from guard`.execute(store.db)
  return saved.rows[0] ?? null
}

/** Notes that a projection could not be stored; answers how often in a row. */
export async function countProjectionFailure(store: Store, executionId: string): Promise<number> {
  const counted = await sql<{ projectionFailures: number }>`
    update executions set projection_failures = projection_failures + 1 where id = ${executionId}
    returning projection_failures`.execute(store.db)
  return counted.rows[0]?.projectionFailures ?? 0
}

function time(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}
