import { isObject } from '../../../workflows/json.ts'
import { mergeNodeNotes } from '../../../workflows/notes.ts'
import { type Envelope, graphNodeId, splitHandles } from '../../../workflows/run/plan.ts'
import type { NodeNotes, TakenIterations } from '../../../workflows/run/records.ts'
import { stepKey } from '../../../workflows/run/walk.ts'
import { chatPrivacyOf, isHiddenFrom } from '../../chat/privacy.ts'
import { missing } from '../../fault.ts'
import { readRecordUsage, type Usage } from '../../monitoring/usage/usage.ts'
import { makePage, type Page, type PageRequest } from '../../page.ts'
import { demand, type Scope, type Store } from '../../scope.ts'
import { readCompiledPlan } from '../../workflows/compiled.ts'
import { isEnded } from '../status.ts'
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
  /**
   * For a step of an agent: its number, from 1, and the tool that it calls (null in a turn of the model). Null in all
   * other records, the agent's own among them.
   */
  step: number | null
  tool: string | null
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
  /** Until when the node waits at the latest, while it does; null without a limit of time. */
  waitingUntil: Date | null
  /** The number of items of a loop over items; null for other nodes, and for one of a release before. */
  itemCount: number | null
  /** How many of them were taken over from the execution that this one retries; left out if none was. */
  itemsTaken?: number
  /** `takenFrom` is the execution that the output was taken over from, unless it was made here or pinned. */
  pinned: boolean
  takenFrom: string | null
  /** The execution that a SUB_WORKFLOW node has started. */
  childExecutionId: string | null
  /** The notes beside the output; missing without any. */
  warnings?: NodeNotes['warnings']
  console?: NodeNotes['console']
  /** What its calls to models took; missing if it has made none. */
  usage?: Usage
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
 * `{value}`. `sums` are what its calls to models took; null if it has made none. If its values are `hidden`, none is
 * shown.
 */
export async function readNodeExecutions(
  store: Store,
  execution: CountedExecution & Begun & { nodes: StoredNode[] | null; sums: object | null; hidden: boolean },
): Promise<ExecutionRecords> {
  const { hidden } = execution
  const stored = execution.nodes ?? (await readShown(store, execution.id, { steps: !hidden }))
  const nodes = hidden ? stored.filter(({ step }) => step === null) : stored
  const total = execution.nodes ? nodes.length : await countShown(store, execution)
  const plan = await readCompiledPlan(store, execution)
  const beside = total > nodes.length ? await readRecordsBefore(store, execution.id, plan, nodes) : []
  const values = deriveValues(store, execution.id, plan, [...nodes, ...beside])
  // The execution's output first: the records may use up the bytes that one response can show.
  const ends = execution.status === 'SUCCESS' && !hidden ? await values.ends() : undefined
  const outputData = ends === undefined ? null : asObject(ends)
  const usageOf = execution.sums ? await readRecordUsage(store, execution.id, nodes) : undefined
  const shown = await showNodes(nodes, hidden ? null : values, execution, usageOf)
  return { nodeExecutions: shown, nodeExecutionsTotal: total, outputData }
}

/** The output of an execution that ended SUCCESS, as it is; undefined if its outputs were not kept. */
export async function readExecutionOutput(store: Store, execution: ExecutionShape): Promise<unknown> {
  const plan = await readCompiledPlan(store, execution)
  const nodes = await readRecordsBefore(store, execution.id, plan, [])
  return deriveValues(store, execution.id, plan, nodes).ends()
}

type CountedExecution = ExecutionShape & { recordCount: number | null }

/** The number of the records that may be seen: steps are hidden with the values. */
function countShown(store: Store, execution: CountedExecution & { hidden: boolean }): Promise<number> {
  return execution.hidden ? countRecords(store, execution.id, { steps: false }) : countAll(store, execution)
}

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
      'inputWarning',
    ])
    .select(chatPrivacyOf().as('privacy'))
    .where('id', '=', id)
    .executeTakeFirst()
  if (!execution) throw missing('execution')
  demand(scope, execution.teamId, 'VIEWER')
  const { status, nodeId, steps, page, size } = query
  const hidden = isHiddenFrom(scope, execution.teamId, execution.privacy)
  const filter = { status, nodeId, steps: hidden ? false : steps }
  const all = status === undefined && nodeId === undefined && filter.steps !== false
  const total = all ? await countAll(store, execution) : await countRecords(store, id, filter)
  if (page * size >= total) return makePage([], total, query)
  const nodes = await readPage(store, id, filter, { size, offset: page * size })
  const plan = await readCompiledPlan(store, execution)
  const beside = await readRecordsBefore(store, id, plan, nodes)
  const values = deriveValues(store, id, plan, [...nodes, ...beside])
  const usageOf = await readRecordUsage(store, id, nodes)
  return makePage(await showNodes(nodes, hidden ? null : values, execution, usageOf), total, query)
}

