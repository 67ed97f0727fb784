import { schedule } from 'node-cron'
import type { Logger } from 'pino'
import { purgeChunks } from '../../db/agentchat/chunks.ts'
import { pruneChats } from '../../db/agentchat/purge.ts'
import { onBrokenChain } from '../../db/audit/alarm.ts'
import { checkpointAll } from '../../db/audit/checkpoints.ts'
import { checkHeads } from '../../db/audit/heads.ts'
import type { PrefixChecker } from '../../db/audit/parallel/prefixes.ts'
import { keepPublicKey } from '../../db/audit/proofs/publickeys.ts'
import { purgeByPolicy } from '../../db/audit/retention/schedule.ts'
import { isDatabaseAway } from '../../db/connection.ts'
import { purgeConnects } from '../../db/credentials/connects.ts'
import { settleOpenings } from '../../db/credentials/opens.ts'
import { countDays } from '../../db/executions/days.ts'
import { pruneExecutions } from '../../db/executions/retention.ts'
import { sweepFiles } from '../../db/files/sweep.ts'
import { purgeMailCounts } from '../../db/mail/bounds.ts'
import { purgeMailQuestions } from '../../db/mail/recipients.ts'
import { purgeNotices } from '../../db/monitoring/fanout.ts'
import { foldExecutionHours } from '../../db/monitoring/foldhours.ts'
import { purgeMemoryEnds } from '../../db/operation/memoryends.ts'
import { purgeMails } from '../../db/people/mails.ts'
import { purgeSessions } from '../../db/people/sessions.ts'
import { removeUnnamed } from '../../db/records/unnamed.ts'
import { flushRefusals } from '../../db/refusals/counts.ts'
import { settleRefusals } from '../../db/refusals/settle.ts'
import { removeExpiredReports } from '../../db/reports/expired.ts'
import type { Store } from '../../db/scope.ts'
import { removeFarewells } from '../../db/siem/farewell.ts'
import { purgeAnswers } from '../../db/starts/webhooks.ts'
import { purgeTelemetry } from '../../db/telemetry/purge.ts'
import { foldModelCalls } from '../../db/usage/hours.ts'
import { purgeWidgetCounts } from '../../db/widgets/caps.ts'

/**
 * Removes expired sessions, old mails and notices, abandoned webhook responses, chunks of replies that stayed behind,
 * yesterday's counts of widgets, executions past their retention, stored outputs that no record names, the bytes of
 * files that no execution has, audit entries and reports past their retention, and spans of telemetry that cannot come
 * again; counts the executions of the days that are over, folds what calls to models took and how executions ended,
 * looks whether the audit chains were tampered with, and signs where they stand: once an hour, or at `at`, a cron
 * expression with seconds. Every minute it makes audit entries of what was counted: refused requests, and the use of
 * credentials. At the start it only looks at the chains. Any number of processes may do so. Returns the function that
 * ends it, which waits for the current step of a round. `checkPrefix` verifies audit entries before they are removed,
 * if not this thread.
 */
export function startHousekeeping(
  store: Store,
  log: Logger,
  { at = '0 17 * * * *', checkPrefix }: { at?: string; checkPrefix?: PrefixChecker } = {},
): () => Promise<void> {
  const stopping = new AbortController()
  const report = (error: unknown) => {
    const level = isDatabaseAway(error) ? 'warn' : 'error'
    log[level]({ err: error }, 'the housekeeping failed; the next round will retry it')
  }
  onBrokenChain(store, ({ teamId, why, unaudited }) => {
    const message = unaudited
      ? 'this act has no audit entry, because no chain can take one'
      : `an audit chain does not verify: ${why}. Most acts are refused until it is reopened (npx perdure audit verify, audit reopen)`
    log.error({ teamId, ...(unaudited ? { unaudited } : {}) }, message)
  })

  const reportPurge = (teamId: string, error: unknown) =>
    log.error(
      { err: error, teamId },
      'old audit entries of a team could not be removed; a later round will retry it',
    )

  const reportExpired = (teamId: string, error: unknown) =>
    log.error(
      { err: error, teamId },
      'an audit report that is past its time could not be removed; a later round will retry it',
    )

  async function clean(): Promise<void> {
    await checkHeads(store)
    await checkpointAll(store, stopping.signal)
    await removeFarewells(store)
    await purgeSessions(store)
    await purgeConnects(store)
    await purgeMails(store)
    await purgeMailCounts(store)
    await purgeMailQuestions(store)
    await purgeAnswers(store)
    await purgeChunks(store)
    await purgeWidgetCounts(store)
    await purgeMemoryEnds(store)
    await purgeNotices(store, stopping.signal)
    await countDays(store, stopping.signal)
    await foldModelCalls(store, stopping.signal)
    // Before executions are removed: of those, their records need no longer be read.
    await foldExecutionHours(store, stopping.signal)
    await purgeTelemetry(store, stopping.signal)
    const runs = await pruneExecutions(store, stopping.signal)
    const messages = await pruneChats(store, stopping.signal)
    const outputs = await removeUnnamed(store, stopping.signal)
    await sweepFiles(store, stopping.signal)
    const reports = await removeExpiredReports(store, reportExpired, stopping.signal)
    if (reports > 0) log.info({ reports }, 'removed audit reports that are past their time')
    const entries = await purgeByPolicy(store, reportPurge, {
      signal: stopping.signal,
      check: checkPrefix,
    })
    if (entries > 0) log.info({ entries }, 'removed audit entries that are past the retention of their teams')
    if (outputs > 0) log.info({ outputs }, 'removed stored outputs that no record names')
    if (messages > 0)
      log.info({ messages }, 'removed messages of chats that are past the retention of their teams')
    if (runs > 0) log.info({ runs }, 'removed executions that are past the retention of their workflows')
  }

  const begin = async () => {
    await checkHeads(store)
    await keepPublicKey(store)
  }
  let round = begin().catch(report)
  const reportUnsettled = (teamId: string, error: unknown) =>
    log.warn(
      { err: error, teamId },
      'what was counted of a chain has no audit entry yet; a later round will retry it',
    )
  const settle = async () => {
    await settleRefusals(store, reportUnsettled)
    await settleOpenings(store, reportUnsettled)
  }
  let settling = Promise.resolve()
  const settler = schedule(
    '12 * * * * *',
    () => {
      settling = settle().catch(report)
      return settling
    },
    { noOverlap: true, unref: true, suppressMissedWarning: true, timezone: 'UTC' },
  )
  const task = schedule(
    at,
    () => {
      round = clean().catch(report)
      return round
    },
    { noOverlap: true, unref: true, suppressMissedWarning: true, timezone: 'UTC' },
  )
  return async () => {
    stopping.abort()
    await task.destroy()
    await settler.destroy()
    await round
    await settling
    await flushRefusals(store)
  }
}
