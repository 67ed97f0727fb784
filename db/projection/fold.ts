import { mergeNodeNotes } from '../../workflows/notes.ts'
import type { Carried } from '../../workflows/run/messages.ts'
import type { PlanNode } from '../../workflows/run/plan.ts'
import type { NodeError, NodeRecord } from '../../workflows/run/records.ts'
import { settleFailure, stepKey } from '../../workflows/run/walk.ts'
import { openRecord, type ProjectedNode, type Projection, weigh } from '../records/projection.ts'
import { closeMessage, closeStatus, type HistoryEvent, type RunHistory } from './history.ts'
import { listCarried, type Progress, UNKNOWN_END } from './progress.ts'

/** A projection that reads histories part by part, so that long ones need not be read again each time. */
export type ProjectionFold = {
  /** The run and event that were read last, and the run that goes on after it, if it has ended; null at first. */
  position(): { runId: string; lastEventId: number; next: string | null } | null
  read(history: RunHistory): void
  /** Whether the run was started by somebody else. */
  isForeign(): boolean
  /** Whether there is as much to store as one statement should. */
  isFull(): boolean
  /** About how many bytes of memory it takes. */
  bytes(): number
  /** The projection, with the node records that have changed since `confirm`. */
  project(): Projection
  /** Says that of the last projection the records (or only the settled ones) are stored: they are let go. */
  confirm(which?: 'all' | 'settled'): void
}

/** About how many bytes of memory a node of the plan, a record and a key take. */
const NODE_BYTES = 600
const ROW_BYTES = 400
const KEY_BYTES = 80

/** What is stored in one statement: an event has at most as many records again. */
const FULL_RECORDS = 500
const FULL_BYTES = 2_000_000

/**
 * Computes what an execution's rows say from the histories of its whole continue-as-new chain, which must be
 * read oldest first. The result depends on nothing else: the same histories always give the same rows. What a
 * record says once it is settled is final. With the `progress` of the stored rows, the reading may begin at
 * the run that they have come to, or at any later one if the histories before are gone.
 */
