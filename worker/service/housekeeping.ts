import { schedule } from 'node-cron'
import type { Logger } from 'pino'
import { onBrokenChain } from '../../db/audit/alarm.ts'
import { checkpointAll } from '../../db/audit/checkpoints.ts'
import { countAuditBlocks } from '../../db/audit/counts.ts'
import { checkHeads } from '../../db/audit/heads.ts'
import { keepPublicKey } from '../../db/audit/proofs/publickeys.ts'
import { flushRefusals } from '../../db/audit/refusals/counts.ts'
import { settleRefusals } from '../../db/audit/refusals/settle.ts'
import { removeExpiredReports } from '../../db/audit/reports/expired.ts'
import { purgeByPolicy } from '../../db/audit/retention/schedule.ts'
import { removeFarewells } from '../../db/audit/siem/farewell.ts'
import type { PrefixChecker } from '../../db/audit/verify/prefixes.ts'
import { purgeChunks } from '../../db/chat/chunks.ts'
import { pruneChats } from '../../db/chat/purge.ts'
import { isDatabaseAway } from '../../db/connection.ts'
import { purgeConnects } from '../../db/credentials/connects.ts'
import { settleOpenings } from '../../db/credentials/opens.ts'
import { countDays } from '../../db/executions/days.ts'
import { removeUnnamed } from '../../db/executions/records/unnamed.ts'
import { pruneExecutions } from '../../db/executions/retention.ts'
import { purgeListeners } from '../../db/executions/starts/listeners.ts'
import { purgeAnswers } from '../../db/executions/starts/webhooks.ts'
import { sweepFiles } from '../../db/files/sweep.ts'
import { purgeMailCounts } from '../../db/mail/bounds.ts'
import { purgeMailQuestions } from '../../db/mail/recipients.ts'
import { foldExecutionHours } from '../../db/monitoring/foldhours.ts'
import { purgeNotices } from '../../db/monitoring/notices/fanout.ts'
import { purgeTelemetry } from '../../db/monitoring/telemetry/purge.ts'
import { foldModelCalls } from '../../db/monitoring/usage/hours.ts'
import { purgeMemoryEnds } from '../../db/operation/memoryends.ts'
import { purgeMails } from '../../db/people/mails.ts'
import { purgeSessions } from '../../db/people/sessions.ts'
import type { Store } from '../../db/scope.ts'
import { purgeWidgetCounts } from '../../db/widgets/caps.ts'
import { purgeMemory } from '../../db/workflows/kept/nodememory.ts'

/**
 * Removes expired sessions, old mails and notices, abandoned webhook responses, listeners whose time is over, chunks of
 * replies that stayed behind, what nodes were to remember for so long, yesterday's counts of widgets, executions past
 * their retention, stored outputs that no record names, the bytes of files that no execution has, audit entries and
 * reports past their retention, and spans of telemetry that cannot come again; counts the executions of the days that
 * are over, folds what calls to models took and how executions ended, looks whether the audit chains were tampered with,
 * and signs how far they reach: once an hour, or at `at`, a cron expression with seconds. Every minute it makes audit
 * entries of what was counted: refused requests, and the use of credentials. At the start it only looks at the chains.
 * Any number of processes may do so. Returns the function that ends it, which waits for the current step of a round.
 * `checkPrefix` verifies audit entries before they are removed, if not this thread.
 */
export function startHousekeeping(
  store: Store,
  log: Logger,
  { at = '0 17 * * * *', checkPrefix }: { at?: string; checkPrefix?: PrefixChecker } = {},
): () => Promise<void> {
  const stopping = new AbortController()
  const { signal } = stopping
  onBrokenChain(store, ({ teamId, why, unaudited }) => {
    const message = unaudited
      ? 'this act has no audit entry, because no chain can take one'
      : `an audit chain does not verify: ${why}. Most acts are refused until it is reopened (npx perdure audit verify, audit reopen)`
    log.error({ teamId, ...(unaudited ? { unaudited } : {}) }, message)
  })

  /** The latest of each. */
  const rounds = new Map<string, Promise<void>>()
  const begin = (name: string, work: () => Promise<void>) => {
    const round = work().catch((error) => {
      const level = isDatabaseAway(error) ? 'warn' : 'error'
      log[level]({ err: error }, 'the housekeeping failed; the next round will retry it')
    })
    rounds.set(name, round)
    return round
  }
  const repeat = (cron: string, name: string, work: () => Promise<void>) =>
    schedule(cron, () => begin(name, work), {
      ...{ noOverlap: true, unref: true, suppressMissedWarning: true, timezone: 'UTC' },
    })

  void begin('clean', async () => {
    await checkHeads(store)
    await keepPublicKey(store)
  })
  const tasks = [
    repeat('12 * * * * *', 'settle', () => settleCounts(store, log)),
    repeat(at, 'clean', () => clean({ store, log, signal, checkPrefix })),
  ]
  return async () => {
    stopping.abort()
    for (const task of tasks) await task.destroy()
    await Promise.all(rounds.values())
    await flushRefusals(store)
  }
}

/** Makes audit entries of what was counted in the last minutes. */
async function settleCounts(store: Store, log: Logger): Promise<void> {
  const reportUnsettled = (teamId: string, error: unknown) =>
    log.warn(
      { err: error, teamId },
      'what was counted of a chain has no audit entry yet; a later round will retry it',
    )
  await settleRefusals(store, reportUnsettled)
  await settleOpenings(store, reportUnsettled)
  await countAuditBlocks(store)
}

type Cleaning = { store: Store; log: Logger; signal: AbortSignal; checkPrefix: PrefixChecker | undefined }

async function clean({ store, log, signal, checkPrefix }: Cleaning): Promise<void> {
  const reportOf = (message: string) => (teamId: string, error: unknown) =>
    log.error({ err: error, teamId }, `${message}; a later round will retry it`)
  const told = (what: string, counts: Record<string, number>) => {
    if (Object.values(counts).some((count) => count > 0)) log.info(counts, `removed ${what}`)
  }
  await checkHeads(store)
  await checkpointAll(store, signal)
  await removeFarewells(store)
  await purgeSessions(store)
  await purgeConnects(store)
  await purgeMails(store)
  await purgeMailCounts(store)
  await purgeMailQuestions(store)
  await purgeAnswers(store)
  await purgeListeners(store)
  await purgeChunks(store)
  await purgeWidgetCounts(store)
  await purgeMemoryEnds(store)
  await purgeMemory(store)
  await purgeNotices(store, signal)
  await countDays(store, signal)
  await foldModelCalls(store, signal)
  // Before executions are removed: of those, their records need no longer be read.
  await foldExecutionHours(store, signal)
  await purgeTelemetry(store, signal)
  const runs = await pruneExecutions(store, signal)
  const messages = await pruneChats(store, signal)
  const outputs = await removeUnnamed(store, signal)
  await sweepFiles(store, signal)
  const reportExpired = reportOf('an audit report that is past its time could not be removed')
  const reports = await removeExpiredReports(store, reportExpired, signal)
  told('audit reports that are past their time', { reports })
  const reportPurge = reportOf('old audit entries of a team could not be removed')
  const entries = await purgeByPolicy(store, reportPurge, { signal, check: checkPrefix })
  told('audit entries that are past the retention of their teams', { entries })
  told('stored outputs that no record names', { outputs })
  told('messages of chats that are past the retention of their teams', { messages })
  told('executions that are past the retention of their workflows', { runs })
}
