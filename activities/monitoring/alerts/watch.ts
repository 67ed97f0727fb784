import type { Logger } from 'pino'
import { noteWindow, type WindowFindings } from '../../../db/monitoring/alerts/noting.ts'
import {
  arrangeWatches,
  type ClaimedWindow,
  claimWindow,
  releaseWindow,
} from '../../../db/monitoring/alerts/watches.ts'
import { loadMonitoringConfig } from '../../../db/monitoring/config.ts'
import type { Store } from '../../../db/scope.ts'
import { ALERT_DETECTORS, isWanted } from './detectors.ts'

/** `now` is only for tests: the time by the database is meant. */
export type WatchDeps = { store: Store; log: Logger; detectors?: typeof ALERT_DETECTORS; now?: () => Date }

/** For how long a process holds an hour, and how long it works on it at most. */
const LEASE_MS = 600_000
const LONGEST_MS = 480_000
/** What fails so often in an hour is left out of it. */
const MOST_ATTEMPTS = 3
const REST_MS = 20_000

/**
 * Evaluates the hours of teams that are due, until there are none. Any number of processes may do so: an hour is
 * evaluated by one at a time, and what was found is written once.
 */
export async function watchTeams(deps: WatchDeps, signal: AbortSignal): Promise<void> {
  const { store, now } = deps
  await arrangeWatches(store, now?.())
  while (!signal.aborted) {
    const window = await claimWindow(store, LEASE_MS, now?.())
    if (!window) return
    await evaluateWindow(deps, window, signal)
  }
}

/**
 * Evaluates an hour that this process holds. A detector that fails is asked again later; after three attempts it is
 * left out.
 */
async function evaluateWindow(deps: WatchDeps, window: ClaimedWindow, stopping: AbortSignal): Promise<void> {
  const { store, log, detectors = ALERT_DETECTORS, now } = deps
  const { teamId, from, to, attempts } = window
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(LONGEST_MS)])
  try {
    const config = await loadMonitoringConfig(store.db, teamId)
    const findings: WindowFindings[] = []
    for (const { type, detect } of detectors.filter(({ type }) => isWanted(config, type))) {
      // This many attempts mean that the evaluation itself kills the process.
      if (attempts > MOST_ATTEMPTS) {
        findings.push({ type, verdicts: [], failed: true })
        continue
      }
      try {
        const verdicts = await detect({ db: store.db, teamId, config, window: { from, to }, signal })
        findings.push({ type, verdicts, failed: false })
      } catch (error) {
        if (stopping.aborted || attempts < MOST_ATTEMPTS) throw error
        log.error({ err: error, teamId, type, window: from }, 'an hour of a team could not be evaluated')
        findings.push({ type, verdicts: [], failed: true })
      }
    }
    const isNoted = await noteWindow(store, window, findings, now?.())
    if (!isNoted) log.warn({ teamId, window: from }, 'an hour of a team was evaluated by another process')
  } catch (error) {
    if (!stopping.aborted)
      log.warn({ err: error, teamId, window: from, attempts }, 'an hour of a team is evaluated again')
    const counts = !stopping.aborted
    await releaseWindow(store, window, { restMs: counts ? REST_MS * attempts : 0, counts })
  }
}
