import { mergeNodeNotes } from '../../../workflows/notes.ts'
import type { LoopItems, NodeRecord } from '../../../workflows/run/records.ts'
import { stepKey } from '../../../workflows/run/walk.ts'
import { type ProjectedNode, weigh } from '../records/projection.ts'
import { endRow, type Folding, openRow } from './folding.ts'

/** Reads one record of a segment, of which the event at `toldAt` tells. */
export function readNodeRecord(folding: Folding, record: NodeRecord, toldAt: number): void {
  const { status } = record
  if (status === 'TURNED') noteTurn(folding, record)
  if (status === 'FOLDED' || status === 'TURNED') return
  // A worker's clock may differ from Temporal's, so times are moved between the run's start and this event.
  const within = (ms: number) => Math.max(folding.start, Math.min(ms, toldAt))
  const row = openRow(folding, record.nodeId, record.iteration, within(record.startedAt))
  if (!row) return
  row.output = ('output' in record && record.output) || null
  row.handle = record.handle
  if (record.notes) row.notes = mergeNodeNotes(row.notes, record.notes)
  if (status === 'LOOPING') takeLoop(folding, row, record.loop)
  if (status === 'WAITING') row.waitingUntil = record.until
  if (status === 'LOOPING' || status === 'WAITING') folding.held += weigh(row)
  if (status === 'SUCCESS' || status === 'FAILED') {
    const errorMessage = record.status === 'FAILED' ? record.error.message : null
    endRow(folding, row, within(record.completedAt), { status, errorMessage })
  }
}

export function takeLoop({ plan }: Folding, row: ProjectedNode, loop: LoopItems | null): void {
  row.loop = loop
  row.itemCount = loop && plan.get(row.nodeId)?.loop?.mode === 'each' ? loop.count : null
}

/** The notes that were made when REPEAT's condition was tested belong to the loop. */
function noteTurn({ rows, running, changed }: Folding, { nodeId, iteration, notes }: NodeRecord): void {
  const row = rows.get(stepKey(nodeId, iteration))
  if (!notes || !row || !running.has(row)) return
  row.notes = mergeNodeNotes(row.notes, notes)
  changed.add(row)
}