export function createFold(executionId: string, progress: Progress | null = null): ProjectionFold {
  const plan = new Map<string, PlanNode>()
  /** Records that are open, or settled but not stored yet. `stored` has the keys of the others. */
  const rows = new Map<string, ProjectedNode>()
  const stored = new Set<string>()
  const running = new Set<ProjectedNode>()
  let changed = new Set<ProjectedNode>()
  /** The bytes of the values in `rows`, and of the keys in `stored`. */
  let held = 0
  let keyBytes = 0
  let count = 0
  /** The records that opened while events are read again that the stored rows know: numbered from 0. */
  let replayed: ProjectedNode[] | null = null
  let start = 0
  let position = -1
  let runId = ''
  let lastEventId = 0
  let since = { position: 0, lastEventId: 0 }
  let scheduled = new Map<number, ProjectedNode>()
  let timers = new Map<string, ProjectedNode>()
  let closed: Extract<HistoryEvent, { kind: 'closed' }> | undefined

  function open(nodeId: string, iteration: string, startedAt: number): ProjectedNode | undefined {
    const node = plan.get(nodeId)
    const key = stepKey(nodeId, iteration)
    if (!node || node.silent || stored.has(key)) return undefined
    let row = rows.get(key)
    if (row && !running.has(row)) return undefined
    if (!row) {
      row = openRecord(executionId, node, { iteration, startedAt, position: count++ })
      rows.set(key, row)
      running.add(row)
      replayed?.push(row)
    }
    changed.add(row)
    return row
  }

  function end(row: ProjectedNode, at: number, how: Partial<ProjectedNode>): void {
    Object.assign(row, { completedAt: at }, how)
    held += weigh(row)
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

  function fail(row: ProjectedNode, at: number, error: NodeError, noted: Pick<ProjectedNode, 'notes'>): void {
    const handled = settleFailure(plan.get(row.nodeId)!, error)
    const left =
      handled === 'fatal' ? {} : { output: { v: handled.output, bytes: 0 }, handle: handled.handle }
    end(row, at, { status: 'FAILED', errorMessage: error.message, ...left, ...noted })
  }

  // A worker's clock may differ from Temporal's, so times are moved between the run's start and this event.
  function readRecord(record: NodeRecord, toldAt: number): void {
    const { status } = record
    if (status === 'TURNED') noteTurn(record)
    if (status === 'FOLDED' || status === 'TURNED') return
    const within = (ms: number) => Math.max(start, Math.min(ms, toldAt))
    const row = open(record.nodeId, record.iteration, within(record.startedAt))
    if (!row) return
    row.output = ('output' in record && record.output) || null
    row.handle = record.handle
    if (record.notes) row.notes = mergeNodeNotes(row.notes, record.notes)
    if (status === 'LOOPING') row.loop = record.loop
    if (status === 'LOOPING' || status === 'WAITING') held += weigh(row)
    if (status === 'SUCCESS' || status === 'FAILED') {
      const errorMessage = record.status === 'FAILED' ? record.error.message : null
      end(row, within(record.completedAt), { status, errorMessage })
    }
  }

  /** What was noted when REPEAT's condition was tested belongs to the loop. */
  function noteTurn({ nodeId, iteration, notes }: NodeRecord): void {
    const row = rows.get(stepKey(nodeId, iteration))
    if (!notes || !row || !running.has(row)) return
    row.notes = mergeNodeNotes(row.notes, notes)
    changed.add(row)
  }

  let before = ''
  function begin({ input, continuedFrom, time }: Extract<HistoryEvent, { kind: 'started' }>): void {
    for (const node of input?.plan.nodes ?? []) plan.set(node.id, node)
    const { carried } = input ?? {}
    const known = progress?.runId === runId
    const next = position >= 0 ? position + 1 : carried && progress ? progress.position + (known ? 0 : 1) : 0
    const first = position < 0
    position = carried?.chain ?? next
    if (first) start = carried ? (progress?.startedAt ?? carried.startedAt) : time
    if (first && carried && !known && progress) {
      count = progress.recordCount
      since = { position: progress.position, lastEventId: progress.lastEventId }
    }
    if (carried && (first || continuedFrom !== before)) resume(carried, known && first, time)
    if (first && known) replayed = []
  }

  /** Takes up what was open when the run began, whose history before is not read. */
  function resume(carried: Carried, known: boolean, at: number): void {
    const { open: opened, settled } = listCarried(carried)
    const left = new Map(progress?.open.map((row) => [stepKey(row.nodeId, row.iteration), row]))
    for (const row of running) left.set(stepKey(row.nodeId, row.iteration), row)
    const take = (nodeId: string, iteration: string): ProjectedNode | undefined => {
      const was = left.get(stepKey(nodeId, iteration))
      const row = open(nodeId, iteration, at)
      if (!row || !was || row === was) return row
      count--
      changed.delete(row)
      return Object.assign(row, was)
    }
    for (const { nodeId, iteration, loop, output, handle } of opened) {
      const key = stepKey(nodeId, iteration)
      if (known && !left.has(key)) stored.add(key)
      const row = take(nodeId, iteration)
      left.delete(key)
      if (row) Object.assign(row, { output, handle, loop: row.loop ?? loop })
    }
    if (known) return
    // The history that tells how these ended is gone. What the run carries are the outputs that it needs.
    for (const [key, { nodeId, iteration }] of left) {
      const row = take(nodeId, iteration)
      const how = settled.get(key)
      const unknown = { status: 'CANCELLED', output: null, handle: null, errorMessage: UNKNOWN_END } as const
      if (row) end(row, at, how ? { status: 'SUCCESS', ...how } : unknown)
    }
    for (const [key, how] of settled) {
      const [nodeId = '', iteration = ''] = key.split('#')
      if (progress?.settled.includes(key)) continue
      const row = open(nodeId, iteration, at)
      if (row) end(row, at, { status: 'SUCCESS', ...how })
    }
  }

  /** The rows know all that was read: from here on, records are numbered on from theirs. */
  function endReplay(): void {
    const earlier = Math.max(0, position > 0 ? progress!.recordCount - count : 0)
    for (const row of replayed!) row.position += earlier
    count += earlier
    replayed = null
    confirm()
  }

  function confirm(which: 'all' | 'settled' = 'all'): void {
    if (which === 'all') {
      changed = new Set()
      since = { position, lastEventId }
    }
    held = 0
    for (const [key, row] of rows) {
      if (running.has(row)) {
        held += weigh(row)
        continue
      }
      rows.delete(key)
      changed.delete(row)
      stored.add(key)
      keyBytes += key.length + KEY_BYTES
    }
  }

  function readEvent(event: HistoryEvent): void {
    if (event.kind === 'started') begin(event)
    else if (event.kind === 'records') for (const record of event.records) readRecord(record, event.time)
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
    if (event.kind === 'failed') fail(row, event.time, event.error, notedIn(event))
    else end(row, event.time, { status: 'SUCCESS', ...event.result })
  }

  return {
    isForeign: () => start !== 0 && plan.size === 0,
    isFull: () => replayed === null && (changed.size >= FULL_RECORDS || held >= FULL_BYTES),
    bytes: () => plan.size * NODE_BYTES + rows.size * ROW_BYTES + held + keyBytes,
    position: () => (position < 0 ? null : { runId, lastEventId, next: closed?.next ?? null }),
    read(history) {
      if (history.runId !== runId) {
        before = runId
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
        if (replayed && runId === progress!.runId && event.id >= progress!.lastEventId) endReplay()
      }
    },
    project() {
      if (start === 0) throw new Error('The history has no start event')
      const ended = closed && closed.how !== 'CONTINUED_AS_NEW' ? closed : undefined
      const reported = new Set(changed)
      if (ended) for (const row of running) reported.add(row)
      const nodes = [...reported].map((row): ProjectedNode => {
        if (!running.has(row)) return row
        const open = { ...row, output: null, handle: null }
        return ended ? { ...open, status: 'CANCELLED', completedAt: ended.time } : open
      })
      return {
        runId,
        position,
        lastEventId,
        status: ended ? closeStatus(ended) : 'RUNNING',
        startedAt: start,
        completedAt: ended?.time ?? null,
        errorMessage: ended ? closeMessage(ended) : null,
        since,
        began: count > 0,
        recordCount: count,
        nodes: nodes.sort((a, b) => a.position - b.position),
      }
    },
    confirm,
  }
}

function notedIn({ notes }: Pick<ProjectedNode, 'notes'>): Pick<ProjectedNode, 'notes'> {
  return notes ? { notes } : {}
}
