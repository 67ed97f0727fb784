import type { ProjectedNode, Projection } from '../records/projection.ts'
import { openScheduled, readAttempt } from './attempts.ts'
import { confirmRows, createFolding, endRow, type Folding } from './folding.ts'
import { closeMessage, closeStatus, type HistoryEvent, type RunHistory } from './history.ts'
import type { Progress } from './progress.ts'
import { beginRun } from './resume.ts'
import { readNodeRecord } from './segments.ts'

/** A projection that reads histories part by part, so that long ones need not be read again each time. */
export type ProjectionFold = {
  /** The run and event that were read last, and the run that goes on after it, if it has ended; null at first. */
  position(): { runId: string; lastEventId: number; next: string | null } | null
  read(history: RunHistory): void
  /** Whether the run was started by another program. */
  isForeign(): boolean
  /** Whether there is enough to store for one statement. */
  isFull(): boolean
  /** About how many bytes of memory it takes. */
  bytes(): number
  /** The projection, with the node records that have changed since `confirm`. */
  project(): Projection
  /** Says that of the last projection the records (or only the settled ones) are stored: they are let go. */
  confirm(which?: 'all' | 'settled'): void
}

/** About how many bytes of memory a node of the plan and a record take. */
const NODE_BYTES = 600
const ROW_BYTES = 400

/** How much is stored in one statement: an event has at most as many records again. */
const FULL_RECORDS = 500
const FULL_BYTES = 2_000_000

/**
 * Computes what an execution's rows say from the histories of its whole continue-as-new chain, which must be
 * read oldest first. The result depends on nothing else: the same histories always give the same rows. What a
 * record says once it is settled is final. With the `progress` of the stored rows, the reading may begin at
 * the run that they have come to, or at any later one if the histories before are gone.
 */
export function createFold(executionId: string, progress: Progress | null = null): ProjectionFold {
  const folding = createFolding(executionId, progress)
  const { plan, rows } = folding
  return {
    isForeign: () => folding.start !== 0 && plan.size === 0,
    isFull: () =>
      folding.replayed === null && (folding.changed.size >= FULL_RECORDS || folding.held >= FULL_BYTES),
    bytes: () => plan.size * NODE_BYTES + rows.size * ROW_BYTES + folding.held + folding.keyBytes,
    position() {
      const { position, runId, lastEventId, closed } = folding
      return position < 0 ? null : { runId, lastEventId, next: closed?.next ?? null }
    },
    read: (history) => readHistory(folding, history),
    project: () => projectRows(folding),
    confirm: (which) => confirmRows(folding, which),
  }
}

function readHistory(folding: Folding, { runId, events }: RunHistory): void {
  const { progress } = folding
  if (runId !== folding.runId) {
    Object.assign(folding, { before: folding.runId, runId, lastEventId: 0, closed: undefined })
    folding.scheduled = new Map()
    folding.timers = new Map()
  }
  for (const event of events) {
    if (event.id <= folding.lastEventId) continue
    readEvent(folding, event)
    folding.lastEventId = event.id
    if (folding.replayed && runId === progress!.runId && event.id >= progress!.lastEventId) endReplay(folding)
  }
}

function readEvent(folding: Folding, event: HistoryEvent): void {
  if (event.kind === 'started') beginRun(folding, event)
  else if (event.kind === 'records') {
    for (const record of event.records) readNodeRecord(folding, record, event.time)
  } else if (event.kind === 'scheduled') {
    const row = openScheduled(folding, event.activityId, event.time)
    if (row) folding.scheduled.set(event.id, row)
  } else if (event.kind === 'timer') {
    const row = folding.rows.get(event.key)
    if (row) folding.timers.set(event.timerId, row)
  } else if (event.kind === 'fired' || event.kind === 'stopped') {
    const row = folding.timers.get(event.timerId)
    const stopped = { status: 'CANCELLED', output: null, handle: null } as const
    if (row?.status === 'RUNNING')
      endRow(folding, row, event.time, event.kind === 'fired' ? { status: 'SUCCESS' } : stopped)
  } else if (event.kind === 'closed') folding.closed = event
  else if ('scheduledId' in event) readAttempt(folding, event)
}

/** The rows know all that was read: from here on, records are numbered on from theirs. */
function endReplay(folding: Folding): void {
  const { position, progress, count } = folding
  const earlier = Math.max(0, position > 0 ? progress!.recordCount - count : 0)
  for (const row of folding.replayed!) row.position += earlier
  folding.count += earlier
  folding.replayed = null
  confirmRows(folding)
}

function projectRows(folding: Folding): Projection {
  const { runId, position, lastEventId, start, closed, running, since, count } = folding
  if (start === 0) throw new Error('The history has no start event')
  const ended = closed && closed.how !== 'CONTINUED_AS_NEW' ? closed : undefined
  const reported = new Set(folding.changed)
  if (ended) for (const row of running) reported.add(row)
  const nodes = [...reported].map((row): ProjectedNode => {
    if (!running.has(row)) return row
    const open = { ...row, output: null, handle: null }
    return ended ? { ...open, status: 'CANCELLED', completedAt: ended.time } : open
  })
  return {
    ...{ runId, position, lastEventId, since },
    status: ended ? closeStatus(ended) : 'RUNNING',
    startedAt: start,
    completedAt: ended?.time ?? null,
    errorMessage: ended ? closeMessage(ended) : null,
    began: count > 0,
    recordCount: count,
    nodes: nodes.sort((a, b) => a.position - b.position),
  }
}
