import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { NEWEST_RULES, type Rules } from '../../workflows/expressions/rules.ts'
import { checkApprovers } from '../../workflows/graph/approvers.ts'
import { checkActivation } from '../../workflows/graph/check.ts'
import type { Graph, GraphNode } from '../../workflows/graph/graph.ts'
import type { ImportReport } from '../../workflows/n8n/report.ts'
import type { Problem } from '../../workflows/problem.ts'
import { type Act, covers } from '../acts.ts'
import { change } from '../change.ts'
import { json, type Tx } from '../connection.ts'
import { findBrokenCredentials } from '../credentials/references.ts'
import { forgetExecutions } from '../executions/executions.ts'
import { Fault, invalid, missing } from '../fault.ts'
import { guardUnique } from '../owned.ts'
import { readOwner } from '../owners.ts'
import { containing, countRows, makePage, type Page, type PageRequest } from '../page.ts'
import { type Difference, describeChange } from '../redaction/difference.ts'
import { demand, demandTeam, type Scope } from '../scope.ts'
import { auditMoved, type Moved, type MovedSecret, moveSecrets } from '../secrets/moves.ts'
import { openGates } from '../starts/gate.ts'
import { leaveWidgets } from '../widgets/leave.ts'
import { findAgents } from './agents.ts'
import { findApprover, identifyGraph, presentApprovers } from './approvers.ts'
import { checkGraph, type Drawing, drawGraph, StaleDrawing, settleGraph } from './drawing.ts'
import { describeRedrawing } from './redrawn.ts'
import { checkCredentials, checkReferences } from './references.ts'
import { hideSecrets } from './secrets.ts'
import {
  checkErrorWorkflow,
  DEFAULT_SETTINGS,
  readSettings,
  storeSettings,
  type WorkflowSettings,
} from './settings.ts'
import { addVersion, readStoredVersion } from './versions.ts'

export type Workflow = {
  id: string
  name: string
  description: string | null
  active: boolean
  teamId: string
  createdAt: Date
  updatedAt: Date
}

export type WorkflowItem = Workflow & {
  nodeCount: number
  lastExecutionStatus: string | null
  lastExecutionAt: Date | null
}
export type WorkflowDetail = Workflow &
  Pick<Graph, 'nodes' | 'edges'> & { expressions: Rules; settings: WorkflowSettings; version: number }

/** A workflow that has been saved, what in its graph may be a mistake, and the credentials that it has got secrets in. */
type Warned<T> = T & { warnings: Problem[]; credentials: MovedSecret[] }

const COLUMNS = ['id', 'name', 'description', 'active', 'teamId', 'createdAt', 'updatedAt'] as const

type WorkflowQuery = PageRequest & {
  teamId: string
  search?: string | undefined
  active?: boolean | undefined
  agent?: boolean | undefined
}

/**
 * A team's workflows, newest first (VIEWER). `search` matches any part of the name, ignoring case; `agent` leaves those
 * that one can chat with, or the others.
 */
export async function listWorkflows(scope: Scope, query: WorkflowQuery): Promise<Page<WorkflowItem>> {
  await demandTeam(scope, query.teamId, 'VIEWER')
  let found = scope.store.db.selectFrom('workflows as w').where('w.teamId', '=', query.teamId)
  if (query.search) found = found.where('w.name', 'ilike', containing(query.search))
  if (query.active !== undefined) found = found.where('w.active', '=', query.active)
  if (query.agent !== undefined) {
    const agents = sql<boolean>`w.id = any(${await findAgents(scope.store, query.teamId)}::uuid[])`
    found = found.where(query.agent ? agents : sql<boolean>`not ${agents}`)
  }
  const total = await countRows(found)
  const content = await found
    .innerJoin('workflowVersions as v', (join) =>
      join.onRef('v.workflowId', '=', 'w.id').onRef('v.version', '=', 'w.version'),
    )
    .select(COLUMNS.map((column) => `w.${column}` as const))
    .select('v.nodeCount')
    .leftJoinLateral(
      (eb) =>
        eb
          .selectFrom('executions as e')
          .select(['e.status as lastExecutionStatus', 'e.createdAt as lastExecutionAt'])
          .whereRef('e.workflowId', '=', 'w.id')
          .orderBy('e.createdAt', 'desc')
          .orderBy('e.id', 'desc')
          .limit(1)
          .as('last'),
      (join) => join.onTrue(),
    )
    .select(['last.lastExecutionStatus', 'last.lastExecutionAt'])
    .orderBy('w.createdAt', 'desc')
    .orderBy('w.id', 'desc')
    .limit(query.size)
    .offset(query.page * query.size)
    .execute()
  return makePage(content, total, query)
}

