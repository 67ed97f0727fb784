import { sql } from 'kysely'
import { missing } from '../fault.ts'
import { makePage, type Page, type PageRequest } from '../page.ts'
import { demandExecution } from '../records/changes.ts'
import type { Scope } from '../scope.ts'
import type { KeptRequest } from './exchange.ts'

/** One HTTP request of a node's attempt, redacted. Without a response and an error it is still under way. */
export type NodeRequest = KeptRequest & {
  /** The node's attempt, from 1. */
  attempt: number
}

/** The error of a request whose attempt is over, and of which only the beginning was noted. */
const UNKNOWN_ANSWER = 'What came back is not known: its worker was lost, or has yet to note it'

/**
 * The HTTP requests of a node's record, by attempts and as they were made (VIEWER). Throws NOT_FOUND if there is no
 * such execution or record.
 */
export async function listNodeRequests(
  scope: Scope,
  { id, recordId }: { id: string; recordId: string },
  query: PageRequest,
): Promise<Page<NodeRequest>> {
  await demandExecution(scope, id)
  const { rows } = await sql<{
    total: number
    over: number | null
    content: { attempt: number; entry: KeptRequest }[]
  }>`
    select (select count(*) from node_requests where execution_id = ${id} and record_id = ${recordId}) as total,
      -- The attempts up to this one are over.
      (select case when status = 'RUNNING' and next_attempt_at is null then retry_count else 2147483647 end
        from node_executions where id = ${recordId} and execution_id = ${id}) as over,
      (select coalesce(json_agg(json_build_object('attempt', attempt, 'entry', entry) order by attempt, number), '[]')
        from (select attempt, number, entry from node_requests
          where execution_id = ${id} and record_id = ${recordId}
          order by attempt, number limit ${query.size} offset ${query.page * query.size}) page) as content`.execute(
    scope.store.db,
  )
  const { total = 0, over = null, content = [] } = rows[0] ?? {}
  if (over === null && total === 0) throw missing('record of a node')
  const shown = content.map(({ attempt, entry }) => ({ attempt, ...entry, ...tellEnd(entry, attempt, over) }))
  return makePage(shown, total, query)
}

/** What is to be said of a request of which only the beginning was noted. */
function tellEnd({ durationMs }: KeptRequest, attempt: number, over: number | null) {
  return durationMs === null && over !== null && attempt <= over ? { error: UNKNOWN_ANSWER } : {}
}
