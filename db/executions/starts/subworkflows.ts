import { sql } from 'kysely'
import { findSubTrigger } from '../../../workflows/graph/graph.ts'
import { stepKey } from '../../../workflows/run/walk.ts'
import { Fault } from '../../fault.ts'
import { copyFiles } from '../../files/files.ts'
import { findFileIds } from '../../files/named.ts'
import type { Store } from '../../scope.ts'
import { nodeExecutionId } from '../records/projection.ts'
import { readExecutionOutput } from '../records/records.ts'
import { TEST_TRIGGERS } from '../triggers.ts'
import type { NodeInstance } from '../waits/pauses.ts'
import { addExecution } from './add.ts'
import type { TraceContext } from './origins.ts'
import { readStartable } from './startable.ts'

/** How many executions deep sub-workflows may be nested. */
const MAX_DEPTH = 10

/** An execution that a SUB_WORKFLOW node has started, with its status now. */
export type ChildExecution = { executionId: string; status: string; errorMessage: string | null }

/**
 * Starts an execution of a workflow, which may be that of the parent, for a SUB_WORKFLOW node. Its id is the id of the
 * node's record, so repeated calls start only one. Throws NOT_FOUND if the parent is deleted, and CONFLICT if the team
 * has no such workflow, it has no SUB_WORKFLOW_TRIGGER, it would be nested too deep, or its limit turns it away.
 */
export async function startChild(
  store: Store,
  spot: NodeInstance,
  call: {
    workflowId: string
    input: Record<string, unknown>
    wait: boolean
  } & TraceContext,
): Promise<ChildExecution> {
  const { executionId, nodeId, iteration } = spot
  const id = nodeExecutionId(executionId, nodeId, iteration)
  const known = await readChild(store, spot)
  if (known) return known
  const above = await readAncestors(store, executionId)
  const parent = above[0]
  if (!parent) throw new Fault('NOT_FOUND', 'The execution has been deleted')
  const workflow = await readStartable(store, call.workflowId, (teamId) => teamId === parent.teamId)
  if (!workflow) throw new Fault('CONFLICT', 'The team has no such workflow')
  if (parent.depth >= MAX_DEPTH) {
    throw new Fault('CONFLICT', `Sub-workflows are nested at most ${MAX_DEPTH} levels deep`)
  }
  const node = findSubTrigger(workflow.graph)
  const isWithinItself = above.some((run) => run.workflowId === workflow.id)
  if (!node || (isWithinItself && node.type !== 'SUB_WORKFLOW_TRIGGER'))
    throw new Fault('CONFLICT', `The workflow "${workflow.name}" has no SUB_WORKFLOW_TRIGGER`)
  const files = findFileIds(call.input)
  const started = await addExecution(store, workflow, {
    origin: 'PARENT',
    id,
    adopt: files.size > 0 ? (tx) => copyFiles(tx, executionId, id, files) : undefined,
    node,
    // What evaluations and playbooks begin stays theirs, however deep: it is not judged, and counts for no alert.
    trigger: TEST_TRIGGERS.find((trigger) => trigger === parent.trigger) ?? 'SUB_WORKFLOW',
    draft: parent.draft,
    data: call.input,
    by: { kind: parent.startedByKind, id: parent.startedById, name: '' },
    traceparent: call.traceparent,
    tracestate: call.tracestate,
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

/** The execution that a SUB_WORKFLOW node has started; undefined if it has not, or it is deleted. */
export async function readChild(
  store: Store,
  { executionId, nodeId, iteration }: Omit<NodeInstance, 'nodeName'>,
): Promise<ChildExecution | undefined> {
  const child = await store.db
    .selectFrom('executions')
    .select(['id as executionId', 'status', 'errorMessage'])
    .where('id', '=', nodeExecutionId(executionId, nodeId, iteration))
    .executeTakeFirst()
  return child
}

/** The output of a child that ended SUCCESS. Throws NOT_FOUND if the child is deleted. */
export async function readChildOutput(store: Store, id: string): Promise<unknown> {
  const child = await store.db
    .selectFrom('executions')
    .select(['id', 'teamId', 'workflowId', 'workflowVersion', 'status', 'triggerNodeId', 'onlyNode'])
    .where('id', '=', id)
    .executeTakeFirst()
  if (!child) throw new Fault('NOT_FOUND', 'The execution has been deleted')
  return readExecutionOutput(store, child)
}

type Ancestor = {
  workflowId: string
  teamId: string
  depth: number
  trigger: string
  draft: boolean
  startedByKind: 'USER' | 'SDK_TOKEN' | 'SYSTEM'
  startedById: string | null
}

/** The execution itself and its ancestors, the nearest first. */
async function readAncestors(store: Store, executionId: string): Promise<Ancestor[]> {
  const columns = sql`e.parent_id, e.workflow_id, e.team_id, e.depth, e.trigger, e.draft, e.started_by_kind, e.started_by_id`
  const { rows } = await sql<Ancestor>`
    with recursive above as (
      select ${columns}, 0 as steps from executions e where e.id = ${executionId}
      union all
      select ${columns}, a.steps + 1 from above a join executions e on e.id = a.parent_id
      where a.steps < ${MAX_DEPTH})
    select * from above order by steps`.execute(store.db)
  return rows
}