/** How often a part of a graph is read together with the other part, if that changes meanwhile. */
const MAX_DRAWINGS = 5

/**
 * Creates an inactive workflow with version 1 (BUILDER). Throws INVALID with all problems of the graph, or CONFLICT if
 * the team has a workflow of this name. A `[hidden]` in the place of a secret is a problem, but for those that
 * `requests` have. For an imported workflow, `imported` makes the report, and the secrets in its requests are moved
 * into credentials too. It gets the newest rules for expressions unless the input names others.
 */
export async function createWorkflow(
  scope: Scope,
  input: Drawing & {
    teamId: string
    name: string
    description?: string | null | undefined
    settings?: Partial<WorkflowSettings> | undefined
  },
  { requests = [], imported }: { requests?: GraphNode[]; imported?: (moved: Moved) => ImportReport } = {},
): Promise<Warned<Workflow>> {
  const { teamId, name } = input
  await demandTeam(scope, teamId, 'BUILDER')
  const expressions = input.graph?.expressions ?? input.expressions ?? NEWEST_RULES
  const { graph, warnings } = await checkGraph({ ...input, expressions }, teamId)
  const drawn = { ...graph, expressions, strict: input.settings?.strict ?? false }
  return guardName(name, () =>
    change(scope, 'WORKFLOW_CREATED', teamId, async (tx) => {
      const id = uuid()
      const store = { ...scope.store, db: tx }
      const settings = { ...DEFAULT_SETTINGS, ...input.settings }
      if (settings.errorWorkflowId) await checkErrorWorkflow(store, teamId, settings.errorWorkflowId)
      const settled = await settleGraph(store, teamId, drawn, requests)
      const moved = await moveSecrets(tx, store, settled.graph, {
        teamId,
        name,
        requests: imported !== undefined,
      })
      const version = { ...settled, graph: moved.graph, notes: settings.notes }
      await checkReferences(store, teamId, version.graph)
      const result = await tx
        .insertInto('workflows')
        .values({
          id,
          teamId,
          name,
          description: input.description ?? null,
          version: 1,
          settings: json(storeSettings(settings)),
          createdBy: scope.userId,
        })
        .returning(COLUMNS)
        .executeTakeFirstOrThrow()
      await addVersion(tx, id, 1, version, scope.userId)
      const report = imported?.(moved)
      if (report)
        await tx
          .insertInto('importReports')
          .values({ workflowId: id, report: json(report) })
          .execute()
      const details = { name, nodeCount: drawn.nodes.length }
      const wasMoved = (path: string) => moved.made.some(({ paths }) => paths.includes(path))
      const saved = {
        ...result,
        // The report of an import names the secrets that could not be moved, and the moved ones need no warning.
        warnings: imported ? warnings.filter(({ path }) => !wasMoved(path)) : [...warnings, ...moved.left],
        credentials: moved.made,
      }
      return { result: saved, resourceId: id, details, also: auditMoved(moved.made, id) }
    }),
  )
}

/**
 * A workflow with its newest graph, and the credentials in it that have become unusable (VIEWER). Only a BUILDER sees
 * its secrets. Throws NOT_FOUND.
 */
