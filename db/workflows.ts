import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { checkActivation } from '../workflows/check.ts'
import { type Graph, readGraph } from '../workflows/graph.ts'
import { hideSecrets } from '../workflows/secrets.ts'
import { type Act, covers } from './acts.ts'
import { json } from './connection.ts'
import { forgetExecutions } from './executions.ts'
import { Fault, invalid, missing } from './fault.ts'
import { openGates } from './gate.ts'
import { readOwner } from './owners.ts'
import { countRows, makePage, type Page, type PageRequest } from './page.ts'
import { change, demand, demandTeam, type Scope, type Tx } from './scope.ts'
import { checkErrorWorkflow, DEFAULTS, readSettings, type Settings } from './settings.ts'
import { checkSubWorkflows } from './subworkflows.ts'
import { addVersion, readVersion } from './versions.ts'

export type Workflow = {
  id: string
  name: string
  description: string | null
  active: boolean
  teamId: string
  createdAt: Date
  updatedAt: Date
}
export type WorkflowItem = Workflow & { nodeCount: number; lastExecutionStatus: string | null }
export type WorkflowDetail = Workflow & Graph & { settings: Settings; version: number }

const COLUMNS = ['id', 'name', 'description', 'active', 'teamId', 'createdAt', 'updatedAt'] as const

/** A team's workflows, newest first; `search` is found anywhere in the name, in any case. */
export async function listWorkflows(
  scope: Scope,
  query: PageRequest & { teamId: string; search?: string | undefined },
): Promise<Page<WorkflowItem>> {
  await demandTeam(scope, query.teamId, 'VIEWER')
  let found = scope.store.db.selectFrom('workflows as w').where('w.teamId', '=', query.teamId)
  if (query.search) {
    const pattern = `%${query.search.replace(/[\\%_]/g, '\\$&')}%`
    found = found.where('w.name', 'ilike', pattern)
  }
  const total = await countRows(found)
  const content = await found
    .innerJoin('workflowVersions as v', (join) =>
      join.onRef('v.workflowId', '=', 'w.id').onRef('v.version', '=', 'w.version'),
    )
    .select(COLUMNS.map((column) => `w.${column}` as const))
    .select('v.nodeCount')
    .select((eb) =>
      eb
        .selectFrom('executions as e')
        .select('e.status')
        .whereRef('e.workflowId', '=', 'w.id')
        .orderBy('e.createdAt', 'desc')
        .orderBy('e.id', 'desc')
        .limit(1)
        .as('lastExecutionStatus'),
    )
    .orderBy('w.createdAt', 'desc')
    .orderBy('w.id', 'desc')
    .limit(query.size)
    .offset(query.page * query.size)
    .execute()
  return makePage(content, total, query)
}

/** Makes an inactive workflow in version 1. Throws INVALID (all faults of the graph) or CONFLICT (the name). */
export async function createWorkflow(
  scope: Scope,
  input: {
    teamId: string
    name: string
    description?: string | null | undefined
    nodes?: unknown
    edges?: unknown
    settings?: Partial<Settings> | undefined
  },
): Promise<Workflow> {
  const { teamId, name } = input
  await demandTeam(scope, teamId, 'BUILDER')
  const graph = checkGraph(input)
  return guardName(name, () =>
    change(scope, 'WORKFLOW_CREATED', teamId, async (tx) => {
      const id = uuid()
      const settings = { ...DEFAULTS, ...input.settings }
      if (settings.errorWorkflowId) {
        await checkErrorWorkflow({ ...scope.store, db: tx }, teamId, settings.errorWorkflowId)
      }
      await checkSubWorkflows({ ...scope.store, db: tx }, teamId, graph)
      const result = await tx
        .insertInto('workflows')
        .values({
          id,
          teamId,
          name,
          description: input.description ?? null,
          version: 1,
          settings: json(settings),
          createdBy: scope.userId,
        })
        .returning(COLUMNS)
        .executeTakeFirstOrThrow()
      await addVersion(tx, id, 1, graph, scope.userId)
      return { result, resourceId: id, details: { name, nodeCount: graph.nodes.length } }
    }),
  )
}

/** A workflow with its newest graph. Secrets of webhooks are shown to those only who may set them. */
export async function readWorkflow(scope: Scope, id: string): Promise<WorkflowDetail> {
  const row = await scope.store.db
    .selectFrom('workflows')
    .select([...COLUMNS, 'version', 'settings'])
    .where('id', '=', id)
    .executeTakeFirst()
  if (!row) throw missing('workflow')
  demand(scope, row.teamId, 'VIEWER')
  const { nodes, edges } = await readVersion(scope.store, id, row.version)
  const open = covers(scope.roles.get(row.teamId)!, 'BUILDER')
  return { ...row, settings: readSettings(row.settings), nodes: open ? nodes : nodes.map(hideSecrets), edges }
}

