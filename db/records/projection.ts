import { v5 as uuidv5 } from 'uuid'
import type { AttemptResult, RunInput } from '../../workflows/run/messages.ts'
import type { Envelope, PlanNode } from '../../workflows/run/plan.ts'
import type { NodeError, NodeRecord } from '../../workflows/run/records.ts'
import { type LoopItems, RUN_TIMED_OUT, STUCK_REASON } from '../../workflows/run/records.ts'
import { settleFailure, stepKey } from '../../workflows/run/walk.ts'
import type { ExecutionStatus } from '../executions/status.ts'

/**
 * The part of a Temporal history event that the projection reads; times are in milliseconds since 1970. A run
 * without `input` was started by somebody else.
 */
export type HistoryEvent = { id: number; time: number } & (
  | { kind: 'started'; input: RunInput | null; continuedFrom: string | null }
  | { kind: 'records'; records: NodeRecord[] }
  | { kind: 'scheduled'; activityId: string }
  | { kind: 'attempt'; scheduledId: number; attempt: number }
  /** `returned` attempts have only returned their slot to the worker, and do not count. */
  | { kind: 'completed'; scheduledId: number; result: AttemptResult; returned?: number }
  | { kind: 'failed'; scheduledId: number; error: NodeError; returned?: number }
  | { kind: 'canceled'; scheduledId: number }
  | { kind: 'timer'; timerId: string; key: string }
  | { kind: 'fired' | 'stopped'; timerId: string }
  | { kind: 'closed'; how: CloseKind; message: string | null; type: string | null }
  | { kind: 'other' }
)

export type CloseKind = 'COMPLETED' | 'FAILED' | 'CANCELED' | 'TERMINATED' | 'TIMED_OUT' | 'CONTINUED_AS_NEW'

/** The history, or the next part of it, of one run in an execution's continue-as-new chain. */
export type RunHistory = { runId: string; events: HistoryEvent[] }

/** A node's record as the histories tell it; times are in milliseconds since 1970. */
export type ProjectedNode = {
  id: string
  nodeId: string
  iteration: string
  nodeName: string
  nodeType: string
  status: ExecutionStatus
  startedAt: number
  completedAt: number | null
  output: Envelope | null
  handle: string | null
  errorMessage: string | null
  retryCount: number
  /** The record's number in the order in which nodes began, from 0. */
  position: number
  /** A loop's items; null for other nodes. */
  loop: LoopItems | null
  /**
   * Where a preset output came from: PINNED or the id of the execution that made it; null for other outputs.
   */
  givenBy: string | null
}

/** What an execution's rows should say; times are in milliseconds since 1970. */
export type Projection = {
  runId: string
  /** The number of the run in its chain, from 0. */
  position: number
  lastEventId: number
  /** Whether any node has begun. */
  began: boolean
  status: ExecutionStatus
  startedAt: number
  completedAt: number | null
  errorMessage: string | null
  nodes: ProjectedNode[]
}

/** The id of a node's record. It depends only on the arguments, so every writer uses the same one. */
export function nodeExecutionId(executionId: string, nodeId: string, iteration: string): string {
  return uuidv5(`${nodeId}#${iteration}`, executionId)
}

/** A projection that reads histories part by part, so that long ones need not be read again each time. */
export type ProjectionFold = {
  /** The run and the event that were read last; null at first. Events that are read again are skipped. */
  position(): { runId: string; lastEventId: number } | null
  read(history: RunHistory): void
  /** Whether the run was started by somebody else. */
  isForeign(): boolean
  /** The projection, with the node records that have changed since `confirm`. */
  project(): Projection
  /** Says that the last projection is stored: its records need not be returned again. */
  confirm(): void
}

/**
 * Computes what an execution's rows say from the histories of its whole continue-as-new chain, which must be
 * read oldest first. The result depends on nothing else: the same histories always give the same rows.
 */
