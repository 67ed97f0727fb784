import { isObject } from '../../workflows/json.ts'
import { graphNodeId, splitHandles } from '../../workflows/run/plan.ts'
import type { NodeNotes } from '../../workflows/run/records.ts'
import { isEnded } from '../executions/status.ts'
import { missing } from '../fault.ts'
import { makePage, type Page, type PageRequest } from '../page.ts'
import { demand, type Scope, type Store } from '../scope.ts'
import { readCompiledPlan } from '../workflows/compiled.ts'
import {
  countRecords,
  type ExecutionShape,
  type RecordFilter,
  readPage,
  readRecordsBefore,
  readShown,
  type StoredNode,
} from './stored.ts'
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
  /** The handle that it left by; null for the main one, while it has not left, and if `handles` says more. */
  handle: string | null
  /** The handles that it left by, null for the main one; of a node that may leave by several at once. */
  handles?: (string | null)[]
  retryCount: number
  /** When the next attempt comes, while the node waits for it; `errorMessage` then says why the last one failed. */
  nextAttemptAt: Date | null
  /** `takenFrom` is the execution that the output was taken over from, unless it was made here or pinned. */
  pinned: boolean
  takenFrom: string | null
  /** The execution that a SUB_WORKFLOW node has started. */
  childExecutionId: string | null
  /** What was noted beside the output; missing if there is nothing. */
  warnings?: NodeNotes['warnings']
  console?: NodeNotes['console']
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
  execution: CountedExecution & { nodes: StoredNode[] | null },
): Promise<ExecutionRecords> {
  const nodes = execution.nodes ?? (await readShown(store, execution.id))
  const total = execution.nodes ? nodes.length : await countAll(store, execution)
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

type CountedExecution = ExecutionShape & { recordCount: number | null }

/** The number of all records. The projection keeps it; while the execution is open, attempts add others. */
async function countAll(store: Store, { id, status, recordCount }: CountedExecution): Promise<number> {
  return recordCount !== null && isEnded(status) ? recordCount : countRecords(store, id, {})
}

/**
 * One page of an execution's node records, in the order they started (VIEWER): all, or those of a status or a node.
 * Throws NOT_FOUND.
 */
export async function listNodeExecutions(
  scope: Scope,
  id: string,
  query: PageRequest & RecordFilter,
): Promise<Page<NodeExecution>> {
  const { store } = scope
  const execution = await store.db
    .selectFrom('executions')
    .select([
      'id',
      'teamId',
      'workflowId',
      'workflowVersion',
      'status',
      'triggerNodeId',
      'onlyNode',
      'recordCount',
    ])
    .where('id', '=', id)
    .executeTakeFirst()
  if (!execution) throw missing('execution')
  demand(scope, execution.teamId, 'VIEWER')
  const { status, nodeId, page, size } = query
  const all = status === undefined && nodeId === undefined
  const total = all ? await countAll(store, execution) : await countRecords(store, id, { status, nodeId })
  if (page * size >= total) return makePage([], total, query)
  const nodes = await readPage(store, id, { status, nodeId }, { size, offset: page * size })
  const plan = await readCompiledPlan(store, execution)
  const beside = await readRecordsBefore(store, id, plan, nodes)
  const values = deriveValues(store, id, plan, [...nodes, ...beside])
  return makePage(await showNodes(nodes, values), total, query)
}

async function showNodes(nodes: StoredNode[], values: RecordValues): Promise<NodeExecution[]> {
  const shown: NodeExecution[] = []
  for (const { output, loop, givenBy, notes, ...row } of nodes) {
    const startedAt = new Date(row.startedAt)
    const completedAt = row.completedAt === null ? null : new Date(row.completedAt)
    shown.push({
      ...row,
      nodeId: graphNodeId(row.nodeId),
      ...showHandles(row.handle),
      iteration: row.iteration === '' ? null : row.iteration,
      startedAt,
      completedAt,
      nextAttemptAt: row.nextAttemptAt === null ? null : new Date(row.nextAttemptAt),
      durationMs: completedAt ? completedAt.getTime() - startedAt.getTime() : null,
      inputData: asObject(await values.input(row.nodeId, row.iteration)),
      outputData: output === null ? null : asObject(await values.output(row.nodeId, row.iteration)),
      pinned: givenBy === 'PINNED',
      takenFrom: givenBy === 'PINNED' ? null : givenBy,
      ...notes,
    })
  }
  return shown
}

/** A handle as it is shown, which may be several that are stored as one text. */
export function showHandles(handle: string | null): Pick<NodeExecution, 'handle' | 'handles'> {
  const handles = splitHandles(handle)
  return handles ? { handle: null, handles } : { handle }
}

function asObject(value: unknown): Record<string, unknown> {
  if (isObject(value)) return value
  return value === undefined ? {} : { value }
}
