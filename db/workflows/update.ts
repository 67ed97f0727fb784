import { checkApprovers } from '../../workflows/graph/approvers.ts'
import { checkActivation } from '../../workflows/graph/check.ts'
import type { Problem } from '../../workflows/problem.ts'
import type { Act } from '../acts.ts'
import { type Changed, change } from '../change.ts'
import { Fault, invalid } from '../fault.ts'
import { readOwner } from '../owners.ts'
import { type Difference, describeChange } from '../redaction/difference.ts'
import { demand, type Scope } from '../scope.ts'
import { auditMoved } from '../secrets/keeping.ts'
import { moveSecrets } from '../secrets/moves.ts'
import { findApprover, identifyGraph } from './approvers.ts'
import { pruneDrafts } from './drafts/drafts.ts'
import { demandState, type LockedWorkflow, lockVersions } from './drafts/locked.ts'
import { storeFields } from './drafts/rows.ts'
import { type Drawing, drawGraph, StaleDrawing, settleGraph } from './drawing.ts'
import { describeRedrawing } from './redrawn.ts'
import { findReferenceProblems, findUnusableCredentials } from './references.ts'
import { checkErrorWorkflow, type WorkflowSettings } from './settings.ts'
import { addVersion, readStoredVersion, type StoredVersion } from './versions.ts'
import { guardWorkflowName, type Warned, type WorkflowDetail } from './workflows.ts'

/** How often a part of a graph is read together with the other part, if that changes meanwhile. */
const MAX_DRAWINGS = 5

export type Patch = Drawing & {
  name?: string | undefined
  description?: string | null | undefined
  active?: boolean | undefined
  settings?: Partial<WorkflowSettings> | undefined
  /** The graph and what else has versions become the draft, instead of being published. */
  draft?: boolean | undefined
  /** The version whose graph is published again. */
  restore?: number | undefined
  /** It is restored by a publication: what was said of it, and whether it was the draft, which is then gone. */
  publication?: { note: string | null; isDraft: boolean }
}

/** A patch of a workflow; `drawn` is the graph that the patch makes, undefined if it keeps it. */
type Wanted = {
  id: string
  teamId: string
  patch: Patch
  expected: string[] | undefined
  drawn: Awaited<ReturnType<typeof drawGraph>>
}

/** An update of a workflow that is locked: what is wanted, and the version that it changes. */
type Update = Wanted & LockedWorkflow & { base: LockedWorkflow['published'] }

/** What the update makes of the version. */
type Next = Awaited<ReturnType<typeof settleNext>>

/**
 * Changes the given fields and keeps the others (BUILDER): nodes without edges keep the stored edges. A changed graph,
 * and changed notes, become a new version, which is published, or is the new draft. Throws NOT_FOUND; CONFLICT if the
 * team has a workflow of this name, or another active one with a tool of the same name; INVALID if the graph is not
 * valid, or if the workflow is active and what is published lacks a trigger or has unreachable nodes; PRECONDITION_FAILED
 * if `expected` does not contain the workflow's current tag (see tagWorkflow).
 */
export async function updateWorkflow(
  scope: Scope,
  id: string,
  patch: Patch,
  expected?: string[],
): Promise<Warned<WorkflowDetail>> {
  const teamId = await readOwner(scope.store, 'workflows', id)
  demand(scope, teamId, 'BUILDER')
  const update = () =>
    redraw(async () => {
      const drawn = await drawGraph(scope.store, { id, teamId }, patch)
      const wanted = { id, teamId, patch, expected, drawn }
      return change(scope, 'WORKFLOW_UPDATED', teamId, async (tx) => {
        const locked = await lockVersions(scope.store, tx, id)
        return applyPatch(scope, locked, wanted)
      })
    })
  return guardWorkflowName(patch.name ?? '', update)
}

/** Does what was read before the workflow was locked once more while it has changed meanwhile. */
export async function redraw<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; attempt <= MAX_DRAWINGS; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof StaleDrawing)) throw error
    }
  }
  throw new Fault('CONFLICT', 'Others keep changing the graph at the same time: try again')
}

