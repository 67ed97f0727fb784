import { sql } from 'kysely'
import { change } from '../change.ts'
import { isPrivate, isShownTo, openExecution } from '../chat/privacy.ts'
import type { Tx } from '../connection.ts'
import { Fault, missing } from '../fault.ts'
import type { Scope } from '../scope.ts'
import { isEnded } from './status.ts'

/** Temporal deletes histories that are older than this by itself. */
const HISTORY_DAYS = 31

/**
 * Deletes an execution that has ended (BUILDER), with its values, records and files, and queues the removal of what
 * Temporal knows of it. Executions that it has started, or that repeat it, stay. Throws NOT_FOUND, FORBIDDEN if it is
 * part of another owner's chat, and CONFLICT if it has not ended, or if its result has yet to be taken over.
 */
export async function deleteExecution(scope: Scope, id: string): Promise<void> {
  const { teamId, hidden } = await openExecution(scope, id)
  await change(scope, 'EXECUTION_DELETED', teamId, async (tx) => {
    if (hidden) throw isPrivate()
    const row = await tx
      .selectFrom('executions')
      .select(['status', 'workflowId', 'workflowName', 'trigger', 'createdAt'])
      .where('id', '=', id)
      .forUpdate()
      .executeTakeFirst()
    if (!row) throw missing('execution')
    if (!isEnded(row.status))
      throw new Fault('CONFLICT', `The execution has not ended: ${row.status}. Cancel it first`)
    const removed = await removeEnded(tx, scope, teamId, [id])
    if (removed.length === 0) throw new Fault('CONFLICT', STILL_NEEDED)
    return { result: undefined, resourceId: id, details: row }
  })
}

export const STILL_NEEDED =
  'The execution that started it, its error workflow or its chat has yet to read what it came to'

/**
 * Removes those of these executions of a team that have ended, that are not hidden from the caller, and that nothing still
 * needs: an open parent may start a child anew that is gone. Returns their ids.
 */
export async function removeEnded(tx: Tx, scope: Scope, teamId: string, ids: string[]): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    with chosen as materialized (
      select id, completed_at from executions e
      where id = any(${ids}::uuid[]) and team_id = ${teamId} and status in ('SUCCESS', 'FAILED', 'CANCELLED')
        and ${isShownTo(scope, teamId, 'e')}
        and not exists (select from executions p
          where p.id = e.parent_id and not e.detached and p.status in ('PENDING', 'RUNNING'))
        and not exists (select from outbox b where b.subject_id = e.id and b.kind = 'ERROR')
        and not exists (select from agent_chat_messages m where m.execution_id = e.id and m.status = 'STREAMING')
      order by id for update of e),
    dropped as (delete from outbox b using chosen c where b.subject_id = c.id and b.kind <> 'DELETE'),
    queued as (
      insert into outbox (kind, subject_id, team_id)
      select 'DELETE', id, ${teamId}::uuid from chosen
      where completed_at > now() - ${HISTORY_DAYS} * interval '1 day' on conflict do nothing)
    delete from executions e using chosen c where e.id = c.id returning e.id`.execute(tx)
  return rows.map(({ id }) => id)
}
