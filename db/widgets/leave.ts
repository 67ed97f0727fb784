import type { AuditEntry } from '../audit/audit.ts'
import type { Tx } from '../connection.ts'

/**
 * Disables the widgets of a workflow that is about to be deleted, and returns the audit entries that say so. They keep
 * their settings, so that they can be given another workflow.
 */
export async function leaveWidgets(
  tx: Tx,
  workflowId: string,
): Promise<(AuditEntry & { act: 'WIDGET_UPDATED' })[]> {
  const enabled = await tx
    .selectFrom('widgets')
    .select(['id', 'name'])
    .where('workflowId', '=', workflowId)
    .where('enabled', '=', true)
    .orderBy('id')
    .forUpdate()
    .execute()
  // A trigger disables each of them, on every way to delete the workflow.
  await tx.updateTable('widgets').set({ workflowId: null }).where('workflowId', '=', workflowId).execute()
  const told = {
    changed: ['enabled', 'workflowId'],
    before: { enabled: true, workflowId },
    after: { enabled: false, workflowId: null },
  }
  return enabled.map(({ id, name }) => ({
    act: 'WIDGET_UPDATED',
    resourceId: id,
    details: { name, ...told },
  }))
}
