import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { NEWEST_RULES, type Rules } from '../../workflows/expressions/rules.ts'
import { findUnsigned } from '../../workflows/graph/advice/unsigned.ts'
import type { Graph, GraphNode } from '../../workflows/graph/graph.ts'
import type { ImportReport } from '../../workflows/n8n/report.ts'
import type { Problem } from '../../workflows/problem.ts'
import { covers } from '../acts.ts'
import { change } from '../change.ts'
import { json, type Tx } from '../connection.ts'
import { findBrokenCredentials } from '../credentials/references.ts'
import { forgetExecutions } from '../executions/executions.ts'
import { missing } from '../fault.ts'
import { guardUnique } from '../owned.ts'
import { readOwner } from '../owners.ts'
import { containing, countRows, makePage, type Page, type PageRequest } from '../page.ts'
import { demand, demandTeam, type Scope } from '../scope.ts'
import { auditMoved, type MovedSecret } from '../secrets/keeping.ts'
import { type Moved, moveSecrets } from '../secrets/moves.ts'
import { leaveWidgets } from '../widgets/leave.ts'
import { findAgents } from './agents.ts'
import { presentApprovers } from './approvers.ts'
import { checkGraph, type Drawing, settleGraph } from './drawing.ts'
import { checkReferences } from './references.ts'
import { hideSecrets } from './secrets.ts'
import {
  checkErrorWorkflow,
  DEFAULT_SETTINGS,
  readSettings,
  storeSettings,
  type WorkflowSettings,
} from './settings.ts'
import { addVersion, noDraft, readStoredVersion } from './versions.ts'

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
/** A workflow with one of its versions: `version` is the published one or the draft, which is null if there is none. */
export type WorkflowDetail = Workflow &
  Pick<Graph, 'nodes' | 'edges'> & {
    expressions: Rules
    settings: WorkflowSettings
    version: number
    publishedVersion: number
    draftVersion: number | null
    draftBase: number | null
  }

/** A workflow that has been saved, what in its graph may be a mistake, and the credentials that it has got secrets in. */
export type Warned<T> = T & { warnings: Problem[]; credentials: MovedSecret[] }

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
          .where('e.draft', '=', false)
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

/**
 * Creates an inactive workflow with version 1 (BUILDER). Throws INVALID with all problems of the graph, or CONFLICT if
 * the team has a workflow of this name. A `[hidden]` in the place of a secret is a problem, but for those that
 * `requests` have. For an imported workflow, `imported` makes the report, and the secrets in its requests are moved
 * into credentials too, and `id` is the one that its graph knows it by. It gets the newest rules for expressions unless the input names others.
 */
export async function createWorkflow(
  scope: Scope,
  input: Drawing & {
    teamId: string
    name: string
    description?: string | null | undefined
    settings?: Partial<WorkflowSettings> | undefined
  },
  {
    id = uuid(),
    requests = [],
    imported,
  }: { id?: string; requests?: GraphNode[]; imported?: (moved: Moved) => ImportReport } = {},
): Promise<Warned<Workflow>> {
  const { teamId, name } = input
  await demandTeam(scope, teamId, 'BUILDER')
  const expressions = input.graph?.expressions ?? input.expressions ?? NEWEST_RULES
  const { graph, warnings } = await checkGraph({ ...input, expressions }, teamId)
  const drawn = { ...graph, expressions, strict: input.settings?.strict ?? false }
  return guardWorkflowName(name, () =>
    change(scope, 'WORKFLOW_CREATED', teamId, async (tx) => {
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
      await checkReferences(store, teamId, version.graph, id, { imported: imported !== undefined })
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
      await addVersion(tx, { id, teamId }, 1, version, scope.userId)
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
 * A workflow with its published graph or that of its draft, and the credentials in it that have become unusable or
 * are still needed (VIEWER). Only a BUILDER sees its secrets. Throws NOT_FOUND, also if it has no draft.
 */
export async function readWorkflow(
  scope: Scope,
  id: string,
  { draft = false }: { draft?: boolean } = {},
): Promise<WorkflowDetail & { warnings: Problem[] }> {
  const row = await scope.store.db
    .selectFrom('workflows')
    .select([...COLUMNS, 'version', 'draftVersion', 'draftBase', 'settings'])
    .where('id', '=', id)
    .executeTakeFirst()
  if (!row) throw missing('workflow')
  demand(scope, row.teamId, 'VIEWER')
  const version = draft ? row.draftVersion : row.version
  if (version === null) throw noDraft('NOT_FOUND')
  const { graph, approverIds, notes } = await readStoredVersion(scope.store, id, version)
  const nodes = graph.nodes.map(await presentApprovers(scope.store, row.teamId, approverIds))
  const open = covers(scope.roles.get(row.teamId)!, 'BUILDER')
  const { edges, expressions = 1 } = graph
  const shown = { nodes: open ? nodes : nodes.map(hideSecrets), edges, expressions }
  const unsigned = graph.nodes.flatMap((node, at) => findUnsigned(node, `nodes[${at}].config`))
  const warnings = [...(await findBrokenCredentials(scope.store, row.teamId, graph)), ...unsigned]
  const settings = { ...readSettings(row.settings, graph), ...(draft ? { notes } : {}) }
  return { ...row, version, publishedVersion: row.version, settings, ...shown, warnings }
}

/**
 * Deletes a workflow with all its executions (BUILDER), and disables its widgets. Returns the ids of the executions
 * that Temporal may still know: their DELETE is queued, which also ends running ones. Throws NOT_FOUND.
 */
export async function deleteWorkflow(scope: Scope, id: string): Promise<string[]> {
  const teamId = await readOwner(scope.store, 'workflows', id)
  return change(scope, 'WORKFLOW_DELETED', teamId, async (tx) => {
    // An execution that is inserted meanwhile then finds no workflow.
    const { name } = await lockWorkflow(tx, id)
    const executions = await forgetExecutions(tx, 'workflowId', id)
    const also = await leaveWidgets(tx, id)
    await tx.deleteFrom('workflows').where('id', '=', id).execute()
    const details = { name, openOrRecentExecutions: executions.length }
    return { result: executions, resourceId: id, details, also }
  })
}

/** The workflow as it is stored; the lock also makes the insert of a new execution wait. Throws NOT_FOUND. */
export async function lockWorkflow(tx: Tx, id: string) {
  const row = await tx
    .selectFrom('workflows')
    .select([...COLUMNS, 'version', 'draftVersion', 'draftBase', 'lastDraft', 'settings'])
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst()
  if (!row) throw missing('workflow')
  return row
}

/** Does what stores a workflow. Throws CONFLICT if the team has one of this name. */
export function guardWorkflowName<T>(name: string, work: () => Promise<T>): Promise<T> {
  const sentences = {
    workflows_team_id_name_key: `The team already has a workflow named "${name}"`,
    credentials_team_id_name_key: 'Others are naming credentials at the same time: try again',
  }
  return guardUnique(sentences, work)
}
