import { schedule } from 'node-cron'
import type { Logger } from 'pino'
import { isDatabaseAway } from '../db/connection.ts'
import { purgeAnswers } from '../db/hooks.ts'
import { pruneRuns } from '../db/retention.ts'
import type { Store } from '../db/scope.ts'
import { purgeSessions } from '../db/sessions.ts'

/**
 * Removes what has expired, once an hour (or `at`, a cron expression with seconds). Any number of processes may:
 * what one has removed the next does not find. Returns what ends it: no longer than a step of the round under way.
 */
export function startHousekeeping(store: Store, log: Logger, at = '0 17 * * * *'): () => Promise<void> {
  let round: Promise<void> = Promise.resolve()
  const stopping = new AbortController()

  async function clean(): Promise<void> {
    await purgeSessions(store)
    await purgeAnswers(store)
    const runs = await pruneRuns(store, stopping.signal)
    if (runs > 0) log.info({ runs }, 'runs were removed that their workflows keep no longer')
  }

  const task = schedule(
    at,
    () => {
      round = clean().catch((error) => {
        const level = isDatabaseAway(error) ? 'warn' : 'error'
        log[level]({ err: error }, 'the housekeeping failed; the next round does it')
      })
      return round
    },
    { noOverlap: true, unref: true, suppressMissedWarning: true, timezone: 'UTC' },
  )
  return async () => {
    stopping.abort()
    await task.destroy()
    await round
  }
}
