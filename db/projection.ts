import { v5 as uuidv5 } from 'uuid'
import type { Envelope } from '../workflows/plan.ts'
import type { AttemptResult, RunInput } from '../workflows/run.ts'
import {
  type NodeError,
  type NodeRecord,
  RUN_TIMED_OUT,
  STUCK_REASON,
  settleFailure,
} from '../workflows/walk.ts'

/** What the projection reads of a Temporal history event; times are epoch milliseconds. */
export type HistoryEvent = { id: number; time: number } & (
  | { kind: 'started'; input: RunInput; continuedFrom: string | null }
  | { kind: 'records'; records: NodeRecord[] }
  | { kind: 'scheduled'; activityId: string }
  | { kind: 'attempt'; scheduledId: number; attempt: number }
  | { kind: 'completed'; scheduledId: number; result: AttemptResult }
  | { kind: 'failed'; scheduledId: number; error: NodeError }
  | { kind: 'canceled'; scheduledId: number }
  | { kind: 'timer'; timerId: string; key: string }
  | { kind: 'fired'; timerId: string }
  | { kind: 'closed'; how: CloseKind; message: string | null; type: string | null }
  | { kind: 'other' }
)

export type CloseKind = 'COMPLETED' | 'FAILED' | 'CANCELED' | 'TERMINATED' | 'TIMED_OUT' | 'CONTINUED_AS_NEW'

/** One Temporal run of an execution's chain. */
export type RunHistory = { runId: string; events: HistoryEvent[] }

export type ExecutionStatus = 'PENDING' | 'RUNNING' | 'SUCCESS' | 'FAILED' | 'CANCELLED'

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
}

export type Projection = {
  runId: string
  lastEventId: number
  status: ExecutionStatus
  startedAt: number
  completedAt: number | null
  errorMessage: string | null
  nodes: ProjectedNode[]
}

/** The id of a node's record: the same whoever writes it, and however often. */
export function nodeExecutionId(executionId: string, nodeId: string, iteration: string): string {
  return uuidv5(`${nodeId}#${iteration}`, executionId)
}

/**
 * Computes what an execution's rows say from the histories of its whole continue-as-new chain, oldest first.
 * Pure: the same histories give the same rows, whoever projects them, and as often as one likes.
 */
export function project(executionId: string, histories: RunHistory[]): Projection {
  const last = histories.at(-1)
  const first = histories[0]?.events.find((event) => event.kind === 'started')
  if (!last || first?.kind !== 'started') throw new Error('a history without its beginning')
  const start = first.time
  const plan = new Map(first.input.plan.nodes.map((node) => [node.id, node]))
  const nodes = new Map<string, ProjectedNode>()
  let closed: Extract<HistoryEvent, { kind: 'closed' }> | undefined

  function open(nodeId: string, iteration: string, startedAt: number): ProjectedNode | undefined {
    const node = plan.get(nodeId)
    if (!node || node.silent) return undefined
    const key = `${nodeId}#${iteration}`
    const known = nodes.get(key)
    if (known) return known
    const made: ProjectedNode = {
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
    }
    nodes.set(key, made)
    return made
  }

  function fail(row: ProjectedNode, error: NodeError): void {
    const handled = settleFailure(plan.get(row.nodeId)!, error)
    row.status = 'FAILED'
    row.errorMessage = error.message
    if (handled === 'fatal') return
    row.output = { v: handled.output, bytes: 0 }
    row.handle = handled.handle
  }

  // A worker's clock may differ from Temporal's: no node starts before its run or ends after it was told of.
  function readRecord(record: NodeRecord, toldAt: number): void {
    const within = (ms: number) => Math.max(start, Math.min(ms, toldAt))
    const row = open(record.nodeId, record.iteration, within(record.startedAt))
    if (!row) return
    row.output = record.output ?? null
    row.handle = record.handle
    if (record.status === 'WAITING') return
    row.completedAt = within(record.completedAt)
    row.status = record.status
    if (record.error) row.errorMessage = record.error.message
  }

  for (const history of histories) {
    const scheduled = new Map<number, ProjectedNode>()
    const timers = new Map<string, ProjectedNode>()
    closed = undefined
    for (const event of history.events) {
      if (event.kind === 'records') for (const record of event.records) readRecord(record, event.time)
      else if (event.kind === 'scheduled') {
        const [nodeId = '', iteration = ''] = event.activityId.split('#')
        const row = open(nodeId, iteration, event.time)
        if (row) scheduled.set(event.id, row)
      } else if (event.kind === 'timer') {
        const [nodeId = '', iteration = ''] = event.key.split('#')
        const row = nodes.get(`${nodeId}#${iteration}`)
        if (row) timers.set(event.timerId, row)
      } else if (event.kind === 'fired') {
        const row = timers.get(event.timerId)
        if (row) Object.assign(row, { status: 'SUCCESS', completedAt: event.time })
      } else if (event.kind === 'closed') closed = event
      else if ('scheduledId' in event) {
        const row = scheduled.get(event.scheduledId)
        if (!row) continue
        if (event.kind === 'attempt') {
          row.retryCount = event.attempt - 1
          continue
        }
        row.completedAt = event.time
        if (event.kind === 'canceled') row.status = 'CANCELLED'
        else if (event.kind === 'failed') fail(row, event.error)
        else
          Object.assign(row, { status: 'SUCCESS', output: event.result.output, handle: event.result.handle })
      }
    }
  }

  const ended = closed && closed.how !== 'CONTINUED_AS_NEW' ? closed : undefined
  for (const row of nodes.values()) {
    if (row.status !== 'RUNNING') continue
    row.output = null
    row.handle = null
    if (ended) Object.assign(row, { status: 'CANCELLED', completedAt: ended.time })
  }
  return {
    runId: last.runId,
    lastEventId: last.events.at(-1)?.id ?? 0,
    status: ended ? closeStatus(ended) : 'RUNNING',
    startedAt: start,
    completedAt: ended?.time ?? null,
    errorMessage: ended ? closeMessage(ended) : null,
    nodes: [...nodes.values()],
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
  if (how === 'CANCELED') return 'The run was cancelled'
  if (how === 'TERMINATED') return `The run was terminated in Temporal${message ? `: ${message}` : ''}`
  if (how === 'TIMED_OUT') return 'The run timed out in Temporal'
  return message
}