/** Applies a patch to a workflow that is locked. Throws what updateWorkflow does, and StaleDrawing. */
export async function applyPatch(
  scope: Scope,
  locked: LockedWorkflow,
  wanted: Wanted,
): Promise<Changed<Warned<WorkflowDetail>> & { act: Act }> {
  const { id, patch, drawn } = wanted
  const { tx, published } = locked
  const old = published.shown
  const toDraft = patch.draft === true
  const base = (toDraft && locked.draft) || published
  if (!patch.publication) demandState(locked, wanted.expected, toDraft ? 'draft' : 'published')
  if (drawn?.isStale(base.stored.graph)) throw new StaleDrawing()
  const update: Update = { ...wanted, ...locked, base }
  const next = await settleNext(update)
  const { graph, approverIds, notes, redrawn, moved } = next
  await checkNext(update, next)
  const isNew = redrawn || next.renoted
  const version = isNew ? locked.next : base.shown.version
  const fields = { ...patchFields(update, next), ...numberFields(update, version) }
  await checkSettings(update, fields.settings, next)
  const told = describeChange(pickKeys(old, fields), fields)
  if (isNew) {
    const origin = {
      ...{ from: base.shown.version, restoredFrom: patch.restore },
      ...{ draft: toDraft, note: patch.publication?.note },
    }
    await addVersion(tx, wanted, version, { graph, approverIds, notes }, scope.userId, origin)
  }
  const stored = await storeFields(
    locked,
    { ...fields, lastDraft: toDraft && isNew },
    { changed: told.changed, graph: toDraft ? published.stored.graph : graph },
  )
  if (toDraft && isNew) await pruneDrafts(tx, id)
  const { nodes, edges, expressions = 1 } = graph
  const news = { nodes, edges, expressions, credentials: moved.made }
  const warnings = [...(drawn?.warnings ?? []), ...moved.left]
  const { version: publishedVersion, ...changed } = fields
  const settings = { ...fields.settings, strict: next.strict, notes }
  const result = { ...old, ...changed, settings, ...stored, version, publishedVersion, ...news, warnings }
  return {
    act: actOf(patch, old.active, fields.active),
    result,
    resourceId: id,
    also: auditMoved(moved.made, id),
    details: {
      name: fields.name,
      ...told,
      ...(told.changed.includes('settings') ? tellSettings(old.settings, fields.settings, told) : {}),
      version: publishedVersion,
      ...(toDraft && fields.draftVersion !== null ? { draft: fields.draftVersion } : {}),
      ...(redrawn ? { graph: describeRedrawing(base.stored.graph, graph) } : {}),
      ...(patch.restore === undefined ? {} : { restored: patch.restore }),
      ...(patch.publication?.note ? { note: patch.publication.note } : {}),
    },
  }
}

/** The graph and the notes that the update makes, without secrets, and whether they differ from those that are stored. */
async function settleNext({ tx, store, id, teamId, patch, drawn, base, published }: Update) {
  const { restore } = patch
  const { stored } = base
  // It may have been deleted since it was read.
  const restored = restore === undefined ? undefined : await readStoredVersion(store, id, restore)
  const before = base.shown.settings.notes
  const notes = restored ? restored.notes : (patch.settings?.notes ?? before)
  const renoted = JSON.stringify(notes) !== JSON.stringify(before)
  const known = restore === undefined ? stored.graph : drawn!.graph
  const { strict = stored.graph.strict } = restore === undefined ? { ...patch.settings } : drawn!.graph
  const { graph: settled, approverIds } = drawn
    ? await settleGraph(store, teamId, { ...drawn.graph, strict }, known.nodes)
    : { ...stored, graph: { ...stored.graph, strict } }
  const isTouched = drawn !== undefined || strict !== stored.graph.strict
  const options = { teamId, name: patch.name ?? published.shown.name, known: stored.graph.nodes }
  const moved = isTouched
    ? await moveSecrets(tx, store, settled, options)
    : { graph: settled, made: [], left: [] }
  const { graph } = moved
  const redrawn =
    isTouched && identifyGraph(graph, approverIds) !== identifyGraph(stored.graph, stored.approverIds)
  return { graph, approverIds, notes, strict: strict ?? false, redrawn, renoted, moved }
}

