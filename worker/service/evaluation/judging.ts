import type { Logger } from 'pino'
import type { Outsides } from '../../../activities/egress/outside.ts'
import { evaluateRun } from '../../../activities/evaluation/evaluate.ts'
import { createInjectionCheck } from '../../../activities/evaluation/injections.ts'
import type { JudgeDeps } from '../../../activities/evaluation/judge.ts'
import { createDetectorPool } from '../../../activities/guardrails/pool.ts'
import { claimEvaluations, purgeEvaluations } from '../../../db/evaluation/claims.ts'
import type { Store } from '../../../db/scope.ts'
import { startLoop, startQueue } from '../queue.ts'

/** How many runs a process judges at once, and how many of one team. */
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
  const queue = startQueue({
    what: 'the runs to be judged',
    everyMs,
    atOnce: OF_ALL,
    log,
    // A team gets its next runs once all of those that it has are judged.
    claim: ({ limit, teams }) =>
      claimEvaluations(store, {
        most: Math.min(OF_TEAM, limit),
        teams: Math.max(1, Math.floor(limit / OF_TEAM)),
        busy: [...teams.keys()],
      }),
    work: (claim, signal) => evaluateRun(deps, claim, signal),
  })
  const purging = startLoop({
    what: 'the judgements that are past their time',
    everyMs: PURGE_EVERY_MS,
    log,
    run: () => purgeEvaluations(store),
  })
  return async () => {
    await Promise.all([queue.stop(), purging.stop()])
    await pool.close()
  }
}
