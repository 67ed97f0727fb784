import { sql } from 'kysely'
import { findSubTrigger, type Graph, type Problem } from '../workflows/graph.ts'
import { stepKey } from '../workflows/walk.ts'
import { Fault, invalid } from './fault.ts'
import type { Spot } from './pauses.ts'
import { nodeExecutionId } from './projection.ts'
import type { Store } from './scope.ts'
import { readOutput } from './shown.ts'
import { addExecution, readStartable } from './start.ts'
import { readVersion } from './versions.ts'

/** How many runs may stand above one another. */
const MAX_DEPTH = 10

/** A run that a node has started: open, or how it came out. */
export type Child = { executionId: string; status: string; errorMessage: string | null }

/**
 * Starts the run of another workflow for a SUB_WORKFLOW node, once however often it is asked; its id is that of the
 * node's record. Throws a Fault that says why it cannot run: no such workflow or no trigger in it, called from within
 * itself, too deep, or turned away by its limit.
 */
export async function startChild(
  store: Store,
  spot: Spot,
  call: {
    workflowId: string
    input: Record<string, unknown>
    wait: boolean
    traceparent?: string | undefined
  },
): Promise<Child> {
  const { executionId, nodeId, iteration } = spot
  const id = nodeExecutionId(executionId, nodeId, iteration)
  const known = await readChild(store, spot)
  if (known) return known
  const above = await readAncestors(store, executionId)
  const parent = above[0]
  if (!parent) throw new Fault('NOT_FOUND', 'The run is deleted')
  const workflow = await readStartable(store, call.workflowId, (teamId) => teamId === parent.teamId)
  if (!workflow) throw new Fault('CONFLICT', 'The team has no such workflow')
  const again = above.findIndex((run) => run.workflowId === workflow.id)
  if (again >= 0) {
    const names = above
      .slice(0, again + 1)
      .reverse()
      .map((run) => run.workflowName)
    throw new Fault(
      'CONFLICT',
      `A workflow must not run within itself: ${[...names, workflow.name].join(' -> ')}`,
    )
  }
  if (parent.depth >= MAX_DEPTH) {
    throw new Fault('CONFLICT', `Sub-workflows are nested at most ${MAX_DEPTH} levels deep`)
  }
  const node = findSubTrigger(workflow.graph)
  if (!node) throw new Fault('CONFLICT', `The workflow "${workflow.name}" has no SUB_WORKFLOW_TRIGGER`)
  const started = await addExecution(store, workflow, {
    id,
    node,
    trigger: 'SUB_WORKFLOW',
    data: call.input,
    by: { kind: parent.startedByKind, id: parent.startedById, name: '' },
    traceparent: call.traceparent,
    swept: true,
    parent: {
      executionId,
      key: stepKey(nodeId, iteration),
      depth: parent.depth + 1,
      detached: !call.wait,
    },
  })
  return { executionId: id, status: started.status, errorMessage: null }
}

/** The run that a SUB_WORKFLOW node has started, if there is one. */
export async function readChild(
  store: Store,
  { executionId, nodeId, iteration }: Omit<Spot, 'nodeName'>,
): Promise<Child | undefined> {
  const child = await store.db
    .selectFrom('executions')
    .select(['id as executionId', 'status', 'errorMessage'])
    .where('id', '=', nodeExecutionId(executionId, nodeId, iteration))
    .executeTakeFirst()
  return child
}

/** What a child that ended SUCCESS put out. Throws NOT_FOUND. */
export async function readChildOutput(store: Store, id: string): Promise<unknown> {
  const child = await store.db
    .selectFrom('executions')
    .select(['id', 'workflowId', 'workflowVersion', 'status', 'triggerNodeId', 'onlyNode'])
    .where('id', '=', id)
    .executeTakeFirst()
  if (!child) throw new Fault('NOT_FOUND', 'The run is deleted')
  return readOutput(store, child)
}

/** Throws INVALID unless all workflows that a graph names are others of the team that can be called. */
export async function checkSubWorkflows(
  store: Store,
  teamId: string,
  graph: Graph,
  ownId?: string,
): Promise<void> {
  const named = graph.nodes.flatMap(({ type, config }, at) => {
    const { workflowId } = config as { workflowId?: string }
    const literal = type === 'SUB_WORKFLOW' && workflowId !== undefined && !workflowId.includes('{{')
    return literal ? [{ id: workflowId.toLowerCase(), path: `nodes[${at}].config.workflowId` }] : []
  })
  if (named.length === 0) return
  const rows = await store.db
    .selectFrom('workflows')
    .select(['id', 'version'])
    .where('teamId', '=', teamId)
    .where(sql<boolean>`id = any(${named.map(({ id }) => id)}::uuid[])`)
    .execute()
  const problems: Problem[] = []
  for (const { id, path } of named) {
    const row = rows.find((candidate) => candidate.id === id)
    if (id === ownId) problems.push({ path, message: 'must be another workflow: none runs within itself' })
    else if (!row) problems.push({ path, message: 'must be a workflow of this team' })
    else if (!findSubTrigger(await readVersion(store, id, row.version))) {
      problems.push({ path, message: 'must be a workflow with a SUB_WORKFLOW_TRIGGER' })
    }
  }
  if (problems.length > 0) throw invalid(problems)
}

type Ancestor = {
  workflowId: string
  workflowName: string
  teamId: string
  depth: number
  startedByKind: 'USER' | 'SDK_TOKEN' | 'SYSTEM'
  startedById: string | null
}

/** The run itself and those above it, the nearest first. */
async function readAncestors(store: Store, executionId: string): Promise<Ancestor[]> {
  const columns = sql`e.parent_id, e.workflow_id, e.workflow_name, e.team_id, e.depth, e.started_by_kind, e.started_by_id`
  const { rows } = await sql<Ancestor>`
    with recursive above as (
      select ${columns}, 0 as steps from executions e where e.id = ${executionId}
      union all
      select ${columns}, a.steps + 1 from above a join executions e on e.id = a.parent_id
      where a.steps < ${MAX_DEPTH})
    select * from above order by steps`.execute(store.db)
  return rows
}
