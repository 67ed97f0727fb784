import { type RawBuilder, sql } from 'kysely'
import { itemNodeId, type Plan } from '../../../workflows/run/plan.ts'
import type { ItemPage, NodeNotes, TakenIterations } from '../../../workflows/run/records.ts'
import { findNode, isEntry, nodesIn } from '../../../workflows/run/walk.ts'
import type { Store } from '../../scope.ts'
import type { StepInput } from './projection.ts'

/** A node's record as it is stored. STORED_NODES reads it as JSON, so times are strings. */
export type StoredNode = {
  id: string
  nodeId: string
  nodeName: string
  nodeType: string
  iteration: string
  /** The number of an agent's step, and the tool that it calls. */
  step: number | null
  tool: string | null
  status: string
  startedAt: string
  completedAt: string | null
  output: unknown
  handle: string | null
  errorMessage: string | null
  retryCount: number
  nextAttemptAt: string | null
  waitingUntil: string | null
  itemCount: number | null
  loop: { pages: ItemPage[]; taken?: TakenIterations } | null
  /** The state of a step; null for other records. */
  agent: StepInput | null
  givenBy: string | null
  notes: NodeNotes | null
  childExecutionId: string | null
}

/** The iteration of a record, without the step that it has behind. */
const ITERATION = sql`split_part(iteration, '!', 1)`

/** A row of a query named `shown`, which has the columns of node_executions, as a StoredNode. */
const NODE_AS_JSON = sql`json_build_object('id', id, 'nodeId', node_id, 'nodeName', node_name, 'nodeType', node_type,
  'iteration', ${ITERATION}, 'step', step, 'tool', tool, 'status', status, 'startedAt', started_at, 'completedAt', completed_at,
  'output', output, 'handle', handle, 'errorMessage', error_message, 'retryCount', retry_count,
  'nextAttemptAt', case when status = 'RUNNING' then next_attempt_at end,
  'waitingUntil', case when status = 'RUNNING' then waiting_until end, 'itemCount', item_count,
  'loop', loop, 'agent', agent, 'givenBy', given_by, 'notes', notes, 'childExecutionId', case when node_type = 'SUB_WORKFLOW' or tool is not null
    then (select child.id from executions child where child.id = shown.id) end)`

const IN_ORDER = sql`coalesce(json_agg(${NODE_AS_JSON} order by started_at, position, node_id), '[]')`

/** How many records an execution shows at most. */
const SHOWN = 1_000

/**
 * The node records as a column of a select from `executions`, so that one statement reads both for a client
 * that polls. Null if there are more than 1,000, which `readShown` reads. It says `fetch first`, as a statement with a limit
 * is planned each time (db/connection.ts): for this one that takes longer than to carry it out.
 */
export const STORED_NODES = sql<StoredNode[] | null>`(case when (
    select count(*) from (select from node_executions n where n.execution_id = executions.id
      fetch first ${sql.lit(SHOWN + 1)} rows only) few
  ) <= ${sql.lit(SHOWN)} then (
    select ${IN_ORDER} from (select * from node_executions where execution_id = executions.id) shown) end)`

/** The first of an index's records are found by status, so all statuses are named. */
const RECORD_STATUSES = ['FAILED', 'RUNNING', 'SUCCESS', 'CANCELLED', 'PENDING']

/**
 * The common table `outside`: the records outside of loops, at most one for each node. The ids of the nodes are found
 * by jumping from one to the next in the index, past all iterations. The limit keeps the planner from reading them all.
 */
function recordsOutside(executionId: string) {
  return sql`ids as (
      (select node_id from node_executions where execution_id = ${executionId} order by node_id limit 1)
      union all
      select (select n.node_id from node_executions n
        where n.execution_id = ${executionId} and n.node_id > ids.node_id order by n.node_id limit 1)
      from ids where ids.node_id is not null),
    outside as materialized (
      select n.* from ids cross join lateral (select * from node_executions r
        where r.execution_id = ${executionId} and r.node_id = ids.node_id and r.iteration = '' limit 1) n)`
}

/** The keys of the first records in loops in an order that the index has within a status, for each status. */
function recordsLooped(
  executionId: string,
  statuses: string[],
  {
    where = sql`true`,
    order,
    limit,
  }: { where?: RawBuilder<unknown>; order: RawBuilder<unknown>; limit: number },
) {
  const ofStatus = (
    status: string,
  ) => sql`(select id, status, started_at, position, node_id from node_executions
    where execution_id = ${executionId} and iteration <> '' and status = ${status} and ${where}
    order by ${order} limit ${limit})`
  return sql.join(statuses.map(ofStatus), sql` union all `)
}

