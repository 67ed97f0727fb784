import { joinStep } from '../../../workflows/run/walk.ts'
import { cleanText } from '../../text.ts'
import type { ProjectedNode } from '../records/projection.ts'

/** A record as it is written: its values are JSON, its times ISO 8601, and its iteration has the step behind. */
export type RecordRow = Omit<
  ProjectedNode,
  'startedAt' | 'completedAt' | 'waitingUntil' | 'output' | 'loop' | 'agent' | 'notes'
> & {
  executionId: string
  startedAt: string
  completedAt: string | null
  waitingUntil: string | null
  output: string | null
  loop: string | null
  agent: string | null
  notes: string | null
}

/** The most that one statement writes: the thread and the memory are held no longer than that takes. */
const MAX_ROWS = 1_000
const MAX_CHARS = 4_000_000

/** Makes rows of records, a piece at a time, when the one before has been written. */
export function* cutPieces(
  executionId: string,
  nodes: ProjectedNode[],
  values: boolean,
): Generator<RecordRow[], undefined> {
  let piece: RecordRow[] = []
  let chars = 0
  for (const node of nodes) {
    const row = makeRow(executionId, node, values)
    const { output, loop, agent, notes, errorMessage } = row
    const size = [output, loop, agent, notes, errorMessage].reduce(
      (sum, text) => sum + (text?.length ?? 0),
      0,
    )
    if (piece.length >= MAX_ROWS || (piece.length > 0 && chars + size > MAX_CHARS)) {
      yield piece
      piece = []
      chars = 0
    }
    piece.push(row)
    chars += size
  }
  if (piece.length > 0) yield piece
}

function makeRow(executionId: string, node: ProjectedNode, values: boolean): RecordRow {
  return {
    ...node,
    executionId,
    iteration: joinStep(node.iteration, node.step),
    tool: node.tool === null ? null : cleanText(node.tool),
    nodeName: cleanText(node.nodeName),
    startedAt: new Date(node.startedAt).toISOString(),
    completedAt: node.completedAt === null ? null : new Date(node.completedAt).toISOString(),
    waitingUntil: node.waitingUntil === null ? null : new Date(node.waitingUntil).toISOString(),
    output: values && node.output ? JSON.stringify(node.output) : null,
    loop: node.loop ? JSON.stringify(node.loop) : null,
    agent: values && node.agent ? JSON.stringify(node.agent) : null,
    notes: node.notes ? JSON.stringify(node.notes) : null,
    errorMessage: node.errorMessage === null ? null : cleanText(node.errorMessage),
  }
}
