import { sql } from 'kysely'
import { splitStep } from '../../../workflows/run/walk.ts'
import { write } from '../../change.ts'
import type { Store } from '../../scope.ts'
import { cleanText } from '../../text.ts'
import { isNotSingle } from '../part.ts'
import type { RequestRow } from '../requests/exchange.ts'
import { nodeExecutionId } from './projection.ts'

export type StartedAttempt = {
  executionId: string
  nodeId: string
  /** '' outside of loops; with the step behind (joinStep) for one of an agent. */
  iteration: string
  /** The tool that an agent's step calls. */
  tool?: string
  nodeName: string
  nodeType: string
  /** Counted from 1. */
  attempt: number
  at: Date
  /** What the attempt has sent, so that a retry of the execution can send it under the same key. */
  request?: SentRequest
  /** Why it has failed, if another one comes, and when that does. */
  failure?: { message: string; nextAt: Date }
}

/** A request that a node has sent under a key; `hash` is empty if an answer came. */
export type SentRequest = { key: string; hash: Buffer }

/**
 * Writes attempts as RUNNING records of executions that are open, and requests that attempts have made, in one
 * statement. In a record that the projection has settled only the key of its request is changed, and an older attempt
 * never replaces a newer one, nor the beginning of an attempt its failure.
 */
export async function saveAttempts(
  store: Store,
  attempts: StartedAttempt[],
  requests: RequestRow[] = [],
): Promise<void> {
  const newest = new Map<string, StartedAttempt>()
  for (const attempt of attempts) {
    const key = `${attempt.executionId}/${attempt.nodeId}#${attempt.iteration}`
    const known = newest.get(key)
    const { attempt: number, request = known?.request } = attempt
    const newer = known && known.attempt > number ? known : attempt
    newest.set(key, { ...newer, ...(request ? { request } : {}) })
  }
  const rows = [...newest.values()].map(({ request, failure, ...attempt }) => ({
    ...attempt,
    requestKey: request?.key,
    requestHash: request?.hash.toString('hex'),
    failure: failure && cleanText(failure.message),
    nextAt: failure?.nextAt,
    tool: attempt.tool === undefined ? undefined : cleanText(attempt.tool),
    id: nodeExecutionId(attempt.executionId, attempt.nodeId, attempt.iteration),
    step: splitStep(attempt.iteration).step,
  }))
  await write(store, (tx) =>
    sql`
    with ${keepRequests(requests)}
    insert into node_executions as n
      (id, execution_id, node_id, iteration, node_name, node_type, status, started_at, retry_count, request_key,
        request_hash, error_message, next_attempt_at, step, tool)
    select r.id, r."executionId", r."nodeId", r.iteration, r."nodeName", r."nodeType", 'RUNNING', r.at, r.attempt - 1,
      r."requestKey", decode(r."requestHash", 'hex'), r.failure, r."nextAt", r.step, r.tool
    from json_to_recordset(${JSON.stringify(rows)}::json) as r(
      id uuid, "executionId" uuid, "nodeId" text, iteration text, "nodeName" text, "nodeType" text, at timestamptz, attempt int,
      "requestKey" text, "requestHash" text, failure text, "nextAt" timestamptz, step int, tool text)
    join executions e on e.id = r."executionId"
    where e.status in ('PENDING', 'RUNNING')
      -- A cancelled execution may have ended before its call knows of that.
      or r."requestHash" is not null and exists (select from node_executions known where known.id = r.id)
    order by r.id
    on conflict (execution_id, node_id, iteration) do update
      set retry_count = case when n.settled then n.retry_count else greatest(n.retry_count, excluded.retry_count) end,
        request_key = coalesce(excluded.request_key, n.request_key),
        request_hash = coalesce(excluded.request_hash, n.request_hash),
        error_message = case when not n.settled and excluded.retry_count >= n.retry_count
          then coalesce(excluded.error_message, n.error_message) else n.error_message end,
        next_attempt_at = case
          when n.settled or excluded.retry_count < n.retry_count then n.next_attempt_at
          when excluded.retry_count = n.retry_count then coalesce(excluded.next_attempt_at, n.next_attempt_at)
          else excluded.next_attempt_at end
      where not n.settled or excluded.request_hash is not null`.execute(tx),
  )
}

/**
 * The common table `kept`, which writes requests; a newer row of the same request replaces the older one. Requests of
 * executions that do not keep their inputs and outputs, or are deleted, are left out.
 */
function keepRequests(rows: RequestRow[]) {
  const of = <K extends keyof RequestRow>(key: K) => rows.map((row) => row[key])
  const ids = [...new Set(of('executionId'))]
  return sql`held as materialized (
      select id from executions where id = any(${ids}::uuid[]) and keep_inputs and keep_outputs
      order by id for key share),
    kept as (
      insert into node_requests (execution_id, record_id, attempt, number, sealed)
      select r.execution_id, r.record_id, r.attempt, r.number, r.sealed
      from held join unnest(${of('executionId')}::uuid[], ${of('recordId')}::uuid[], ${of('attempt')}::int[],
        ${of('number')}::int[], ${of('sealed')}::bytea[]) as r(execution_id, record_id, attempt, number, sealed)
        on r.execution_id = held.id
      order by r.execution_id, r.record_id, r.attempt, r.number
      on conflict (execution_id, record_id, attempt, number) do update set sealed = excluded.sealed)`
}

/** How many retries of retries are looked at for a request that was not answered. */
const MOST_EARLIER = 100

/**
 * The request that a node of an execution has sent without getting an answer, as far as that is known. If the
 * execution never came to the node, those that it retries are asked.
 */
export async function readUnanswered(
  store: Store,
  { executionId, nodeId, iteration }: Pick<StartedAttempt, 'executionId' | 'nodeId' | 'iteration'>,
): Promise<SentRequest | undefined> {
  const found = await sql<{ key: string; hash: Buffer }>`
    with recursive asked as (
      select id, retried_from, recovery, only_node, workflow_version, 1 as depth from executions where id = ${executionId}
      union all
      select e.id, e.retried_from, e.recovery, e.only_node, e.workflow_version, asked.depth + 1
      from asked join executions e on e.id = asked.retried_from and e.workflow_version = asked.workflow_version
      where asked.recovery = 'RETRY' and ${isNotSingle('asked.only_node')} and asked.depth < ${MOST_EARLIER}
        and not exists (select from node_executions n
          where n.execution_id = asked.id and n.node_id = ${nodeId} and n.iteration = ${iteration}))
    select n.request_key as key, n.request_hash as hash
    from asked join node_executions n
      on n.execution_id = asked.id and n.node_id = ${nodeId} and n.iteration = ${iteration}
    -- A node that succeeded had an answer; its note is not touched for that.
    where n.status <> 'SUCCESS' and n.request_key is not null and length(n.request_hash) > 0`.execute(
    store.db,
  )
  return found.rows[0]
}

/** The request that is noted for a node of this execution itself; undefined if none is. */
export async function readRequestNote(
  { db }: Store,
  { executionId, nodeId, iteration }: Pick<StartedAttempt, 'executionId' | 'nodeId' | 'iteration'>,
): Promise<SentRequest | undefined> {
  const row = await db
    .selectFrom('nodeExecutions')
    .select(['requestKey', 'requestHash'])
    .where('executionId', '=', executionId)
    .where('nodeId', '=', nodeId)
    .where('iteration', '=', iteration)
    .executeTakeFirst()
  if (!row?.requestKey || !row.requestHash) return undefined
  return { key: row.requestKey, hash: row.requestHash }
}
