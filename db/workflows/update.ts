import { sql } from 'kysely'
import { checkApprovers } from '../../workflows/graph/approvers.ts'
import { checkActivation } from '../../workflows/graph/check.ts'
import type { Graph } from '../../workflows/graph/graph.ts'
import type { Act } from '../acts.ts'
import { type Changed, change } from '../change.ts'
import { json, type Tx } from '../connection.ts'
import { openGates } from '../executions/starts/gate.ts'
import { Fault, invalid } from '../fault.ts'
import { readOwner } from '../owners.ts'
import { type Difference, describeChange } from '../redaction/difference.ts'
import { demand, type Scope, type Store } from '../scope.ts'
import { auditMoved } from '../secrets/keeping.ts'
import { moveSecrets } from '../secrets/moves.ts'
import { findApprover, identifyGraph } from './approvers.ts'
import { type Drawing, drawGraph, StaleDrawing, settleGraph } from './drawing.ts'
import { describeRedrawing } from './redrawn.ts'
import { checkCredentials, checkReferences } from './references.ts'
import { checkErrorWorkflow, readSettings, storeSettings, type WorkflowSettings } from './settings.ts'
import { addVersion, readStoredVersion, type StoredVersion } from './versions.ts'
import {
  guardWorkflowName,
  lockWorkflow,
  tagWorkflow,
  type Warned,
  type WorkflowDetail,
} from './workflows.ts'

/** How often a part of a graph is read together with the other part, if that changes meanwhile. */
const MAX_DRAWINGS = 5

type Patch = Drawing & {
  name?: string | undefined
  description?: string | null | undefined
  active?: boolean | undefined
  settings?: Partial<WorkflowSettings> | undefined
  /** The version whose graph becomes the current one again. */
  restore?: number | undefined
}

/** A patch of a workflow; `drawn` is the graph that the patch makes, undefined if it keeps it. */
type Wanted = {
  id: string
  teamId: string
  patch: Patch
  expected: string[] | undefined
  drawn: Awaited<ReturnType<typeof drawGraph>>
}

/** An update of a workflow that is locked: what is wanted, and how it is stored. */
type Update = Wanted & {
  tx: Tx
  /** That of the transaction. */
  store: Store
  stored: StoredVersion
  old: Awaited<ReturnType<typeof lockWorkflow>> & { settings: WorkflowSettings }
}

/** What the update makes of the version. */
type Next = Awaited<ReturnType<typeof settleNext>>

/**
 * Changes the given fields and keeps the others (BUILDER): nodes without edges keep the stored edges. A changed graph,
 * and changed notes, become a new version. Throws NOT_FOUND; CONFLICT if the team has a workflow of this name; INVALID
 * if the graph is not valid, or if the workflow is active without a trigger or with unreachable nodes;
 * PRECONDITION_FAILED if `expected` does not contain the workflow's current tag (see tagWorkflow).
 */
export async function updateWorkflow(
  scope: Scope,
  id: string,
  patch: Patch,
  expected?: string[],
): Promise<Warned<WorkflowDetail>> {
  const teamId = await readOwner(scope.store, 'workflows', id)
  demand(scope, teamId, 'BUILDER')
  const update = async (attempt = 1): Promise<Warned<WorkflowDetail>> => {
    const drawn = await drawGraph(scope.store, { id, teamId }, patch)
    const wanted = { id, teamId, patch, expected, drawn }
    return change(scope, 'WORKFLOW_UPDATED', teamId, (tx) => applyPatch(scope, tx, wanted)).catch((error) => {
      if (!(error instanceof StaleDrawing)) throw error
      if (attempt < MAX_DRAWINGS) return update(attempt + 1)
      throw new Fault('CONFLICT', 'Others keep changing the graph at the same time: try again')
    })
  }
  return guardWorkflowName(patch.name ?? '', () => update())
}

async function applyPatch(
  scope: Scope,
  tx: Tx,
  wanted: Wanted,
): Promise<Changed<Warned<WorkflowDetail>> & { act: Act }> {
  const { id, patch, drawn } = wanted
  const update = await lockUpdate(scope.store, tx, wanted)
  const { old, stored } = update
  const next = await settleNext(update)
  const { graph, approverIds, notes, redrawn, moved } = next
  await checkNext(update, next)
  const version = old.version + (redrawn || next.renoted ? 1 : 0)
  const fields = { ...patchFields(update, next), version }
  await checkSettings(update, fields.settings, graph)
  const told = describeChange(pickKeys(old, fields), fields)
  if (version !== old.version) {
    await addVersion(tx, id, version, { graph, approverIds, notes }, scope.userId, patch.restore)
  }
  const updatedAt = await storeFields(tx, id, fields, told.changed)
  const { nodes, edges, expressions = 1 } = graph
  const warnings = [...(drawn?.warnings ?? []), ...moved.left]
  const news = { nodes, edges, expressions, warnings, credentials: moved.made }
  return {
    act: patch.restore === undefined ? actOf(old.active, fields.active) : 'WORKFLOW_VERSION_RESTORED',
    result: { ...old, ...fields, updatedAt, ...news },
    resourceId: id,
    also: auditMoved(moved.made, id),
    details: {
      name: fields.name,
      ...told,
      ...(told.changed.includes('settings') ? tellSettings(old.settings, fields.settings, told) : {}),
      version,
      ...(redrawn ? { graph: describeRedrawing(stored.graph, graph) } : {}),
      ...(patch.restore === undefined ? {} : { restored: patch.restore }),
    },
  }
}

