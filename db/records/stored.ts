import { sql } from 'kysely'
import type { Plan } from '../../workflows/run/plan.ts'
import type { ItemPage } from '../../workflows/run/records.ts'
import { findNode, isEntry, nodesIn } from '../../workflows/run/walk.ts'
import type { Store } from '../scope.ts'

/** A node's record as it is stored. STORED_NODES reads it as JSON, so times are strings. */
export type StoredNode = {
  id: string
  nodeId: string
  nodeName: string
  nodeType: string
  iteration: string
  status: string
  startedAt: string
  completedAt: string | null
  output: unknown
  handle: string | null
  errorMessage: string | null
  retryCount: number
  loop: { pages: ItemPage[] } | null
  givenBy: string | null
  childExecutionId: string | null
  total: number
}

/** A row of a query named `shown`, which has the columns of node_executions and `total`, as a StoredNode. */
export const NODE_AS_JSON = sql`json_build_object('id', id, 'nodeId', node_id, 'nodeName', node_name, 'nodeType', node_type,
  'iteration', iteration, 'status', status, 'startedAt', started_at, 'completedAt', completed_at,
  'output', output, 'handle', handle, 'errorMessage', error_message, 'retryCount', retry_count,
  'loop', loop, 'givenBy', given_by, 'total', total, 'childExecutionId', case when node_type = 'SUB_WORKFLOW'
    then (select child.id from executions child where child.id = shown.id) end)`

/**
 * The node records as a column of a select from `executions`, so that one statement reads both for a client
 * that polls. At most 1,000: those outside of loops are preferred, then failed ones, then the newest.
 */
export const STORED_NODES = sql<StoredNode[]>`(
  select coalesce(json_agg(${NODE_AS_JSON} order by started_at, position, node_id), '[]') from (
    select *, (select count(*) from node_executions where execution_id = executions.id) as total
    from node_executions where execution_id = executions.id
    order by iteration <> '', status <> 'FAILED', started_at desc, position desc
    fetch first 1000 rows only) shown)`

export type ExecutionShape = {
  teamId: string
  id: string
  workflowId: string
  workflowVersion: number
  status: string
  triggerNodeId: string
  onlyNode: string | null
}

/**
 * The nodes in loops whose records may make up the inputs of these. Records outside of loops are always read.
 */
function findBefore(plan: Plan, ids: Set<string>): Set<string> {
  const before = new Set<string>()
  const done = new Set<string>()
  const look = (id: string): void => {
    const node = findNode(plan, id)
    if (!node || done.has(id)) return
    done.add(id)
    for (const { source, target } of plan.edges) {
      if (target !== id) continue
      before.add(source)
      // A disabled node leaves no record: its output is made up of those before it.
      if (findNode(plan, source)?.silent) look(source)
    }
    const loop = isEntry(plan, node) ? findNode(plan, node.parentId!) : undefined
    if (!loop) return
    before.add(loop.id)
    if (loop.loop?.mode !== 'repeat') return
    look(loop.id)
    for (const child of nodesIn(plan, loop.id)) {
      before.add(child.id)
      if (child.silent) look(child.id)
    }
  }
  for (const id of ids) look(id)
  return before
}

/**
 * The records, besides `nodes` themselves, that the inputs of `nodes` may be made up of: all outside of
 * loops, and in loops those of the same iterations and the ones around them.
 */
export async function readRecordsBefore(
  store: Store,
  executionId: string,
  plan: Plan,
  nodes: StoredNode[],
): Promise<StoredNode[]> {
  const known = new Set(nodes.map((node) => node.id))
  const nodeIds = findBefore(plan, new Set(nodes.map(({ nodeId }) => nodeId)))
  const paths = new Set<string>()
  const repeats = plan.nodes.some((node) => node.loop?.mode === 'repeat')
  for (const { iteration } of nodes) {
    if (iteration === '') continue
    const path = iteration.split('.')
    for (let depth = path.length; depth > 0; depth--) {
      paths.add(path.slice(0, depth).join('.'))
      // An iteration of a REPEAT gets the result of the one before it.
      const before = Number(path[depth - 1]) - 1
      if (repeats && before >= 0) paths.add([...path.slice(0, depth - 1), before].join('.'))
    }
  }
  const { rows } = await sql<StoredNode>`
    select id, node_id, node_name, node_type, iteration, status, started_at, completed_at, output, handle,
      error_message, retry_count, loop, given_by, null as child_execution_id, 0 as total
    from node_executions where execution_id = ${executionId} and (iteration = ''
      or iteration = any(${[...paths]}::text[]) and node_id = any(${[...nodeIds]}::text[]))`.execute(store.db)
  return rows.filter((row) => !known.has(row.id))
}
