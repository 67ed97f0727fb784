import type { Logger } from 'pino'
import type { SemanticPool } from '../../../activities/guardrails/semantic/similar.ts'
import { sampleDrift } from '../../../activities/monitoring/shifts/drift/sample.ts'
import { sampleSentiment } from '../../../activities/monitoring/shifts/sentiment/sample.ts'
import {
  claimSamplingSlot,
  finishSamplingSlot,
  leaveSamplingSlot,
  type SamplingKind,
  type SamplingSlot,
} from '../../../db/monitoring/shifts/cursors.ts'
import { purgeSamples } from '../../../db/monitoring/shifts/purge.ts'
import type { Store } from '../../../db/scope.ts'
import { startLoop } from '../queue.ts'

/** The dependencies of the sampling of texts, among those of all jobs. */
export type SamplingDeps = { store: Store; semantic: SemanticPool; log: Logger }

const EVERY_MS = 15_000
const PURGE_EVERY_MS = 3_600_000
/** How many slots are sampled before others have their turn. */
const SLOTS = 20

/** Samples what executions are about and how users' messages sound, of the teams that watch over it. */
export function startSampling(deps: SamplingDeps): () => Promise<void> {
  const { store, log } = deps
  const loops = [
    startLoop({
      what: 'the executions that are to be sampled',
      everyMs: EVERY_MS,
      log,
      run: (signal) => sampleDue(deps, 'DRIFT', signal),
    }),
    startLoop({
      what: 'the messages whose sentiment is to be scored',
      everyMs: EVERY_MS,
      log,
      run: (signal) => sampleDue(deps, 'SENTIMENT', signal),
    }),
    startLoop({
      what: 'the samples that are past their time',
      everyMs: PURGE_EVERY_MS,
      log,
      run: (signal) => purgeSamples(store, signal),
    }),
  ]
  return async () => {
    await Promise.all(loops.map((loop) => loop.stop()))
  }
}

/** Samples slots that are due, SLOTS at most. Returns how many it has done. */
export async function sampleDue(
  deps: SamplingDeps,
  kind: SamplingKind,
  signal: AbortSignal,
): Promise<number> {
  for (let done = 0; done < SLOTS; done++) {
    signal.throwIfAborted()
    const slot = await claimSamplingSlot(deps.store, kind)
    if (!slot) return done
    try {
      await sampleSlot(deps, slot, signal)
    } catch (error) {
      await leaveSamplingSlot(deps.store, slot).catch(() => {})
      throw error
    }
    await finishSamplingSlot(deps.store, slot)
  }
  return SLOTS
}

function sampleSlot(
  { store, semantic, log }: SamplingDeps,
  slot: SamplingSlot,
  signal: AbortSignal,
): Promise<void> {
  if (slot.kind === 'SENTIMENT') return sampleSentiment(store, slot, signal)
  const onFault = (executionId: string, error: unknown) =>
    log.warn({ err: error, executionId }, 'what an execution was about could not be sampled; it is left out')
  return sampleDrift({ store, semantic, onFault }, slot, signal)
}
