import type { Logger } from 'pino'
import type { Outsides } from '../../../activities/egress/outside.ts'
import { evaluateRun } from '../../../activities/evaluation/evaluate.ts'
import { createInjectionCheck } from '../../../activities/evaluation/injections.ts'
import type { JudgeDeps } from '../../../activities/evaluation/judge.ts'
import { createDetectorPool } from '../../../activities/guardrails/pool.ts'
import { claimEvaluations, purgeEvaluations } from '../../../db/evaluation/claims.ts'
import type { Store } from '../../../db/scope.ts'
import { startRepeating } from '../repeating.ts'

/** The number of runs that a process judges at once, and of one team among them. */
const OF_ALL = 64
const OF_TEAM = 4
const EVERY_MS = 1_000
const PURGE_EVERY_MS = 600_000

/** How a process judges; tests give other times. */
type JudgingTimes = Partial<Pick<JudgeDeps, 'limitMs' | 'restMs'>> & { everyMs?: number }

/**
 * Judges the runs that were sampled. A team whose judge is slow waits for itself only. Returns the function that ends it:
 * what it is at is given back.
 */
export function startJudging(
  { store, outside, log }: { store: Store; outside: Outsides; log: Logger },
  { everyMs = EVERY_MS, ...times }: JudgingTimes = {},
): () => Promise<void> {
  const pool = createDetectorPool({ threads: 2 })
  const deps: JudgeDeps = { store, outside, log, isInjection: createInjectionCheck(pool), ...times }
  const stopping = new AbortController()
  const underWay = new Map<string, Set<Promise<void>>>()
  let purgedAt = 0

  const count = () => [...underWay.values()].reduce((sum, { size }) => sum + size, 0)

  async function fill(): Promise<void> {
    if (Date.now() - purgedAt > PURGE_EVERY_MS) {
      purgedAt = Date.now()
      await purgeEvaluations(store)
    }
    const free = OF_ALL - count()
    if (free <= 0) return
    const busy = [...underWay.keys()]
    const most = Math.min(OF_TEAM, free)
    const claims = await claimEvaluations(store, {
      most,
      teams: Math.max(1, Math.floor(free / OF_TEAM)),
      busy,
    })
    for (const claim of claims) begin(claim.teamId, evaluateRun(deps, claim, stopping.signal))
  }

  /** A team gets its next runs once all of those that it has are judged. */
  function begin(teamId: string, work: Promise<void>): void {
    const works = underWay.get(teamId) ?? new Set()
    underWay.set(teamId, works)
    works.add(work)
    void work.finally(() => {
      works.delete(work)
      if (works.size === 0) underWay.delete(teamId)
    })
  }

  const endFilling = startRepeating({ what: 'the runs to be judged', everyMs, log, run: fill })
  return async () => {
    stopping.abort(new Error('The service is stopping'))
    await endFilling()
    await Promise.all([...underWay.values()].flatMap((works) => [...works]))
    await pool.close()
  }
}