/**
 * The 1,000 records that an execution with more of them shows: those outside of loops are preferred, then failed ones,
 * then the newest. In the order they started. Steps of agents are left out unless `steps` says otherwise.
 */
export async function readShown(
  { db }: Store,
  executionId: string,
  { steps }: { steps: boolean },
): Promise<StoredNode[]> {
  const where = isOf({ steps })
  const newest = sql`started_at desc, position desc, node_id desc`
  const { rows } = await sql<{ nodes: StoredNode[] }>`
    with recursive ${recordsOutside(executionId)},
    looped as (
      select id from (${recordsLooped(executionId, RECORD_STATUSES, { where, order: newest, limit: SHOWN })}) l
      order by status <> 'FAILED', started_at desc, position desc
      limit greatest(0, ${SHOWN} - (select count(*) from outside)))
    select ${IN_ORDER} as nodes from (
      select * from outside
      union all select n.* from node_executions n join looped using (id)) shown`.execute(db)
  return rows[0]?.nodes ?? []
}

/** Which records a page shows; all of the execution if neither is given. */
export type RecordFilter = {
  status?: string | undefined
  nodeId?: string | undefined
  /** False leaves the steps of agents out. */
  steps?: boolean | undefined
}

/**
 * Selects the records of a node, or of one of the calls that it makes for its items; steps are left out if `steps` is
 * false.
 */
function isOf({ nodeId, steps }: RecordFilter) {
  const ofNode =
    nodeId === undefined ? sql`true` : sql`node_id = any(${[nodeId, itemNodeId(nodeId)]}::text[])`
  return steps === false ? sql`${ofNode} and step is null` : ofNode
}

/** The records from `offset` on, at most `size`, in the order they started. */
export async function readPage(
  { db }: Store,
  executionId: string,
  filter: RecordFilter,
  { size, offset }: { size: number; offset: number },
): Promise<StoredNode[]> {
  const { status } = filter
  const statuses = status === undefined ? RECORD_STATUSES : [status]
  const order = sql`started_at, position, node_id`
  const ofNode = isOf(filter)
  const ofBoth = status === undefined ? ofNode : sql`${ofNode} and status = ${status}`
  const { rows } = await sql<{ nodes: StoredNode[] }>`
    with recursive ${recordsOutside(executionId)},
    page as (
      select id from (
        select id, status, started_at, position, node_id from outside where ${ofBoth}
        union all ${recordsLooped(executionId, statuses, { where: ofNode, order, limit: offset + size })}) l
      order by ${order} limit ${size} offset ${offset})
    select ${IN_ORDER} as nodes from (select n.* from node_executions n join page using (id)) shown`.execute(
    db,
  )
  return rows[0]?.nodes ?? []
}

/** How many records fit the filter, counted in an index. */
export async function countRecords(
  { db }: Store,
  executionId: string,
  filter: RecordFilter,
): Promise<number> {
  const { status } = filter
  const ofNode = isOf(filter)
  const { rows } =
    status === undefined
      ? await sql<{ n: number }>`
        select count(*) as n from node_executions where execution_id = ${executionId} and ${ofNode}`.execute(
          db,
        )
      : await sql<{ n: number }>`
        with recursive ${recordsOutside(executionId)}
        select (select count(*) from outside where status = ${status} and ${ofNode})
          + (select count(*) from node_executions where execution_id = ${executionId} and iteration <> ''
              and status = ${status} and ${ofNode}) as n`.execute(db)
  return rows[0]?.n ?? 0
}

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
  const columns = sql`id, node_id, node_name, node_type, iteration, step, tool, agent, status, started_at, completed_at, output, handle,
    error_message, retry_count, null as next_attempt_at, null as waiting_until, item_count, loop, given_by, null as notes, null as child_execution_id`
  const { rows } = await sql<StoredNode>`
    with recursive ${recordsOutside(executionId)}
    select ${columns} from outside
    union all
    -- No input is made up of an agent's steps: the paths have none behind.
    select ${columns} from node_executions where execution_id = ${executionId} and iteration <> ''
      and iteration = any(${[...paths]}::text[]) and node_id = any(${[...nodeIds]}::text[])`.execute(store.db)
  return rows.filter((row) => !known.has(row.id))
}
