import { sql } from 'kysely'
import { isObject } from '../../workflows/json.ts'
import { missing } from '../fault.ts'
import { makePage, type Page, type PageRequest } from '../page.ts'
import { demand, type Scope, type Store } from '../scope.ts'
import { readCompiledPlan } from '../workflows/compiled.ts'
import { type ExecutionShape, NODE_AS_JSON, readRecordsBefore, type StoredNode } from './stored.ts'
import { deriveValues, type RecordValues } from './values.ts'

export type NodeExecution = {
  id: string
  nodeId: string
  nodeName: string
  nodeType: string
  /** The loop's iteration that it belongs to, from 0; `3.0` in a loop in a loop; null outside of loops. */
  iteration: string | null
  status: string
  startedAt: Date
  completedAt: Date | null
  durationMs: number | null
  inputData: Record<string, unknown>
  outputData: Record<string, unknown> | null
  errorMessage: string | null
  /** The handle that it left by; null for the main one, and while it has not left. */
  handle: string | null
  retryCount: number
  /** `takenFrom` is the execution that the output was taken over from, unless it was made here or pinned. */
  pinned: boolean
  takenFrom: string | null
  /** The execution that a SUB_WORKFLOW node has started. */
  childExecutionId: string | null
}

export type ExecutionRecords = {
  nodeExecutions: NodeExecution[]
  nodeExecutionsTotal: number
  outputData: Record<string, unknown> | null
}

/**
 * An execution's node records, in the order they started, and its output. A record's input is derived: the
 * outputs of the nodes before it, merged as the run merged them, or its iteration's item. The execution's
 * output is null unless it ended SUCCESS and its outputs were kept. Values that are not objects are shown as
 * `{value}`.
 */
export async function readNodeExecutions(
  store: Store,
  execution: ExecutionShape & { nodes: StoredNode[] },
): Promise<ExecutionRecords> {
  const { nodes } = execution
  const total = nodes[0]?.total ?? 0
  const plan = await readCompiledPlan(store, execution)
  const beside = total > nodes.length ? await readRecordsBefore(store, execution.id, plan, nodes) : []
  const values = deriveValues(store, execution.id, plan, [...nodes, ...beside])
  // The execution's output first: the records may use up the bytes that one response can show.
  const ends = execution.status === 'SUCCESS' ? await values.ends() : undefined
  const outputData = ends === undefined ? null : asObject(ends)
  return { nodeExecutions: await showNodes(nodes, values), nodeExecutionsTotal: total, outputData }
}

/** The output of an execution that ended SUCCESS, as it is; undefined if its outputs were not kept. */
export async function readExecutionOutput(store: Store, execution: ExecutionShape): Promise<unknown> {
  const plan = await readCompiledPlan(store, execution)
  const nodes = await readRecordsBefore(store, execution.id, plan, [])
  return deriveValues(store, execution.id, plan, nodes).ends()
}

/** One page of an execution's node records, in the order they started (VIEWER). Throws NOT_FOUND. */
export async function listNodeExecutions(
  scope: Scope,
  id: string,
  query: PageRequest,
): Promise<Page<NodeExecution>> {
  const { store } = scope
  const execution = await store.db
    .selectFrom('executions')
    .select(['id', 'teamId', 'workflowId', 'workflowVersion', 'status', 'triggerNodeId', 'onlyNode'])
    .where('id', '=', id)
    .executeTakeFirst()
  if (!execution) throw missing('execution')
  demand(scope, execution.teamId, 'VIEWER')
  const { rows } = await sql<{ nodes: StoredNode[]; total: number }>`
    select coalesce(json_agg(${NODE_AS_JSON} order by started_at, position, node_id), '[]') as nodes,
      (select count(*) from node_executions where execution_id = ${id}) as total
    from (select *, 0 as total from node_executions where execution_id = ${id}
      order by started_at, position, node_id
      limit ${query.size} offset ${query.page * query.size}) shown`.execute(store.db)
  const { nodes, total } = rows[0]!
  const plan = await readCompiledPlan(store, execution)
  const beside = await readRecordsBefore(store, id, plan, nodes)
  const values = deriveValues(store, id, plan, [...nodes, ...beside])
  return makePage(await showNodes(nodes, values), total, query)
}

async function showNodes(nodes: StoredNode[], values: RecordValues): Promise<NodeExecution[]> {
  const shown: NodeExecution[] = []
  for (const { output, loop, givenBy, total, ...row } of nodes) {
    const startedAt = new Date(row.startedAt)
    const completedAt = row.completedAt === null ? null : new Date(row.completedAt)
    shown.push({
      ...row,
      iteration: row.iteration === '' ? null : row.iteration,
      startedAt,
      completedAt,
      durationMs: completedAt ? completedAt.getTime() - startedAt.getTime() : null,
      inputData: asObject(await values.input(row.nodeId, row.iteration)),
      outputData: output === null ? null : asObject(await values.output(row.nodeId, row.iteration)),
      pinned: givenBy === 'PINNED',
      takenFrom: givenBy === 'PINNED' ? null : givenBy,
    })
  }
  return shown
}

function asObject(value: unknown): Record<string, unknown> {
  if (isObject(value)) return value
  return value === undefined ? {} : { value }
}
