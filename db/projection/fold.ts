import { mergeNodeNotes } from '../../workflows/notes.ts'
import { beginAgent, moveAgent, taskOf } from '../../workflows/run/agents.ts'
import type { Carried } from '../../workflows/run/messages.ts'
import type { Agent, PlanNode } from '../../workflows/run/plan.ts'
import type { LoopItems, NodeError, NodeRecord } from '../../workflows/run/records.ts'
import { joinStep, readActivityId, settleFailure, stepKey } from '../../workflows/run/walk.ts'
import { openRecord, type ProjectedNode, type Projection, weigh } from '../records/projection.ts'
import { closeMessage, closeStatus, type HistoryEvent, notedIn, type RunHistory } from './history.ts'
import { keyOf, listCarried, type Progress, type RecordPlace, UNKNOWN_END, WHOLE } from './progress.ts'

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
  /** The agents that are under way, by the keys of their records. */
  const agents = new Map<string, Agent>()
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

  function open(
    nodeId: string,
    iteration: string,
    startedAt: number,
    { step, tool }: Pick<ProjectedNode, 'step' | 'tool'> = WHOLE,
  ): ProjectedNode | undefined {
    const node = plan.get(nodeId)
    const key = stepKey(nodeId, joinStep(iteration, step))
    if (!node || node.silent || stored.has(key)) return undefined
    let row = rows.get(key)
    if (row && !running.has(row)) return undefined
    if (!row) {
      row = openRecord(executionId, node, { iteration, step, tool, startedAt, position: count++ })
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
    if (row.step !== null) return
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
    if (status === 'LOOPING') takeLoop(row, record.loop)
    if (status === 'WAITING') row.waitingUntil = record.until
    if (status === 'LOOPING' || status === 'WAITING') held += weigh(row)
    if (status === 'SUCCESS' || status === 'FAILED') {
      const errorMessage = record.status === 'FAILED' ? record.error.message : null
      end(row, within(record.completedAt), { status, errorMessage })
    }
  }

  function takeLoop(row: ProjectedNode, loop: LoopItems | null): void {
    row.loop = loop
    row.itemCount = loop && plan.get(row.nodeId)?.loop?.mode === 'each' ? loop.count : null
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
    const { open: opened, settled, agents: under } = listCarried(carried)
    for (const { nodeId, iteration, agent } of under) agents.set(stepKey(nodeId, iteration), agent)
    const left = new Map(progress?.open.map((row) => [keyOf(row), row]))
    for (const row of running) left.set(keyOf(row), row)
    const take = (one: RecordPlace): ProjectedNode | undefined => {
      const was = left.get(keyOf(one))
      const row = open(one.nodeId, one.iteration, at, one)
      if (!row || !was || row === was) return row
      count--
      changed.delete(row)
      return Object.assign(row, was)
    }
    for (const one of opened) {
      const { loop, output, handle, waitingUntil } = one
      const key = keyOf(one)
      if (known && !left.has(key)) stored.add(key)
      const row = take(one)
      left.delete(key)
      if (!row) continue
      Object.assign(row, { output, handle, waitingUntil })
      takeLoop(row, row.loop ?? loop)
    }
    for (const { nodeId, iteration, agent } of under) {
      const row = rows.get(stepKey(nodeId, iteration))
      if (row) row.agent = agent
    }
    if (known) return
    // The history that tells how these ended is gone. What the run carries are the outputs that it needs.
    for (const [key, one] of left) {
      const row = take(one)
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
      const row = openScheduled(event.activityId, event.time)
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

  /** The record of an activity; for a step, the agent's own is opened with the first. */
  function openScheduled(activityId: string, at: number): ProjectedNode | undefined {
    const { nodeId, iteration, step } = readActivityId(activityId)
    const own = open(nodeId, iteration, at)
    if (step === null) return own
    const key = stepKey(nodeId, iteration)
    if (!agents.has(key) && own) takeSteps(own, at)
    const agent = agents.get(key)
    if (!agent) return undefined
    return open(nodeId, iteration, at, { step, tool: taskOf(agent)?.tool ?? null })
  }

  /** Begins an agent; of one that goes on where it stopped, the steps before get their records now. */
  function takeSteps(own: ProjectedNode, at: number): void {
    const { nodeId, iteration } = own
    const { begun } = plan.get(nodeId)!
    for (const [index, { tool, input, output, errorMessage }] of (begun?.steps ?? []).entries()) {
      const row = open(nodeId, iteration, at, { step: index + 1, tool })
      if (!row) continue
      row.agent = { input }
      row.givenBy = begun!.from
      end(row, at, { status: errorMessage === null ? 'SUCCESS' : 'FAILED', output, errorMessage })
    }
    own.agent = beginAgent({ begun })
    agents.set(keyOf(own), own.agent)
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
    if (row.step !== null) settleStep(row, event)
    else if (event.kind === 'failed') fail(row, event.time, event.error, notedIn(event))
    else {
      const { output, handle } = event.result
      end(row, event.time, { status: 'SUCCESS', output, handle, ...notedIn(event.result) })
    }
  }

  /** Settles a step of an agent, unless it waits, and with it the agent's own record if that is over. */
  function settleStep(
    row: ProjectedNode,
    event: Extract<HistoryEvent, { kind: 'completed' | 'failed' }>,
  ): void {
    const key = stepKey(row.nodeId, row.iteration)
    // It may be stored already, while events are read again.
    const own = rows.get(key)
    const { time: at } = event
    changed.add(row)
    if (event.kind === 'failed') {
      end(row, at, { status: 'FAILED', errorMessage: event.error.message, ...notedIn(event) })
    } else {
      const { record, pause } = event.result.agent!
      row.agent = { input: record.input }
      if (pause) row.waitingUntil = pause.until
      else end(row, at, { status: 'SUCCESS', output: record.output, ...notedIn(event.result) })
    }
    const outcome = event.kind === 'failed' ? { error: event.error } : event.result
    const next = moveAgent(agents.get(key)!, outcome)
    if ('agent' in next) agents.set(key, next.agent)
    else agents.delete(key)
    if (!own || !running.has(own)) return
    changed.add(own)
    if ('agent' in next) {
      own.agent = next.agent
      return
    }
    if (next.ended.status === 'SUCCESS') own.agent = null
    if (next.ended.status === 'FAILED') fail(own, at, next.ended.error, {})
    else end(own, at, next.ended)
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
