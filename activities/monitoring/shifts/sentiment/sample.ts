import type { SamplingSlot } from '../../../../db/monitoring/shifts/cursors.ts'
import { keepSentiments, listSaid } from '../../../../db/monitoring/shifts/sentimentscores.ts'
import type { Store } from '../../../../db/scope.ts'
import { takeTurn } from '../../../../workflows/turns.ts'
import { MOST_SAID, scoreSentiment } from './score.ts'

/** Scores what users said in a slot, and keeps only the scores. Rejects if `signal` is aborted. */
export async function sampleSentiment(store: Store, slot: SamplingSlot, signal: AbortSignal): Promise<void> {
  const scores = []
  for (const { text, ...message } of await listSaid(store, slot, MOST_SAID)) {
    signal.throwIfAborted()
    await takeTurn(slot.teamId)
    scores.push({ ...message, score: scoreSentiment(text) })
  }
  if (scores.length > 0) await keepSentiments(store, scores)
}