export function createFold(executionId: string): ProjectionFold {
  const plan = new Map<string, PlanNode>()
  /** Records that are open, or settled but not stored yet. `stored` has the keys of the others. */
  const rows = new Map<string, ProjectedNode>()
  const stored = new Set<string>()
  const running = new Set<ProjectedNode>()
  let changed = new Set<ProjectedNode>()
  let start = 0
  let runs = 0
  let runId = ''
  let lastEventId = 0
  let scheduled = new Map<number, ProjectedNode>()
  let timers = new Map<string, ProjectedNode>()
  let closed: Extract<HistoryEvent, { kind: 'closed' }> | undefined

  function open(nodeId: string, iteration: string, startedAt: number): ProjectedNode | undefined {
    const node = plan.get(nodeId)
    const key = stepKey(nodeId, iteration)
    if (!node || node.silent || stored.has(key)) return undefined
    let row = rows.get(key)
    if (!row) {
      row = {
        id: nodeExecutionId(executionId, nodeId, iteration),
        nodeId,
        iteration,
        nodeName: node.name,
        nodeType: node.type,
        status: 'RUNNING',
        startedAt,
        completedAt: null,
        output: null,
        handle: null,
        errorMessage: null,
        retryCount: 0,
        position: rows.size + stored.size,
        loop: null,
        givenBy: node.given?.from ?? null,
      }
      rows.set(key, row)
      running.add(row)
    }
    changed.add(row)
    return row
  }

  function end(row: ProjectedNode, at: number, how: Partial<ProjectedNode>): void {
    Object.assign(row, { completedAt: at }, how)
    running.delete(row)
    changed.add(row)
    const node = plan.get(row.nodeId)!
    // The end of a loop ends what is open in it, and a failure that nothing handles ends its iteration.
    if (node.loop) cancelOpen(row.nodeId, row.iteration, at)
    if (row.status === 'FAILED' && row.output === null && node.parentId) {
      cancelOpen(node.parentId, row.iteration, at, true)
    }
  }

  /** Cancels what is open in a loop's body: in all iterations under `path`, and in `path` itself if `one`. */
  function cancelOpen(loopId: string, path: string, at: number, one = false): void {
    for (const row of running) {
      if (!isInside(row.nodeId, loopId)) continue
      const under = row.iteration.startsWith(`${path}.`) || path === ''
      if (under || (one && row.iteration === path))
        end(row, at, { status: 'CANCELLED', output: null, handle: null })
    }
  }

  function isInside(nodeId: string, loopId: string): boolean {
    for (let id = plan.get(nodeId)?.parentId; id !== undefined; id = plan.get(id)?.parentId) {
      if (id === loopId) return true
    }
    return false
  }

  function fail(row: ProjectedNode, at: number, error: NodeError): void {
    const handled = settleFailure(plan.get(row.nodeId)!, error)
    const left =
      handled === 'fatal' ? {} : { output: { v: handled.output, bytes: 0 }, handle: handled.handle }
    end(row, at, { status: 'FAILED', errorMessage: error.message, ...left })
  }

  // A worker's clock may differ from Temporal's, so times are moved between the run's start and this event.
  function readRecord(record: NodeRecord, toldAt: number): void {
    const { status } = record
    if (status === 'FOLDED' || status === 'TURNED') return
    const within = (ms: number) => Math.max(start, Math.min(ms, toldAt))
    const row = open(record.nodeId, record.iteration, within(record.startedAt))
    if (!row) return
    row.output = ('output' in record && record.output) || null
    row.handle = record.handle
    if (status === 'LOOPING') row.loop = record.loop
    if (status === 'SUCCESS' || status === 'FAILED') {
      const errorMessage = record.status === 'FAILED' ? record.error.message : null
      end(row, within(record.completedAt), { status, errorMessage })
    }
  }

  function readEvent(event: HistoryEvent): void {
    if (event.kind === 'started') {
      if (start === 0) start = event.time
      for (const node of event.input?.plan.nodes ?? []) plan.set(node.id, node)
    } else if (event.kind === 'records') for (const record of event.records) readRecord(record, event.time)
    else if (event.kind === 'scheduled') {
      const [nodeId = '', iteration = ''] = event.activityId.split('#')
      const row = open(nodeId, iteration, event.time)
      if (row) scheduled.set(event.id, row)
    } else if (event.kind === 'timer') {
      const row = rows.get(event.key)
      if (row) timers.set(event.timerId, row)
    } else if (event.kind === 'fired' || event.kind === 'stopped') {
      const row = timers.get(event.timerId)
      const stopped = { status: 'CANCELLED', output: null, handle: null } as const
      if (row?.status === 'RUNNING')
        end(row, event.time, event.kind === 'fired' ? { status: 'SUCCESS' } : stopped)
    } else if (event.kind === 'closed') closed = event
    else if ('scheduledId' in event) readAttempt(event)
  }

  function readAttempt(event: Extract<HistoryEvent, { scheduledId: number }>): void {
    const row = scheduled.get(event.scheduledId)
    if (row?.status !== 'RUNNING') return
    if (event.kind === 'attempt') {
      row.retryCount = event.attempt - 1
      changed.add(row)
    } else if (event.kind === 'canceled') {
      end(row, event.time, { status: 'CANCELLED' })
    } else settleAttempt(row, event)
  }

  function settleAttempt(
    row: ProjectedNode,
    event: Extract<HistoryEvent, { kind: 'completed' | 'failed' }>,
  ): void {
    row.retryCount -= event.returned ?? 0
    if (event.kind === 'failed') fail(row, event.time, event.error)
    else end(row, event.time, { status: 'SUCCESS', ...event.result })
  }

  return {
    isForeign: () => start !== 0 && plan.size === 0,
    position: () => (runs === 0 ? null : { runId, lastEventId }),
    read(history) {
      if (runs === 0 || history.runId !== runId) {
        runs++
        runId = history.runId
        lastEventId = 0
        scheduled = new Map()
        timers = new Map()
        closed = undefined
      }
      for (const event of history.events) {
        if (event.id <= lastEventId) continue
        readEvent(event)
        lastEventId = event.id
      }
    },
    project() {
      if (start === 0) throw new Error('The history has no start event')
      const ended = closed && closed.how !== 'CONTINUED_AS_NEW' ? closed : undefined
      const reported = new Set(changed)
      if (ended) for (const row of running) reported.add(row)
      const nodes = [...reported].map((row): ProjectedNode => {
        if (row.status !== 'RUNNING') return row
        const open = { ...row, output: null, handle: null }
        return ended ? { ...open, status: 'CANCELLED', completedAt: ended.time } : open
      })
      return {
        runId,
        position: runs - 1,
        lastEventId,
        status: ended ? closeStatus(ended) : 'RUNNING',
        startedAt: start,
        completedAt: ended?.time ?? null,
        errorMessage: ended ? closeMessage(ended) : null,
        began: rows.size + stored.size > 0,
        nodes: nodes.sort((a, b) => a.position - b.position),
      }
    },
    confirm() {
      changed = new Set()
      for (const [key, row] of rows) {
        if (row.status === 'RUNNING') continue
        rows.delete(key)
        stored.add(key)
      }
    },
  }
}

type Close = { how: CloseKind; message: string | null; type: string | null }

function closeStatus({ how, type, message }: Close): ExecutionStatus {
  if (how === 'COMPLETED') return 'SUCCESS'
  if (how === 'FAILED') return type === RUN_TIMED_OUT ? 'CANCELLED' : 'FAILED'
  return how === 'TERMINATED' && message?.startsWith(STUCK_REASON) ? 'FAILED' : 'CANCELLED'
}

function closeMessage({ how, message }: Close): string | null {
  if (message?.startsWith(STUCK_REASON)) return message
  if (how === 'COMPLETED') return null
  if (how === 'CANCELED') return 'The execution was cancelled'
  if (how === 'TERMINATED') return `The execution was terminated in Temporal${message ? `: ${message}` : ''}`
  if (how === 'TIMED_OUT') return 'The execution timed out in Temporal'
  return message
}