/** Names this state of a workflow: it changes with whatever an update can change. */
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
 * Changes what is given and keeps the rest: nodes without edges keep the stored edges. A changed graph is a new
 * version. Throws INVALID where the whole is not sound, or active without a trigger or with nodes out of reach;
 * PRECONDITION_FAILED where `expected` (tags, see tagWorkflow) holds none of the workflow as it stands.
 */
export async function updateWorkflow(
  scope: Scope,
  id: string,
  patch: {
    name?: string | undefined
    description?: string | null | undefined
    active?: boolean | undefined
    nodes?: unknown
    edges?: unknown
    settings?: Partial<Settings> | undefined
    /** The version whose graph shall be the workflow's again. */
    restore?: number | undefined
  },
  expected?: string[],
): Promise<WorkflowDetail> {
  const teamId = await readOwner(scope.store, 'workflows', id)
  demand(scope, teamId, 'BUILDER')
  return guardName(patch.name ?? '', () =>
    change(scope, 'WORKFLOW_UPDATED', teamId, async (tx) => {
      const old = await lockWorkflow(tx, id)
      if (expected && !expected.includes(tagWorkflow(old))) {
        throw new Fault('PRECONDITION_FAILED', 'The workflow has changed since; read it again')
      }
      const store = { ...scope.store, db: tx }
      const stored = await readVersion(store, id, old.version)
      const { restore } = patch
      const given = restore ?? patch.nodes ?? patch.edges
      const base = restore === undefined ? stored : await readVersion(store, id, restore)
      // An old version is checked anew: what a graph must be may have changed since.
      const graph = isNone(given)
        ? stored
        : checkGraph({ nodes: patch.nodes ?? base.nodes, edges: patch.edges ?? base.edges })
      const redrawn = graph !== stored && JSON.stringify(graph) !== JSON.stringify(stored)
      if (redrawn) await checkSubWorkflows(store, teamId, graph, id)
      const active = patch.active ?? old.active
      if (active && (redrawn || !old.active)) {
        const problems = checkActivation(graph)
        if (problems.length > 0) throw invalid(problems)
      }
      const version = old.version + (redrawn ? 1 : 0)
      const fields = {
        name: patch.name ?? old.name,
        description: patch.description === undefined ? old.description : patch.description,
        active,
        settings: { ...old.settings, ...patch.settings },
        version,
      }
      const { errorWorkflowId } = fields.settings
      // What was deleted since may stay: it is passed over.
      if (errorWorkflowId && errorWorkflowId !== old.settings.errorWorkflowId) {
        await checkErrorWorkflow(store, teamId, errorWorkflowId, { id, graph })
      }
      const changed = Object.entries(fields)
        .filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(old[key as keyof typeof fields]))
        .map(([key]) => key)
      if (redrawn) await addVersion(tx, id, version, graph, scope.userId, restore)
      const { updatedAt } = await tx
        .updateTable('workflows')
        .set({ ...fields, settings: json(fields.settings) })
        .$if(changed.length > 0, (query) => query.set({ updatedAt: sql<Date>`now()` }))
        .where('id', '=', id)
        .returning('updatedAt')
        .executeTakeFirstOrThrow()
      if (changed.includes('settings')) await openGates(tx, id)
      const result = { ...old, ...fields, updatedAt, ...graph }
      return {
        act: restore === undefined ? actOf(old.active, active) : 'WORKFLOW_VERSION_RESTORED',
        result,
        resourceId: id,
        details: {
          name: fields.name,
          changed,
          version,
          ...(restore === undefined ? {} : { restored: restore }),
        },
      }
    }),
  )
}

/**
 * Removes a workflow with all its executions for good, and answers the executions that Temporal may still know:
 * their DELETE is queued. Running ones are ended by it.
 */
export async function deleteWorkflow(scope: Scope, id: string): Promise<string[]> {
  const teamId = await readOwner(scope.store, 'workflows', id)
  return change(scope, 'WORKFLOW_DELETED', teamId, async (tx) => {
    // The lock also holds back new executions: their insert waits for it, and then finds no workflow.
    const { name } = await lockWorkflow(tx, id)
    const executions = await forgetExecutions(tx, 'workflowId', id)
    await tx.deleteFrom('workflows').where('id', '=', id).execute()
    return {
      result: executions,
      resourceId: id,
      details: { name, openOrRecentExecutions: executions.length },
    }
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
  return { ...row, settings: readSettings(row.settings) }
}

function checkGraph(input: { nodes?: unknown; edges?: unknown }): Graph {
  const { graph, problems } = readGraph(input, uuid)
  if (problems.length > 0) throw invalid(problems)
  return graph
}

async function guardName<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if ((error as { constraint?: string }).constraint === 'workflows_team_id_name_key') {
      throw new Fault('CONFLICT', `The team has a workflow named "${name}" already`)
    }
    throw error
  }
}

function actOf(before: boolean, after: boolean): Act {
  if (before === after) return 'WORKFLOW_UPDATED'
  return after ? 'WORKFLOW_ACTIVATED' : 'WORKFLOW_DEACTIVATED'
}

function isNone(value: unknown): boolean {
  return value === undefined || value === null
}
