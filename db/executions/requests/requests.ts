import { sql } from 'kysely'
import { takeTurn } from '../../../workflows/turns.ts'
import { demandValues } from '../../chat/privacy.ts'
import { missing } from '../../fault.ts'
import { makePage, type Page, type PageRequest } from '../../page.ts'
import { readRecentRules } from '../../redaction/rules.ts'
import type { Scope } from '../../scope.ts'
import { openExchange, type ShownRequest, showExchange } from './exchange.ts'

/** One HTTP request of a node's attempt, redacted. Without a response and an error it is still under way. */
export type NodeRequest = ShownRequest & {
  /** The node's attempt, from 1. */
  attempt: number
}

/** The error of a request whose attempt is over, and of which only the beginning was noted. */
const UNKNOWN_ANSWER = 'What came back is not known: its worker was lost, or has yet to note it'

/**
 * The HTTP requests of a node's record, by attempts and as they were made (VIEWER). Throws NOT_FOUND if there is no
 * such execution or record, and FORBIDDEN for another owner's chat.
 */
export async function listNodeRequests(
  scope: Scope,
  { id, recordId }: { id: string; recordId: string },
  query: PageRequest,
): Promise<Page<NodeRequest>> {
  const teamId = await demandValues(scope, id)
  const { db, keys } = scope.store
  const ofRecord = sql`execution_id = ${id} and record_id = ${recordId}`
  const found = await sql<{ total: number; over: number | null }>`
    select (select count(*) from node_requests where ${ofRecord}) as total,
      -- The attempts up to this one are over.
      (select case when status = 'RUNNING' and next_attempt_at is null then retry_count else 2147483647 end
        from node_executions where id = ${recordId} and execution_id = ${id}) as over`.execute(db)
  const { total = 0, over = null } = found.rows[0] ?? {}
  if (over === null && total === 0) throw missing('record of a node')
  const { rows } = await sql<{ attempt: number; number: number; sealed: Buffer }>`
    select attempt, number, sealed from node_requests where ${ofRecord}
    order by attempt, number limit ${query.size} offset ${query.page * query.size}`.execute(db)
  const rules = await readRecentRules(db, db)
  const shown: NodeRequest[] = []
  for (const row of rows) {
    const request = showExchange(openExchange(keys, { executionId: id, recordId, ...row }), rules)
    const isUnknown = request.durationMs === null && over !== null && row.attempt <= over
    shown.push({ attempt: row.attempt, ...request, ...(isUnknown ? { error: UNKNOWN_ANSWER } : {}) })
    await takeTurn(teamId)
  }
  return makePage(shown, total, query)
}
