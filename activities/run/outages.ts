import { LRUCache } from 'lru-cache'
import { perDatabase } from '../../db/cache.ts'
import type { Store } from '../../db/scope.ts'
import type { NodeFailure } from '../nodes/kit/failure.ts'
import { internalFailure, judgeWork } from './failures.ts'

/** How long an unknown error may last before it counts as one that does not pass. */
const PATIENCE_MS = 10 * 60_000

/**
 * Repeats work that only reads and stores values: during an outage until the attempt is cancelled, after an unknown
 * error for `patienceMs`. Then, and at once for an error that cannot pass, it throws a NodeFailure (InternalError). A
 * failure of the node or of the run is thrown at once.
 */
export async function retryOutages<T>(
  signal: AbortSignal,
  work: () => Promise<T>,
  { patienceMs = PATIENCE_MS }: { patienceMs?: number } = {},
): Promise<T> {
  let doubtedAt: number | undefined
  for (let delay = 200; ; delay = Math.min(2_000, delay * 2)) {
    try {
      return await work()
    } catch (error) {
      const judged = judgeWork(error)
      if (signal.aborted || judged === 'own') throw error
      if (judged === 'final') throw internalFailure(error)
      if (judged === 'away') doubtedAt = undefined
      else {
        doubtedAt ??= performance.now()
        if (performance.now() - doubtedAt >= patienceMs) throw internalFailure(error)
      }
      await new Promise((resolve) => setTimeout(resolve, delay))
    }
  }
}

/** The time since which each step has failed with unknown errors, in milliseconds of performance.now(). */
const doubtsOf = perDatabase(() => new LRUCache<string, number>({ max: 10_000, ttl: 60 * 60_000 }))

/**
 * The same for a step of a segment, which Temporal repeats: returns the failure that `error` has become, or
 * throws the error as long as it may pass. `step` names the step among those of all executions.
 */
export function giveUpStep(
  { db }: Pick<Store, 'db'>,
  step: string,
  error: unknown,
  patienceMs = PATIENCE_MS,
): NodeFailure {
  const judged = judgeWork(error)
  if (judged === 'final') return internalFailure(error)
  if (judged !== 'unknown') throw error
  const doubts = doubtsOf(db)
  const now = performance.now()
  const since = doubts.get(step) ?? now
  doubts.set(step, since)
  if (now - since < patienceMs) throw error
  doubts.delete(step)
  return internalFailure(error)
}
