import type { Info } from '@temporalio/activity'
import { holdsLease } from '../../../db/operation/leases.ts'
import { hasRunOut } from '../../../db/operation/memoryends.ts'
import type { ActivityDeps } from '../../deps.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import { type KeptAnswer, readKept } from './answers.ts'

/** How many workers may run out of memory while they carry out a node, before that counts as its failure. */
const MAX_MEMORY_ENDS = 3

/** When an attempt comes again whose call another process may have under way. */
const COME_AGAIN_MS = 500

/**
 * What the attempts of a node tell the next one in their heartbeats: how often the node itself has failed, how
 * many attempts have only returned their slot, how many workers ran out of memory under it, and which process
 * is at it now. `answer` is what the node said if it could not be stored.
 */
export type AttemptNotes = {
  failures: number
  returned: number
  memoryEnds: number
  process?: string | undefined
  answer?: KeptAnswer | undefined
}

/** The attempt gives itself back, because another process that is alive was at the node last, and may still be. */
export class AtItElsewhere extends Error {
  readonly afterMs = COME_AGAIN_MS

  constructor() {
    super('Another process is at this node')
  }
}

export function readNotes({ heartbeatDetails }: Pick<Info, 'heartbeatDetails'>): AttemptNotes {
  const { failures, returned, memoryEnds, process, answer } = (heartbeatDetails ?? {}) as Record<
    string,
    unknown
  >
  const count = (value: unknown) => (typeof value === 'number' ? value : 0)
  return {
    failures: count(failures),
    returned: count(returned),
    memoryEnds: count(memoryEnds),
    process: typeof process === 'string' ? process : undefined,
    answer: readKept(answer),
  }
}

/**
 * The notes of an attempt that begins now, from those of the one before: if that one's process has run out of
 * memory since, it is counted. Undefined while that process is alive and has not noted its end. Throws a
 * NodeFailure if too many processes have run out of memory; however many workers are lost in any other way, that
 * is no failure of the node.
 */
export async function beginNotes(
  { store, processId, knowsLost }: Pick<ActivityDeps, 'store' | 'processId' | 'knowsLost'>,
  { memoryEnds, process, ...others }: AttemptNotes,
  { retryPolicy }: Pick<Info, 'retryPolicy'>,
): Promise<AttemptNotes | undefined> {
  const elsewhere = process !== undefined && process !== processId
  // A run of the release before has attempts to spare, but not without end.
  const isOld = (retryPolicy?.maximumAttempts ?? 0) > 0
  if (elsewhere && !isOld && (await holdsLease(store, process, knowsLost()))) return undefined
  const ranOut = elsewhere && (await hasRunOut(store, process))
  const now = { ...others, memoryEnds: memoryEnds + (ranOut ? 1 : 0), process: processId }
  if (now.memoryEnds < MAX_MEMORY_ENDS) return now
  const message = `${now.memoryEnds} workers ran out of memory while they carried out this node`
  throw new NodeFailure(message, { type: 'WorkerLost' })
}
