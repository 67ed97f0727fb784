import { sql } from 'kysely'
import { change } from '../../change.ts'
import type { Tx } from '../../connection.ts'
import { readOwner } from '../../owners.ts'
import type { Scope } from '../../scope.ts'
import { noDraft } from '../versions.ts'
import { demandState, lockVersions } from './locked.ts'

/** How many older drafts of a workflow that were never executed are kept. */
const KEPT_DRAFTS = 50

/**
 * Discards a workflow's draft (BUILDER): it stays among the older versions for a while. Throws NOT_FOUND, also if there is
 * no draft, and PRECONDITION_FAILED if `expected` does not contain the draft's tag.
 */
export async function discardDraft(scope: Scope, id: string, expected?: string[]): Promise<void> {
  const teamId = await readOwner(scope.store, 'workflows', id)
  await change(scope, 'WORKFLOW_DRAFT_DISCARDED', teamId, async (tx) => {
    const locked = await lockVersions(scope.store, tx, id)
    if (!locked.draft) throw noDraft('NOT_FOUND')
    demandState(locked, expected, 'draft')
    await tx.updateTable('workflows').set({ draftVersion: null }).where('id', '=', id).execute()
    await pruneDrafts(tx, id)
    const { name, version } = locked.draft.shown
    return { result: undefined, resourceId: id, details: { name, draft: version } }
  })
}

/**
 * Deletes the oldest of the workflow's former drafts that were never executed, but for the last ones. The caller has
 * locked the workflow.
 */
export async function pruneDrafts(tx: Tx, workflowId: string): Promise<void> {
  const unused = sql`not exists (select from executions e
    where e.workflow_id = v.workflow_id and e.workflow_version = v.version)`
  // A version that an execution is being written for is locked: it is skipped.
  const { rows } = await sql<{ version: number }>`
    select v.version from workflow_versions v
    where v.workflow_id = ${workflowId} and v.version = any(array(
      select v.version from workflow_versions v join workflows w on w.id = v.workflow_id
      where w.id = ${workflowId} and v.draft and v.version is distinct from w.draft_version and ${unused}
      order by v.version desc offset ${KEPT_DRAFTS}))
    for update skip locked`.execute(tx)
  if (rows.length === 0) return
  // Once more, since an execution may have been written before the lock.
  await sql`delete from workflow_versions v where v.workflow_id = ${workflowId}
    and v.version = any(${rows.map(({ version }) => version)}::integer[]) and ${unused}`.execute(tx)
}
