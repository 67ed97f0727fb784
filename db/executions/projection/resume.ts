import type { Carried } from '../../../workflows/run/messages.ts'
import { stepKey } from '../../../workflows/run/walk.ts'
import type { ProjectedNode } from '../records/projection.ts'
import { endRow, type Folding, openRow } from './folding.ts'
import type { HistoryEvent } from './history.ts'
import { keyOf, listCarried, type RecordPlace, UNKNOWN_END } from './progress.ts'
import { takeLoop } from './segments.ts'

/** Begins a run of the chain: takes its place, and what it carries if the run before was not read. */
export function beginRun(
  folding: Folding,
  { input, continuedFrom, time }: Extract<HistoryEvent, { kind: 'started' }>,
): void {
  const { progress } = folding
  for (const node of input?.plan.nodes ?? []) folding.plan.set(node.id, node)
  const { carried } = input ?? {}
  const known = progress?.runId === folding.runId
  const first = folding.position < 0
  folding.position = carried?.chain ?? findPlace(folding, carried, known)
  if (first) folding.start = carried ? (progress?.startedAt ?? carried.startedAt) : time
  if (first && carried && !known && progress) {
    folding.count = progress.recordCount
    folding.since = { position: progress.position, lastEventId: progress.lastEventId }
  }
  if (carried && (first || continuedFrom !== folding.before)) resume(folding, carried, known && first, time)
  if (first && known) folding.replayed = []
}

/** The place of a run that does not say it: behind the run that was read before, or that the rows know. */
function findPlace({ position, progress }: Folding, carried: Carried | undefined, known: boolean): number {
  if (position >= 0) return position + 1
  return carried && progress ? progress.position + (known ? 0 : 1) : 0
}

/** Takes up what was open when the run began, whose history before is not read. */
function resume(folding: Folding, carried: Carried, known: boolean, at: number): void {
  const { rows, stored, agents } = folding
  const { open: opened, settled, agents: under } = listCarried(carried)
  for (const { nodeId, iteration, agent } of under) agents.set(stepKey(nodeId, iteration), agent)
  const left = listLeft(folding)
  for (const one of opened) {
    const { loop, output, handle, waitingUntil } = one
    const key = keyOf(one)
    if (known && !left.has(key)) stored.add(key)
    const row = takeRow(folding, left, one, at)
    left.delete(key)
    if (!row) continue
    Object.assign(row, { output, handle, waitingUntil })
    takeLoop(folding, row, row.loop ?? loop)
  }
  for (const { nodeId, iteration, agent } of under) {
    const row = rows.get(stepKey(nodeId, iteration))
    if (row) row.agent = agent
  }
  if (!known) settleLeft(folding, left, settled, at)
}

type Left = ReturnType<typeof listLeft>

/** The records that were open by the stored rows, and by the parts that were read before, by key. */
function listLeft({ progress, running }: Folding) {
  const left = new Map(progress?.open.map((row) => [keyOf(row), row]))
  for (const row of running) left.set(keyOf(row), row)
  return left
}

/** Opens a record as it was left. */
function takeRow(folding: Folding, left: Left, one: RecordPlace, at: number): ProjectedNode | undefined {
  const was = left.get(keyOf(one))
  const row = openRow(folding, one.nodeId, one.iteration, at, one)
  if (!row || !was || row === was) return row
  folding.count--
  folding.changed.delete(row)
  return Object.assign(row, was)
}

/** The history that tells how these ended is gone. What the run carries are the outputs that it needs. */
function settleLeft(
  folding: Folding,
  left: Left,
  settled: ReturnType<typeof listCarried>['settled'],
  at: number,
): void {
  for (const [key, one] of left) {
    const row = takeRow(folding, left, one, at)
    const how = settled.get(key)
    const unknown = { status: 'CANCELLED', output: null, handle: null, errorMessage: UNKNOWN_END } as const
    if (row) endRow(folding, row, at, how ? { status: 'SUCCESS', ...how } : unknown)
  }
  for (const [key, how] of settled) {
    const [nodeId = '', iteration = ''] = key.split('#')
    if (folding.progress?.settled.includes(key)) continue
    const row = openRow(folding, nodeId, iteration, at)
    if (row) endRow(folding, row, at, { status: 'SUCCESS', ...how })
  }
}
