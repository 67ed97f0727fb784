import { sql } from 'kysely'
import { isObject } from '../workflows/inputs.ts'
import type { Plan } from '../workflows/plan.ts'
import type { Page as ItemPage } from '../workflows/walk.ts'
import { findNode, isEntry, nodesIn } from '../workflows/walk.ts'
import { missing } from './fault.ts'
import { makePage, type Page, type PageRequest } from './page.ts'
import { readPlan } from './plans.ts'
import { demand, type Scope, type Store } from './scope.ts'
import { createValues } from './values.ts'

export type NodeExecution = {
  id: string
  nodeId: string
  nodeName: string
  nodeType: string
  /** The number of the loop's iteration that it ran in, from 0; of a loop in a loop `3.0`; null outside of loops. */
  iteration: string | null
  status: string
  startedAt: Date
  completedAt: Date | null
  durationMs: number | null
  inputData: Record<string, unknown>
  outputData: Record<string, unknown> | null
  errorMessage: string | null
  /** The one it left by; null is the main one, and of what has not left. */
  handle: string | null
  retryCount: number
  /** Its output was given with the start of the run; or was taken over from this execution. */
  pinned: boolean
  takenFrom: string | null
  /** The run that a SUB_WORKFLOW node has started. */
  childExecutionId: string | null
}

export type Shown = {
  nodeExecutions: NodeExecution[]
  nodeExecutionsTotal: number
  outputData: Record<string, unknown> | null
}

/** A record as it is stored; times are texts in a JSON of all. */
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

const AS_JSON = sql`json_build_object('id', id, 'nodeId', node_id, 'nodeName', node_name, 'nodeType', node_type,
  'iteration', iteration, 'status', status, 'startedAt', started_at, 'completedAt', completed_at,
  'output', output, 'handle', handle, 'errorMessage', error_message, 'retryCount', retry_count,
  'loop', loop, 'givenBy', given_by, 'total', total, 'childExecutionId', case when node_type = 'SUB_WORKFLOW'
    then (select child.id from executions child where child.id = shown.id) end)`

/**
 * The node records in a select from `executions`: who polls a run asks for both, in one statement. Of very many the
 * detail shows those outside of loops, then what failed, then the newest.
 */
export const STORED_NODES = sql<StoredNode[]>`(
  select coalesce(json_agg(${AS_JSON} order by started_at, position, node_id), '[]') from (
    select *, (select count(*) from node_executions where execution_id = executions.id) as total
    from node_executions where execution_id = executions.id
    order by iteration <> '', status <> 'FAILED', started_at desc, position desc
    fetch first 1000 rows only) shown)`

export type Shape = {
  id: string
  workflowId: string
  workflowVersion: number
  status: string
  triggerNodeId: string
  onlyNode: string | null
}

/**
 * The node records of an execution in the order they started, and the run's output. A record's input is
 * derived: the outputs of the nodes before it, merged as the run merged them, or its iteration's item. The run's
 * output is null unless it ended SUCCESS and its outputs were kept. Values that are no objects are shown as `{value}`.
 */
export async function readNodeExecutions(
  store: Store,
  execution: Shape & { nodes: StoredNode[] },
): Promise<Shown> {
  const { nodes } = execution
  const total = nodes[0]?.total ?? 0
  const plan = await readPlan(store, execution)
  const beside = total > nodes.length ? await readBeside(store, execution.id, plan, nodes) : []
  const values = createValues(store, execution.id, plan, [...nodes, ...beside])
  // The run's output comes first: what the records show may use up what one answer can hold.
  const ends = execution.status === 'SUCCESS' ? await values.ends() : undefined
  const outputData = ends === undefined ? null : asObject(ends)
  return { nodeExecutions: await showNodes(nodes, values), nodeExecutionsTotal: total, outputData }
}

/** What a run that ended SUCCESS put out, as it is. */
export async function readOutput(store: Store, execution: Shape): Promise<unknown> {
  const plan = await readPlan(store, execution)
  const nodes = await readBeside(store, execution.id, plan, [])
  return createValues(store, execution.id, plan, nodes).ends()
}

/** An execution's node records, page by page in the order they started. Throws NOT_FOUND. */
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
    select coalesce(json_agg(${AS_JSON} order by started_at, position, node_id), '[]') as nodes,
      (select count(*) from node_executions where execution_id = ${id}) as total
    from (select *, 0 as total from node_executions where execution_id = ${id}
      order by started_at, position, node_id
      limit ${query.size} offset ${query.page * query.size}) shown`.execute(store.db)
  const { nodes, total } = rows[0]!
  const plan = await readPlan(store, execution)
  const beside = await readBeside(store, id, plan, nodes)
  const values = createValues(store, id, plan, [...nodes, ...beside])
  return makePage(await showNodes(nodes, values), total, query)
}

async function showNodes(
  nodes: StoredNode[],
  values: ReturnType<typeof createValues>,
): Promise<NodeExecution[]> {
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

/** The nodes whose records a record's input may be made of, those outside of loops apart. */
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
      // A disabled node leaves no record: its output is made of those before it.
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

/** The records that the inputs of these are made of: of the same iterations and of those around them. */
async function readBeside(
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
      // REPEAT's iteration gets what the one before it came to.
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

function asObject(value: unknown): Record<string, unknown> {
  if (isObject(value)) return value
  return value === undefined ? {} : { value }
}
