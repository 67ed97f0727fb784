import { sql } from 'kysely'
import { write } from '../change.ts'
import { type ExecutionStatus, isEnded } from '../executions/status.ts'
import type { Store } from '../scope.ts'
import { cleanText } from '../text.ts'
import type { Projection } from './projection.ts'

/** What the execution's row says after a projection was written. */
export type SavedExecution = { status: ExecutionStatus; trigger: string; traceparent: string | null }

/**
 * Writes a projection in one statement. It is guarded by (position in the chain, last event), so that two
 * projectors may project the same execution. An ended row never opens again. An execution whose cancel
 * request was accepted ends CANCELLED, whatever else happened at the same time; one that was cancelled before
 * any node began stays as it is. Returns what the row then says, or null if this projection was not newer:
 * only one of several projectors gets the end of an execution. `values: false` leaves outputs out; `again`
 * also writes a projection of the same position anew, but never an older one.
 */
export async function saveProjection(
  store: Store,
  executionId: string,
  projection: Projection,
  options: { values: boolean; again?: boolean },
): Promise<SavedExecution | null> {
  const { status, nodes, position, began } = projection
  const ended = isEnded(status)
  const cancelled = 'The execution was cancelled'
  // This may start others at the gate (trigger end_run) whose rows are locked: then `write` tries again.
  const saved = await write(store, (tx) =>
    sql<SavedExecution>`
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
        -- Outputs that are not kept are stored while somebody waits for them. The trigger's output is the input.
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
      -- Attempts are written in the same order, so that the two cannot deadlock.
      order by r.id
      on conflict (execution_id, node_id, iteration) do update set
        status = excluded.status, started_at = excluded.started_at, completed_at = excluded.completed_at,
        output = excluded.output, handle = excluded.handle, error_message = excluded.error_message,
        retry_count = case when excluded.status in ('SUCCESS', 'FAILED') then excluded.retry_count
          else greatest(n.retry_count, excluded.retry_count) end,
        settled = excluded.settled, position = excluded.position, loop = excluded.loop,
        given_by = excluded.given_by)
    select status, trigger, traceparent from guard`.execute(tx),
  )
  return saved.rows[0] ?? null
}

/** Notes that a projection could not be stored. Returns how often in a row this has happened. */
export async function countProjectionFailure(store: Store, executionId: string): Promise<number> {
  const counted = await write(store, (tx) =>
    sql<{ projectionFailures: number }>`
    update executions set projection_failures = projection_failures + 1 where id = ${executionId}
    returning projection_failures`.execute(tx),
  )
  return counted.rows[0]?.projectionFailures ?? 0
}

function time(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}