/** Locks the workflow, and checks that it still is what the update was made for. */
async function lockUpdate(from: Store, tx: Tx, wanted: Wanted): Promise<Update> {
  const { id, expected, drawn } = wanted
  const row = await lockWorkflow(tx, id)
  const store = { ...from, db: tx }
  const stored = await readStoredVersion(store, id, row.version)
  const old = { ...row, settings: readSettings(row.settings, stored.graph) }
  if (expected && !expected.includes(tagWorkflow(old))) {
    throw new Fault('PRECONDITION_FAILED', 'The workflow has changed since you read it: read it again')
  }
  if (drawn?.isStale(stored.graph)) throw new StaleDrawing()
  return { ...wanted, tx, store, stored, old }
}

/** The graph and the notes that the update makes, without secrets, and whether they differ from those that are stored. */
async function settleNext({ tx, store, id, teamId, patch, drawn, stored, old }: Update) {
  const { restore } = patch
  // It may have been deleted since it was read.
  const restored = restore === undefined ? undefined : await readStoredVersion(store, id, restore)
  const notes = restored ? restored.notes : (patch.settings?.notes ?? old.settings.notes)
  const renoted = JSON.stringify(notes) !== JSON.stringify(old.settings.notes)
  const known = restore === undefined ? stored.graph : drawn!.graph
  const { strict = stored.graph.strict } = restore === undefined ? { ...patch.settings } : drawn!.graph
  const { graph: settled, approverIds } = drawn
    ? await settleGraph(store, teamId, { ...drawn.graph, strict }, known.nodes)
    : { ...stored, graph: { ...stored.graph, strict } }
  const isTouched = drawn !== undefined || strict !== stored.graph.strict
  const options = { teamId, name: patch.name ?? old.name, known: stored.graph.nodes }
  const moved = isTouched
    ? await moveSecrets(tx, store, settled, options)
    : { graph: settled, made: [], left: [] }
  const { graph } = moved
  const redrawn =
    isTouched && identifyGraph(graph, approverIds) !== identifyGraph(stored.graph, stored.approverIds)
  return { graph, approverIds, notes, strict: strict ?? false, redrawn, renoted, moved }
}

/** Checks what the graph refers to, and that it can be started if the workflow is to be active. */
async function checkNext(
  { store, id, teamId, patch, old }: Update,
  { graph, approverIds, redrawn }: Next,
): Promise<void> {
  const active = patch.active ?? old.active
  if (redrawn) await checkReferences(store, teamId, graph, id)
  // They may have been deleted while it was inactive.
  else if (active && !old.active) await checkCredentials(store, teamId, graph)
  if (!active || !(redrawn || !old.active)) return
  const problems = checkActivation(graph)
  const isMember = (address: string) => !approverIds || !!findApprover(approverIds, address)
  problems.push(...checkApprovers(graph, isMember))
  if (problems.length > 0) throw invalid(problems)
}

function patchFields({ patch, old }: Update, { strict, notes }: Next) {
  return {
    name: patch.name ?? old.name,
    description: patch.description === undefined ? old.description : patch.description,
    active: patch.active ?? old.active,
    settings: { ...old.settings, ...patch.settings, strict, notes },
  }
}

async function checkSettings(
  { store, id, teamId, old }: Update,
  { errorWorkflowId }: WorkflowSettings,
  graph: Graph,
): Promise<void> {
  // An unchanged setting is not checked: an error workflow that has been deleted is simply skipped.
  if (errorWorkflowId && errorWorkflowId !== old.settings.errorWorkflowId) {
    await checkErrorWorkflow(store, teamId, errorWorkflowId, { id, graph })
  }
}

/** Stores the fields; returns when the workflow was last changed. */
async function storeFields(
  tx: Tx,
  id: string,
  fields: ReturnType<typeof patchFields> & { version: number },
  changed: string[],
): Promise<Date> {
  const { updatedAt } = await tx
    .updateTable('workflows')
    .set({ ...fields, settings: json(storeSettings(fields.settings)) })
    .$if(changed.length > 0, (query) => query.set({ updatedAt: sql<Date>`now()` }))
    .where('id', '=', id)
    .returning('updatedAt')
    .executeTakeFirstOrThrow()
  if (changed.includes('settings')) await openGates(tx, id)
  return updatedAt
}

function pickKeys<T extends object>(from: T, like: object): Partial<T> {
  return Object.fromEntries(Object.entries(from).filter(([key]) => key in like)) as Partial<T>
}

/** Only the settings that differ. */
function tellSettings(old: object, settings: object, { before, after }: Difference) {
  const told = describeChange({ ...old }, { ...settings })
  return { before: { ...before, settings: told.before }, after: { ...after, settings: told.after } }
}

function actOf(before: boolean, after: boolean): Act {
  if (before === after) return 'WORKFLOW_UPDATED'
  return after ? 'WORKFLOW_ACTIVATED' : 'WORKFLOW_DEACTIVATED'
}
