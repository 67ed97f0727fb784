import type { Info } from '@temporalio/activity'
import { hasRunOut } from '../../db/operation/memoryends.ts'
import type { ActivityDeps } from '../deps.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'

/** How many workers may run out of memory while they carry out a node, before that counts as its failure. */
const MAX_MEMORY_ENDS = 3

/**
 * What the attempts of a node tell the next one in their heartbeats: how often the node itself has failed, how
 * many attempts have only returned their slot, how many workers ran out of memory under it, and which process
 * is at it now.
 */
export type AttemptNotes = {
  failures: number
  returned: number
  memoryEnds: number
  process?: string | undefined
}

export function readNotes({ heartbeatDetails }: Pick<Info, 'heartbeatDetails'>): AttemptNotes {
  const { failures, returned, memoryEnds, process } = (heartbeatDetails ?? {}) as Record<string, unknown>
  const count = (value: unknown) => (typeof value === 'number' ? value : 0)
  return {
    failures: count(failures),
    returned: count(returned),
    memoryEnds: count(memoryEnds),
    process: typeof process === 'string' ? process : undefined,
  }
}

/**
 * The notes of an attempt that begins now, from those of the one before: if that one's process has run out of
 * memory since, it is counted. Throws a NodeFailure if that has happened too often; however many workers are
 * lost in any other way, that is no failure of the node.
 */
export async function beginNotes(
  { store, processId }: Pick<ActivityDeps, 'store' | 'processId'>,
  { memoryEnds, process, ...counts }: AttemptNotes,
): Promise<AttemptNotes> {
  const ranOut = process !== undefined && process !== processId && (await hasRunOut(store, process))
  const now = { ...counts, memoryEnds: memoryEnds + (ranOut ? 1 : 0), process: processId }
  if (now.memoryEnds < MAX_MEMORY_ENDS) return now
  const message = `${now.memoryEnds} workers ran out of memory while they carried out this node`
  throw new NodeFailure(message, { type: 'WorkerLost' })
}
