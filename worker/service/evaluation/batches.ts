import { setTimeout as sleep } from 'node:timers/promises'
import { type BatchDeps, carryOutCase, failCase } from '../../../activities/evaluation/batchcase.ts'
import { createBatchJudge } from '../../../activities/evaluation/batchjudge.ts'
import { createInjectionCheck } from '../../../activities/evaluation/injections.ts'
import { composite, type JudgeDeps } from '../../../activities/evaluation/judge.ts'
import { createDetectorPool } from '../../../activities/guardrails/pool.ts'
import { isDatabaseAway } from '../../../db/connection.ts'
import { type ClaimedCase, claimCase, keepCase, leaveCase } from '../../../db/evaluation/batches/cases.ts'
import { purgeBatches } from '../../../db/evaluation/batches/purge.ts'

/** How many cases a process works on at once, and how many of them for one team. */
const AT_ONCE = 16
const OF_TEAM = 8
const EVERY_MS = 500
/** A case of a process that is gone is taken over after so long. */
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
  const stopping = new AbortController()
  const { signal } = stopping
  const busy = new Map<string, { teamId: string; done: Promise<void> }>()
  let wake = () => {}
  let purgedAt = Number.NEGATIVE_INFINITY

  async function work(claimed: ClaimedCase): Promise<void> {
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
      log.warn(
        { error: name, batch: claimed.runId, case: claimed.id },
        'a case of a batch could not be judged',
      )
      const isHopeless = !isDatabaseAway(error) && Date.now() - claimed.startedAt.getTime() > PATIENCE_MS
      const end = isHopeless
        ? failCase(store, claimed, 'The case could not be worked on')
        : leaveCase(store, claimed, REST_MS)
      await Promise.resolve(end).catch(() => {})
    } finally {
      clearInterval(keeping)
    }
  }

  function listFull(): string[] {
    const teams = Map.groupBy(busy.values(), ({ teamId }) => teamId)
    return [...teams].filter(([, cases]) => cases.length >= OF_TEAM).map(([teamId]) => teamId)
  }

  async function claimAll(): Promise<void> {
    while (busy.size < AT_ONCE && !signal.aborted) {
      const claimed = await claimCase(store, leaseMs, listFull())
      if (!claimed) return
      const done = work(claimed).finally(() => {
        busy.delete(claimed.claim)
        wake()
      })
      busy.set(claimed.claim, { teamId: claimed.teamId, done })
    }
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      const woken = new Promise<void>((resolve) => {
        wake = resolve
      })
      await claimAll().catch((error) => report(error, 'the cases of batches that are due could not be read'))
      if (performance.now() - purgedAt > PURGE_EVERY_MS) {
        purgedAt = performance.now()
        await purgeBatches(store, signal).catch((error) => report(error, 'old batches could not be removed'))
      }
      await Promise.race([woken, sleep(everyMs, undefined, { signal, ref: false }).catch(() => {})])
    }
  }

  function report(error: unknown, what: string): void {
    if (!signal.aborted)
      log[isDatabaseAway(error) ? 'warn' : 'error']({ err: error }, `${what}; it is tried again`)
  }

  const running = run()
  return async () => {
    stopping.abort()
    await running
    await Promise.all([...busy.values()].map(({ done }) => done))
  }
}
