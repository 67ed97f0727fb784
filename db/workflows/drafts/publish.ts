import { type Changed, change } from '../../change.ts'
import { invalid } from '../../fault.ts'
import { readOwner } from '../../owners.ts'
import { describeChange } from '../../redaction/difference.ts'
import { demand, type Scope } from '../../scope.ts'
import { presentApprovers } from '../approvers.ts'
import { drawGraph, StaleDrawing } from '../drawing.ts'
import { describeRedrawing } from '../redrawn.ts'
import { findReferenceProblems } from '../references.ts'
import { applyPatch, findInactive, redraw } from '../update.ts'
import { noDraft } from '../versions.ts'
import type { Warned, WorkflowDetail } from '../workflows.ts'
import { demandState, type LockedWorkflow, lockVersions } from './locked.ts'
import { storeFields } from './rows.ts'

/** What is to be published: the draft, or the version of this number. `active` is kept if it is not given. */
export type Publication = {
  version?: number | undefined
  note?: string | null | undefined
  active?: boolean | undefined
}

/**
 * Publishes a workflow's draft or another of its versions (BUILDER). The draft becomes the published version as it is; any
 * other version, and a draft that is older than what is published, becomes a new version that restores it. Throws
 * NOT_FOUND; CONFLICT without a draft; INVALID with all that keeps the graph from being published; PRECONDITION_FAILED if
 * `expected` does not contain the tag of the draft or, for another version, of what is published (see demandTag).
 */
export async function publishVersion(
  scope: Scope,
  id: string,
  { version, note = null, active }: Publication,
  expected?: string[],
): Promise<Warned<WorkflowDetail>> {
  const { store } = scope
  const teamId = await readOwner(store, 'workflows', id)
  demand(scope, teamId, 'BUILDER')
  let restore = version
  return redraw(async () => {
    const drawn = restore === undefined ? undefined : await drawGraph(store, { id, teamId }, { restore })
    return change(scope, 'WORKFLOW_PUBLISHED', teamId, async (tx) => {
      const locked = await lockVersions(store, tx, id)
      const { published, draft } = locked
      const target = version ?? draft?.shown.version
      if (target === undefined) throw noDraft('CONFLICT')
      const isDraft = target === draft?.shown.version
      demandState(locked, expected, isDraft ? 'draft' : 'published')
      if (isDraft && target > published.shown.version) return publishDraft(scope, locked, { note, active })
      if (restore !== target) {
        restore = target
        throw new StaleDrawing()
      }
      const patch = { restore, active, publication: { note, isDraft } }
      return applyPatch(scope, locked, { id, teamId, patch, expected, drawn })
    })
  })
}

/** Makes the draft the published version: its graph was read when it was saved, what it refers to may have changed. */
async function publishDraft(
  scope: Scope,
  locked: LockedWorkflow,
  { note, active = locked.published.shown.active }: { note: string | null; active: boolean | undefined },
): Promise<Changed<Warned<WorkflowDetail>>> {
  const { tx, store, teamId, published } = locked
  const { stored, shown } = locked.draft!
  const { id, name, description, version, settings } = shown
  const problems = await findReferenceProblems(store, teamId, stored.graph, id, { from: version })
  if (active) problems.push(...findInactive(stored))
  if (problems.length > 0) throw invalid(problems)
  await tx
    .updateTable('workflowVersions')
    .set((eb) => ({ draft: false, publishedAt: eb.fn('now'), publishedBy: scope.userId, note }))
    .where('workflowId', '=', id)
    .where('version', '=', version)
    .execute()
  const { active: wasActive, version: before } = published.shown
  const told = describeChange({ version: before, active: wasActive }, { version, active })
  const fields = { name, description, active, settings, version, draftVersion: null, lastDraft: false }
  const written = await storeFields(locked, fields, { changed: told.changed, graph: stored.graph })
  const { edges, expressions = 1 } = stored.graph
  const nodes = stored.graph.nodes.map(await presentApprovers(store, teamId, stored.approverIds))
  const numbers = { version, publishedVersion: version, draftVersion: null }
  const news = { nodes, edges, expressions, warnings: [], credentials: [] }
  return {
    result: { ...shown, active, ...written, ...numbers, ...news },
    resourceId: id,
    details: {
      name,
      ...told,
      graph: describeRedrawing(published.stored.graph, stored.graph),
      ...(note ? { note } : {}),
    },
  }
}
