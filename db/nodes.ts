import { sql } from 'kysely'
import type { ExecutionStatus, Projection } from './projection.ts'
import { persist, type Store } from './scope.ts'
import { cleanText } from './text.ts'

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
  projection: Projection,
  options: { values: boolean; again?: boolean },
): Promise<Saved | null> {
  const { status, nodes, position, began } = projection
  const ended = ENDED.includes(status)
  const cancelled = 'The run was cancelled'
  const write = sql<Saved>`
    with guard as (
      update executions set
        status = case when ${ended} and cancel_requested_at is not null then 'CANCELLED' else ${status} end,
        error_message = case when ${ended} and cancel_requested_at is not null
          then coalesce(cancel_reason, ${cancelled})
          else ${projection.errorMessage === null ? null : cleanText(projection.errorMessage)} end,
        started_at = ${time(projection.startedAt)}::timestamptz,
        completed_at = ${time(projection.completedAt)}::timestamptz,
        run_position = ${position}, run_id = ${projection.runId}, last_event_id = ${projection.lastEventId},
        projection_failures = 0, checked_at = now()
      where id = ${executionId} and ((run_position, last_event_id) < (${position}, ${projection.lastEventId})
          or ${options.again === true} and (run_position, last_event_id) = (${position}, ${projection.lastEventId}))
        and (${ended} or status in ('PENDING', 'RUNNING'))
        and (${began} or status <> 'CANCELLED')
      returning id, status, trigger, traceparent, trigger_node_id, keep_inputs,
        keep_outputs or is_awaited(id, parent_id, detached) as keep_outputs),
    saved as (
      insert into node_executions as n
        (id, execution_id, node_id, iteration, node_name, node_type, status, started_at, completed_at,
         output, handle, error_message, retry_count, settled, position, loop, given_by)
      select r.id, ${executionId}, r.node_id, r.iteration, r.node_name, r.node_type, r.status, r.started_at,
        r.completed_at,
        -- Outputs that are not kept are there while somebody waits for them; the trigger's is the input.
        case when keep_outputs and (keep_inputs or r.node_id <> trigger_node_id) then r.output::json end,
        r.handle, r.error_message, r.retry_count, r.status <> 'RUNNING', r.position,
        case when keep_outputs then r.loop::json end, r.given_by
      from guard, unnest(
        ${nodes.map((node) => node.id)}::uuid[], ${nodes.map((node) => node.nodeId)}::text[],
        ${nodes.map((node) => node.iteration)}::text[], ${nodes.map((node) => cleanText(node.nodeName))}::text[],
        ${nodes.map((node) => node.nodeType)}::text[], ${nodes.map((node) => node.status)}::text[],
        ${nodes.map((node) => time(node.startedAt))}::timestamptz[],
        ${nodes.map((node) => time(node.completedAt))}::timestamptz[],
        ${nodes.map((node) => (options.values && node.output ? JSON.stringify(node.output) : null))}::text[],
        ${nodes.map((node) => node.handle)}::text[],
        ${nodes.map((node) => (node.errorMessage === null ? null : cleanText(node.errorMessage)))}::text[],
        ${nodes.map((node) => node.retryCount)}::int[], ${nodes.map((node) => node.position)}::int[],
        ${nodes.map((node) => (node.loop ? JSON.stringify(node.loop) : null))}::text[],
        ${nodes.map((node) => node.givenBy)}::text[]
      ) as r(id, node_id, iteration, node_name, node_type, status, started_at, completed_at,
             output, handle, error_message, retry_count, position, loop, given_by)
      -- In the order in which attempts are written too: the two never wait for each other.
      order by r.id
      on conflict (execution_id, node_id, iteration) do update set
        status = excluded.status, started_at = excluded.started_at, completed_at = excluded.completed_at,
        output = excluded.output, handle = excluded.handle, error_message = excluded.error_message,
        retry_count = case when excluded.status in ('SUCCESS', 'FAILED') then excluded.retry_count
          else greatest(n.retry_count, excluded.retry_count) end,
        settled = excluded.settled, position = excluded.position, loop = excluded.loop,
        given_by = excluded.given_by)
    select status, trigger, traceparent from guard`
  // The end of a run lets others in (db/migrations/0010_gate.sql), whose rows somebody else may hold.
  const saved = await persist(() => write.execute(store.db))
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
