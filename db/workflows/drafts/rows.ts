import { sql } from 'kysely'
import type { Graph } from '../../../workflows/graph/graph.ts'
import { json } from '../../connection.ts'
import { openGates } from '../../executions/starts/gate.ts'
import { offerTools } from '../../mcp/tools.ts'
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
 * Stores the fields, of which `changed` are others than before; `graph` is that of the version which is published then.
 * Returns when the workflow was last changed (a draft changes nothing that counts), and which version was published when
 * its draft began. Throws CONFLICT if another active workflow of the team has a tool of the same name.
 */
export async function storeFields(
  { tx, teamId, published }: LockedWorkflow,
  { lastDraft, ...fields }: Fields,
  { changed, graph }: { changed: string[]; graph: Graph },
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
  if (changed.includes('active') || changed.includes('version'))
    await offerTools(tx, { id, teamId, active: fields.active }, graph)
  return stored
}
