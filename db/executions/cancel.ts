import { sql } from 'kysely'
import { change } from '../change.ts'
import type { Tx } from '../connection.ts'
import { Fault, missing } from '../fault.ts'
import { expectNoMore } from '../outbox.ts'
import { readOwner } from '../owners.ts'
import type { Scope } from '../scope.ts'
import { forgetStarted } from './starts/runstart.ts'
import { isEnded } from './status.ts'

/**
 * Cancels an execution for an OPERATOR: one that has not started ends at once, one that runs is cancelled
 * through Temporal and can from now on only end CANCELLED. Returns its status afterwards; asking again changes
 * nothing. Throws CONFLICT if it has ended.
 */
export async function cancelExecution(scope: Scope, id: string): Promise<string> {
  const teamId = await readOwner(scope.store, 'executions', id)
  forgetStarted(scope.store, id)
  expectNoMore(scope.store, id)
  return change(scope, 'EXECUTION_CANCELLED', teamId, async (tx) => {
    const row = await tx
      .selectFrom('executions')
      .select(['status', 'workflowId', 'cancelRequestedAt'])
      .where('id', '=', id)
      .forUpdate()
      .executeTakeFirst()
    if (!row) throw missing('execution')
    if (isEnded(row.status)) throw new Fault('CONFLICT', `The execution has already ended: ${row.status}`)
    const [cancelled] = await cancelOpen(tx, [id], { byCaller: true })
    const result = cancelled!.status
    if (row.cancelRequestedAt !== null) return { result, unchanged: true }
    return { result, resourceId: id, details: { workflowId: row.workflowId, status: row.status } }
  })
}

/**
 * Cancels those of the given executions that are open, and returns them with their status afterwards. Everything that
 * cancels calls this, or the database function behind it (db/functions.sql). `why` is the error message of an execution
 * that has not started; of a RUNNING one only if it was not asked to cancel before. The sweeper tells Temporal at once;
 * with `byCaller` after five seconds, since the caller does it first.
 */
export async function cancelOpen(
  tx: Tx,
  ids: string[],
  { why = null, byCaller = false }: { why?: string | null; byCaller?: boolean } = {},
): Promise<{ id: string; status: string }[]> {
  const { rows } = await sql<{ id: string; status: string }>`
    select execution as id, stands as status from cancel_executions(${ids}::uuid[], ${why}::text,
      now() + case when ${byCaller} then interval '5 seconds' else interval '0' end)`.execute(tx)
  return rows
}
