import { type BatchDeps, carryOutCase, failCase } from '../../../activities/evaluation/batchcase.ts'
import { createBatchJudge } from '../../../activities/evaluation/batchjudge.ts'
import { createInjectionCheck } from '../../../activities/evaluation/injections.ts'
import { composite, type JudgeDeps } from '../../../activities/evaluation/judge.ts'
import { createDetectorPool } from '../../../activities/guardrails/pool.ts'
import { isDatabaseAway } from '../../../db/connection.ts'
import { type ClaimedCase, claimCase, keepCase, leaveCase } from '../../../db/evaluation/batches/cases.ts'
import { purgeBatches } from '../../../db/evaluation/batches/purge.ts'
import { startLoop, startQueue } from '../queue.ts'

/** How many cases a process works on at once, and how many of them for one team. */
const AT_ONCE = 16
const OF_TEAM = 8
const EVERY_MS = 500
/** A case is taken over this long after the last sign of life of its process. */
const LEASE_MS = 30_000
const PURGE_EVERY_MS = 600_000
/** How long a case rests that could not be worked on. */
const REST_MS = 5_000
/** For how long it is tried. */
const PATIENCE_MS = 600_000

/** Works on the cases of all batches, with the judges that their teams have named. */
export function startJudgedBatches(given: Omit<JudgeDeps, 'isInjection'>): () => Promise<void> {
  const pool = createDetectorPool({ threads: 2 })
  const judge = createBatchJudge({ ...given, isInjection: createInjectionCheck(pool) })
  const end = startBatches({ store: given.store, log: given.log, judge, compose: composite })
  return async () => {
    await end()
    await pool.close()
  }
}

/**
 * Works on the cases of all batches. Any number of processes may do so: a case is worked on by one at a time. Returns the
 * function that ends it: what is under way is broken off, and another process goes on with it.
 */
export function startBatches(
  given: Omit<BatchDeps, 'leaseMs'>,
  { everyMs = EVERY_MS, leaseMs = LEASE_MS } = {},
): () => Promise<void> {
  const deps: BatchDeps = { ...given, leaseMs }
  const { store, log } = deps
  const queue = startQueue({
    what: 'the cases of batches that are due',
    everyMs,
    atOnce: AT_ONCE,
    ofTeam: OF_TEAM,
    log,
    async claim({ full }) {
      const claimed = await claimCase(store, leaseMs, full)
      return claimed ? [claimed] : []
    },
    work: (claimed, signal) => workOnCase(deps, claimed, signal),
    // A batch has a number of cases at once of its own, and a team one for all processes.
    freesOthers: true,
  })
  const purging = startLoop({
    what: 'the batches that are past their time',
    everyMs: PURGE_EVERY_MS,
    log,
    run: (signal) => purgeBatches(store, signal),
  })
  return async () => {
    await Promise.all([queue.stop(), purging.stop()])
  }
}

async function workOnCase(deps: BatchDeps, claimed: ClaimedCase, signal: AbortSignal): Promise<void> {
  const { store, log, leaseMs } = deps
  // A case that has gone to another process, or whose batch has ended, is broken off too.
  const lost = new AbortController()
  const keeping = setInterval(() => {
    keepCase(store, claimed, leaseMs).then(
      (kept) => kept || lost.abort(),
      () => {},
    )
  }, leaseMs / 3)
  try {
    await carryOutCase(deps, claimed, AbortSignal.any([signal, lost.signal]))
  } catch (error) {
    if (signal.aborted) return
    // It may quote what the case is about.
    const name = error instanceof Error ? error.name : typeof error
    log.warn({ error: name, batch: claimed.runId, case: claimed.id }, 'a case of a batch could not be judged')
    const isHopeless = !isDatabaseAway(error) && Date.now() - claimed.startedAt.getTime() > PATIENCE_MS
    const end = isHopeless
      ? failCase(store, claimed, 'The case could not be worked on')
      : leaveCase(store, claimed, REST_MS)
    await Promise.resolve(end).catch(() => {})
  } finally {
    clearInterval(keeping)
  }
}
