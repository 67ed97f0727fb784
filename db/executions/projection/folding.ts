import type { Agent, PlanNode } from '../../../workflows/run/plan.ts'
import type { NodeError } from '../../../workflows/run/records.ts'
import { joinStep, settleFailure, stepKey } from '../../../workflows/run/walk.ts'
import { openRecord, type ProjectedNode, type Projection, weigh } from '../records/projection.ts'
import type { HistoryEvent } from './history.ts'
import { type Progress, WHOLE } from './progress.ts'

/** About how many bytes of memory a key takes besides its letters. */
const KEY_BYTES = 80

/** What a fold knows of an execution after the events that it has read. */
export type Folding = {
  readonly executionId: string
  /** What the stored rows know. */
  readonly progress: Progress | null
  readonly plan: Map<string, PlanNode>
  /** Records that are open, or settled but not stored yet. `stored` has the keys of the others. */
  readonly rows: Map<string, ProjectedNode>
  readonly stored: Set<string>
  readonly running: Set<ProjectedNode>
  /** The records to store: what they say has changed since they were stored. */
  changed: Set<ProjectedNode>
  /** The agents that are under way, by the keys of their records. */
  readonly agents: Map<string, Agent>
  /** The bytes of the values in `rows`, and of the keys in `stored`. */
  held: number
  keyBytes: number
  /** How many records have opened so far. */
  count: number
  /** The records that opened while events are read again that the stored rows know: numbered from 0. */
  replayed: ProjectedNode[] | null
  /** When the execution started, in milliseconds; 0 before the first event. */
  start: number
  /** The place in the chain of the run that is read, -1 before the first; its id, and that of the run before. */
  position: number
  runId: string
  before: string
  lastEventId: number
  /** What had been read when all changes were stored last. */
  since: Projection['since']
  /** The records of the run's activities, by the ids of the events that scheduled them, and of its timers. */
  scheduled: Map<number, ProjectedNode>
  timers: Map<string, ProjectedNode>
  closed: Extract<HistoryEvent, { kind: 'closed' }> | undefined
}

export function createFolding(executionId: string, progress: Progress | null): Folding {
  return {
    ...{ executionId, progress, plan: new Map(), rows: new Map(), stored: new Set(), running: new Set() },
    ...{ changed: new Set(), agents: new Map(), held: 0, keyBytes: 0, count: 0, replayed: null, start: 0 },
    ...{ position: -1, runId: '', before: '', lastEventId: 0, since: { position: 0, lastEventId: 0 } },
    ...{ scheduled: new Map(), timers: new Map(), closed: undefined },
  }
}

/** The open record of a node or of a step, opened if it does not exist yet. Undefined if it has none, or is settled. */
export function openRow(
  folding: Folding,
  nodeId: string,
  iteration: string,
  startedAt: number,
  { step, tool }: Pick<ProjectedNode, 'step' | 'tool'> = WHOLE,
): ProjectedNode | undefined {
  const { executionId, plan, rows, running } = folding
  const node = plan.get(nodeId)
  const key = stepKey(nodeId, joinStep(iteration, step))
  if (!node || node.silent || folding.stored.has(key)) return undefined
  let row = rows.get(key)
  if (row && !running.has(row)) return undefined
  if (!row) {
    row = openRecord(executionId, node, { iteration, step, tool, startedAt, position: folding.count++ })
    rows.set(key, row)
    running.add(row)
    folding.replayed?.push(row)
  }
  folding.changed.add(row)
  return row
}

export function endRow(folding: Folding, row: ProjectedNode, at: number, how: Partial<ProjectedNode>): void {
  Object.assign(row, { completedAt: at }, how)
  folding.held += weigh(row)
  folding.running.delete(row)
  folding.changed.add(row)
  if (row.step !== null) return
  const node = folding.plan.get(row.nodeId)!
  // The end of a loop ends what is open in it, and a failure that nothing handles ends its iteration.
  if (node.loop) cancelOpen(folding, row.nodeId, row.iteration, at)
  if (row.status === 'FAILED' && row.output === null && node.parentId) {
    cancelOpen(folding, node.parentId, row.iteration, at, true)
  }
}

export function failRow(
  folding: Folding,
  row: ProjectedNode,
  at: number,
  error: NodeError,
  noted: Pick<ProjectedNode, 'notes'>,
): void {
  const handled = settleFailure(folding.plan.get(row.nodeId)!, error)
  const left = handled === 'fatal' ? {} : { output: { v: handled.output, bytes: 0 }, handle: handled.handle }
  endRow(folding, row, at, { status: 'FAILED', errorMessage: error.message, ...left, ...noted })
}

/** Cancels what is open in a loop's body: in all iterations under `path`, and in `path` itself if `one`. */
function cancelOpen(folding: Folding, loopId: string, path: string, at: number, one = false): void {
  for (const row of folding.running) {
    if (!isInside(folding.plan, row.nodeId, loopId)) continue
    const under = row.iteration.startsWith(`${path}.`) || path === ''
    if (under || (one && row.iteration === path))
      endRow(folding, row, at, { status: 'CANCELLED', output: null, handle: null })
  }
}

function isInside(plan: Folding['plan'], nodeId: string, loopId: string): boolean {
  for (let id = plan.get(nodeId)?.parentId; id !== undefined; id = plan.get(id)?.parentId) {
    if (id === loopId) return true
  }
  return false
}

/** Says that the records (or only the settled ones) are stored: the settled ones are let go. */
export function confirmRows(folding: Folding, which: 'all' | 'settled' = 'all'): void {
  if (which === 'all') {
    folding.changed = new Set()
    folding.since = { position: folding.position, lastEventId: folding.lastEventId }
  }
  folding.held = 0
  for (const [key, row] of folding.rows) {
    if (folding.running.has(row)) {
      folding.held += weigh(row)
      continue
    }
    folding.rows.delete(key)
    folding.changed.delete(row)
    folding.stored.add(key)
    folding.keyBytes += key.length + KEY_BYTES
  }
}