/** Checks what a new graph refers to, and that what is published can be started if the workflow is to be active. */
async function checkNext(update: Update, next: Next): Promise<void> {
  const { store, id, teamId, patch, published, base } = update
  const { active: wasActive } = published.shown
  const active = patch.active ?? wasActive
  const problems: Problem[] = []
  const from = patch.restore ?? base.shown.version
  if (next.redrawn) problems.push(...(await findReferenceProblems(store, teamId, next.graph, id, { from })))
  const isActivated = active && !wasActive
  const live = patch.draft ? published.stored : next
  // They may have been deleted while it was inactive.
  if (isActivated && (patch.draft || !next.redrawn))
    problems.push(...(await findUnusableCredentials(store, teamId, live.graph)))
  if (isActivated || (active && next.redrawn && !patch.draft)) problems.push(...findInactive(live))
  if (problems.length > 0) throw invalid(problems)
}

/** Why a version cannot be that of an active workflow. */
export function findInactive({ graph, approverIds }: Omit<StoredVersion, 'notes'>): Problem[] {
  const isMember = (address: string) => !approverIds || !!findApprover(approverIds, address)
  return [...checkActivation(graph), ...checkApprovers(graph, isMember)]
}

/** The fields that count at once; `strict` and `notes` are those of the version that is published. */
function patchFields({ patch, published }: Update, { strict, notes }: Next) {
  const old = published.shown
  const kept = patch.draft ? old.settings : { strict, notes }
  return {
    name: patch.name ?? old.name,
    description: patch.description === undefined ? old.description : patch.description,
    active: patch.active ?? old.active,
    settings: { ...old.settings, ...patch.settings, strict: kept.strict, notes: kept.notes },
  }
}

/** Which versions are the published one and the draft after the update, which makes or keeps `version`. */
function numberFields({ patch, base, published }: Update, version: number) {
  const { version: live, draftVersion } = published.shown
  if (patch.draft)
    return { version: live, draftVersion: version === base.shown.version ? draftVersion : version }
  return { version, draftVersion: patch.publication?.isDraft ? null : draftVersion }
}

async function checkSettings(
  { store, id, teamId, patch, published }: Update,
  { errorWorkflowId }: WorkflowSettings,
  next: Next,
): Promise<void> {
  // An unchanged setting is not checked: an error workflow that has been deleted is simply skipped.
  if (errorWorkflowId && errorWorkflowId !== published.shown.settings.errorWorkflowId) {
    const { graph } = patch.draft ? published.stored : next
    await checkErrorWorkflow(store, teamId, errorWorkflowId, { id, graph })
  }
}

function pickKeys<T extends object>(from: T, like: object): Partial<T> {
  return Object.fromEntries(Object.entries(from).filter(([key]) => key in like)) as Partial<T>
}

/** Only the settings that differ. */
function tellSettings(old: object, settings: object, { before, after }: Difference) {
  const told = describeChange({ ...old }, { ...settings })
  return { before: { ...before, settings: told.before }, after: { ...after, settings: told.after } }
}

function actOf({ restore, publication, draft }: Patch, before: boolean, after: boolean): Act {
  if (publication) return 'WORKFLOW_PUBLISHED'
  if (restore !== undefined) return 'WORKFLOW_VERSION_RESTORED'
  if (before === after) return draft ? 'WORKFLOW_DRAFT_SAVED' : 'WORKFLOW_UPDATED'
  return after ? 'WORKFLOW_ACTIVATED' : 'WORKFLOW_DEACTIVATED'
}
