import { sql } from 'kysely'
import { json } from '../../connection.ts'
import { openGates } from '../../executions/starts/gate.ts'
import { storeSettings, type WorkflowSettings } from '../settings.ts'
import type { LockedWorkflow } from './locked.ts'

/** What an update makes of a workflow's row. `lastDraft`: the draft has a new number. */
type Fields = {
  name: string
  description: string | null
  active: boolean
  settings: WorkflowSettings
  version: number
  draftVersion: number | null
  lastDraft: boolean
}

/**
 * Stores the fields, of which `changed` are others than before. Returns when the workflow was last changed (a draft
 * changes nothing that counts), and which version was published when its draft began.
 */
export async function storeFields(
  { tx, published }: LockedWorkflow,
  { lastDraft, ...fields }: Fields,
  changed: string[],
): Promise<{ updatedAt: Date; draftBase: number | null }> {
  const { id } = published.shown
  const counts = changed.some((key) => key !== 'draftVersion')
  const stored = await tx
    .updateTable('workflows')
    .set({ ...fields, settings: json(storeSettings(fields.settings)) })
    .$if(lastDraft, (query) => query.set({ lastDraft: fields.draftVersion }))
    .$if(counts, (query) => query.set({ updatedAt: sql<Date>`now()` }))
    .where('id', '=', id)
    .returning(['updatedAt', 'draftBase'])
    .executeTakeFirstOrThrow()
  if (changed.includes('settings')) await openGates(tx, id)
  return stored
}
