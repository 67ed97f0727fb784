import { schedule } from 'node-cron'
import type { Logger } from 'pino'
import { isDatabaseAway } from '../../db/connection.ts'
import { pruneExecutions } from '../../db/executions/retention.ts'
import { purgeMemoryEnds } from '../../db/operation/memoryends.ts'
import { purgeSessions } from '../../db/people/sessions.ts'
import type { Store } from '../../db/scope.ts'
import { purgeAnswers } from '../../db/starts/webhooks.ts'

/**
 * Removes expired sessions, abandoned webhook responses, and executions past their retention: once an hour,
 * or at `at`, a cron expression with seconds. Any number of processes may do so. Returns the function that
 * ends it, which waits for the current step of a round.
 */
export function startHousekeeping(store: Store, log: Logger, at = '0 17 * * * *'): () => Promise<void> {
  let round: Promise<void> = Promise.resolve()
  const stopping = new AbortController()

  async function clean(): Promise<void> {
    await purgeSessions(store)
    await purgeAnswers(store)
    await purgeMemoryEnds(store)
    const runs = await pruneExecutions(store, stopping.signal)
    if (runs > 0) log.info({ runs }, 'removed executions that are past the retention of their workflows')
  }

  const task = schedule(
    at,
    () => {
      round = clean().catch((error) => {
        const level = isDatabaseAway(error) ? 'warn' : 'error'
        log[level]({ err: error }, 'the housekeeping failed; the next round will retry it')
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