export async function readWorkflow(
  scope: Scope,
  id: string,
): Promise<WorkflowDetail & { warnings: Problem[] }> {
  const row = await scope.store.db
    .selectFrom('workflows')
    .select([...COLUMNS, 'version', 'settings'])
    .where('id', '=', id)
    .executeTakeFirst()
  if (!row) throw missing('workflow')
  demand(scope, row.teamId, 'VIEWER')
  const { graph, approverIds } = await readStoredVersion(scope.store, id, row.version)
  const nodes = graph.nodes.map(await presentApprovers(scope.store, row.teamId, approverIds))
  const open = covers(scope.roles.get(row.teamId)!, 'BUILDER')
  const { edges, expressions = 1 } = graph
  const shown = { nodes: open ? nodes : nodes.map(hideSecrets), edges, expressions }
  const warnings = await findBrokenCredentials(scope.store, row.teamId, graph)
  return { ...row, settings: readSettings(row.settings, graph), ...shown, warnings }
}

/** The entity tag of a workflow's current state: it changes with everything that an update can change. */
export function tagWorkflow(workflow: {
  id: string
  name: string
  description: string | null
  active: boolean
  version: number
  settings: unknown
  updatedAt: Date
}): string {
  const { id, name, description, active, version, settings, updatedAt } = workflow
  const state = [id, name, description, active, version, settings, updatedAt]
  return createHash('sha256').update(JSON.stringify(state)).digest('base64url').slice(0, 22)
}

/**
 * Changes the given fields and keeps the others (BUILDER): nodes without edges keep the stored edges. A changed graph,
 * and changed notes, become a new version. Throws NOT_FOUND; CONFLICT if the team has a workflow of this name; INVALID
 * if the graph is not valid, or if the workflow is active without a trigger or with unreachable nodes;
 * PRECONDITION_FAILED if `expected` does not contain the workflow's current tag (see tagWorkflow).
 */