/**
 * Without `values`, records show only the parts of a chat's that every member may see: the nodes, their status and
 * times.
 */
async function showNodes(
  nodes: StoredNode[],
  values: RecordValues | null,
  begun: Begun,
  usageOf: (record: StoredNode) => Usage | undefined = () => undefined,
): Promise<NodeExecution[]> {
  const shown: NodeExecution[] = []
  for (const node of underAgents(nodes)) {
    const { output, loop, agent, givenBy, notes, ...row } = node
    const usage = usageOf(node)
    const startedAt = new Date(row.startedAt)
    const completedAt = row.completedAt === null ? null : new Date(row.completedAt)
    shown.push({
      ...row,
      nodeId: graphNodeId(row.nodeId),
      ...(values ? showHandles(row.handle) : { handle: null, errorMessage: null }),
      iteration: row.iteration === '' ? null : row.iteration,
      startedAt,
      completedAt,
      nextAttemptAt: row.nextAttemptAt === null ? null : new Date(row.nextAttemptAt),
      waitingUntil: row.waitingUntil === null ? null : new Date(row.waitingUntil),
      ...(loop?.taken ? { itemsTaken: countTaken(loop.taken) } : {}),
      durationMs: completedAt ? completedAt.getTime() - startedAt.getTime() : null,
      ...(values ? await showValues(row, { output, agent }, values) : { inputData: {}, outputData: null }),
      pinned: givenBy === 'PINNED',
      takenFrom: givenBy === 'PINNED' ? null : givenBy,
      ...(values ? mergeNodeNotes(notes ?? undefined, notesOfTrigger(begun, node)) : {}),
      ...(usage ? { usage } : {}),
    })
  }
  return shown
}

/** What an execution was started with: what is said about that belongs to the record of its trigger. */
type Begun = { triggerNodeId: string; inputWarning: string | null }

function notesOfTrigger({ triggerNodeId, inputWarning }: Begun, node: StoredNode): NodeNotes | undefined {
  if (inputWarning === null || node.nodeId !== triggerNodeId) return undefined
  return { warnings: [{ path: 'input', message: inputWarning }] }
}

function countTaken({ ranges }: TakenIterations): number {
  return ranges.reduce((sum, [from, to]) => sum + to - from + 1, 0)
}

async function showValues(
  { nodeId, iteration, step }: Pick<StoredNode, 'nodeId' | 'iteration' | 'step'>,
  { output, agent }: Pick<StoredNode, 'output' | 'agent'>,
  values: RecordValues,
): Promise<Pick<NodeExecution, 'inputData' | 'outputData'>> {
  if (step === null)
    return {
      inputData: asObject(await values.input(nodeId, iteration)),
      outputData: output === null ? null : asObject(await values.output(nodeId, iteration)),
    }
  return {
    inputData: agent ? asObject(await values.own(agent.input)) : {},
    outputData: output === null ? null : asObject(await values.own(output as Envelope)),
  }
}

/** The records with an agent's steps right under its own, whatever else began meanwhile. */
function underAgents(nodes: StoredNode[]): StoredNode[] {
  const keyOf = ({ nodeId, iteration }: StoredNode) => stepKey(nodeId, iteration)
  const steps = Map.groupBy(
    nodes.filter(({ step }) => step !== null),
    keyOf,
  )
  if (steps.size === 0) return nodes
  const own = new Set(nodes.filter(({ step }) => step === null).map(keyOf))
  // A page may begin within the steps of an agent.
  return nodes.flatMap((node) =>
    node.step !== null ? (own.has(keyOf(node)) ? [] : [node]) : [node, ...(steps.get(keyOf(node)) ?? [])],
  )
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