export async function updateWorkflow(
  scope: Scope,
  id: string,
  patch: Drawing & {
    name?: string | undefined
    description?: string | null | undefined
    active?: boolean | undefined
    settings?: Partial<WorkflowSettings> | undefined
    /** The version whose graph becomes the current one again. */
    restore?: number | undefined
  },
  expected?: string[],
): Promise<Warned<WorkflowDetail>> {
  const teamId = await readOwner(scope.store, 'workflows', id)
  demand(scope, teamId, 'BUILDER')
  const { restore } = patch
  const update = async (attempt = 1): Promise<Warned<WorkflowDetail>> => {
    const drawn = await drawGraph(scope.store, { id, teamId }, patch)
    return change(scope, 'WORKFLOW_UPDATED', teamId, async (tx) => {
      const row = await lockWorkflow(tx, id)
      const store = { ...scope.store, db: tx }
      const stored = await readStoredVersion(store, id, row.version)
      const old = { ...row, settings: readSettings(row.settings, stored.graph) }
      if (expected && !expected.includes(tagWorkflow(old))) {
        throw new Fault('PRECONDITION_FAILED', 'The workflow has changed since you read it: read it again')
      }
      if (drawn?.isStale(stored.graph)) throw new StaleDrawing()
      // It may have been deleted since it was read.
      const restored = restore === undefined ? undefined : await readStoredVersion(store, id, restore)
      const notes = restored ? restored.notes : (patch.settings?.notes ?? old.settings.notes)
      const renoted = JSON.stringify(notes) !== JSON.stringify(old.settings.notes)
      const known = restore === undefined ? stored.graph : drawn!.graph
      const { strict = stored.graph.strict } = restore === undefined ? { ...patch.settings } : drawn!.graph
      const settled = drawn
        ? await settleGraph(store, teamId, { ...drawn.graph, strict }, known.nodes)
        : { ...stored, graph: { ...stored.graph, strict } }
      const isTouched = drawn !== undefined || strict !== stored.graph.strict
      const moved = isTouched
        ? await moveSecrets(tx, store, settled.graph, {
            teamId,
            name: patch.name ?? old.name,
            known: stored.graph.nodes,
          })
        : { graph: settled.graph, made: [], left: [] }
      const { graph } = moved
      const { approverIds } = settled
      const redrawn =
        isTouched && identifyGraph(graph, approverIds) !== identifyGraph(stored.graph, stored.approverIds)
      const active = patch.active ?? old.active
      if (redrawn) await checkReferences(store, teamId, graph, id)
      // They may have been deleted while it was inactive.
      else if (active && !old.active) await checkCredentials(store, teamId, graph)
      if (active && (redrawn || !old.active)) {
        const problems = checkActivation(graph)
        const isMember = (address: string) => !approverIds || !!findApprover(approverIds, address)
        problems.push(...checkApprovers(graph, isMember))
        if (problems.length > 0) throw invalid(problems)
      }
      const version = old.version + (redrawn || renoted ? 1 : 0)
      const fields = {
        name: patch.name ?? old.name,
        description: patch.description === undefined ? old.description : patch.description,
        active,
        settings: { ...old.settings, ...patch.settings, strict: strict ?? false, notes },
        version,
      }
      const { errorWorkflowId } = fields.settings
      // An unchanged setting is not checked: an error workflow that has been deleted is simply skipped.
      if (errorWorkflowId && errorWorkflowId !== old.settings.errorWorkflowId) {
        await checkErrorWorkflow(store, teamId, errorWorkflowId, { id, graph })
      }
      const told = describeChange(pickKeys(old, fields), fields)
      const { changed } = told
      if (version !== old.version) {
        await addVersion(tx, id, version, { graph, approverIds, notes }, scope.userId, restore)
      }
      const { updatedAt } = await tx
        .updateTable('workflows')
        .set({ ...fields, settings: json(storeSettings(fields.settings)) })
        .$if(changed.length > 0, (query) => query.set({ updatedAt: sql<Date>`now()` }))
        .where('id', '=', id)
        .returning('updatedAt')
        .executeTakeFirstOrThrow()
      if (changed.includes('settings')) await openGates(tx, id)
      const { nodes, edges, expressions = 1 } = graph
      const warnings = [...(drawn?.warnings ?? []), ...moved.left]
      const news = { nodes, edges, expressions, warnings, credentials: moved.made }
      const result = { ...old, ...fields, updatedAt, ...news }
      return {
        act: restore === undefined ? actOf(old.active, active) : 'WORKFLOW_VERSION_RESTORED',
        result,
        resourceId: id,
        also: auditMoved(moved.made, id),
        details: {
          name: fields.name,
          ...told,
          ...(changed.includes('settings') ? tellSettings(old.settings, fields.settings, told) : {}),
          version,
          ...(redrawn ? { graph: describeRedrawing(stored.graph, graph) } : {}),
          ...(restore === undefined ? {} : { restored: restore }),
        },
      }
    }).catch((error) => {
      if (!(error instanceof StaleDrawing)) throw error
      if (attempt < MAX_DRAWINGS) return update(attempt + 1)
      throw new Fault('CONFLICT', 'Others keep changing the graph at the same time: try again')
    })
  }
  return guardName(patch.name ?? '', () => update())
}

/**
 * Deletes a workflow with all its executions (BUILDER), and disables its widgets. Returns the ids of the executions
 * that Temporal may still know: their DELETE is queued, which also ends running ones. Throws NOT_FOUND.
 */
export async function deleteWorkflow(scope: Scope, id: string): Promise<string[]> {
  const teamId = await readOwner(scope.store, 'workflows', id)
  return change(scope, 'WORKFLOW_DELETED', teamId, async (tx) => {
    // The lock also makes the insert of a new execution wait, which then finds no workflow.
    const { name } = await lockWorkflow(tx, id)
    const executions = await forgetExecutions(tx, 'workflowId', id)
    const also = await leaveWidgets(tx, id)
    await tx.deleteFrom('workflows').where('id', '=', id).execute()
    const details = { name, openOrRecentExecutions: executions.length }
    return { result: executions, resourceId: id, details, also }
  })
}

async function lockWorkflow(tx: Tx, id: string) {
  const row = await tx
    .selectFrom('workflows')
    .select([...COLUMNS, 'version', 'settings'])
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst()
  if (!row) throw missing('workflow')
  return row
}

function guardName<T>(name: string, work: () => Promise<T>): Promise<T> {
  const sentences = {
    workflows_team_id_name_key: `The team already has a workflow named "${name}"`,
    credentials_team_id_name_key: 'Others are naming credentials at the same time: try again',
  }
  return guardUnique(sentences, work)
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
