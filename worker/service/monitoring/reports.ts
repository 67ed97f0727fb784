import { setTimeout as sleep } from 'node:timers/promises'
import { type ReportCarrier, sendReportRun } from '../../../activities/monitoring/reports/send.ts'
import {
  type ClaimedReportRun,
  claimReportRuns,
  endLostReportRuns,
  renewReportRuns,
} from '../../../db/monitoring/reports/claims.ts'
import { beginSlots, purgeReportRuns } from '../../../db/monitoring/reports/runs.ts'
import { startRepeating } from '../repeating.ts'

const EVERY_MS = 2_000
const PURGE_EVERY_MS = 60 * 60_000

/** How many mails a process sends at once. */
const AT_ONCE = 4

/** A run is another process's when its own has been silent for so long. */
const LEASE_MS = 60_000
const RENEW_MS = 15_000

/**
 * Begins the slots of the scheduled reports that are due, and sends their mails. Any number of processes may do so.
 * Returns the function that ends it: what is not handed over is sent by another one.
 */
export function startScheduledReports(carrier: ReportCarrier): () => Promise<void> {
  const { store, log } = carrier
  const sending = new Map<ClaimedReportRun, Promise<void>>()
  const stopping = new AbortController()
  let renewedAt = 0
  let purgedAt = 0

  async function work(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && (await beginSlots(store)) > 0);
    await endLostReportRuns(store)
    for (;;) {
      await renew()
      if (signal.aborted || sending.size >= AT_ONCE) break
      const runs = await claimReportRuns(store, AT_ONCE - sending.size, LEASE_MS)
      for (const run of runs) {
        const sent = sendReportRun(carrier, run, stopping.signal)
        sending.set(
          run,
          sent.finally(() => sending.delete(run)),
        )
      }
      if (runs.length === 0) break
      await Promise.race([...sending.values(), sleep(EVERY_MS, undefined, { signal }).catch(() => {})])
    }
    if (Date.now() - purgedAt < PURGE_EVERY_MS) return
    purgedAt = Date.now()
    await purgeReportRuns(store)
  }

  /** Mails that are being sent stay this process's. */
  async function renew(): Promise<void> {
    if (sending.size === 0 || Date.now() - renewedAt < RENEW_MS) return
    renewedAt = Date.now()
    await renewReportRuns(store, [...sending.keys()], LEASE_MS)
  }

  const end = startRepeating({
    what: 'the scheduled reports that are due',
    everyMs: EVERY_MS,
    log,
    run: work,
  })
  return async () => {
    stopping.abort()
    await end()
    await Promise.all(sending.values())
  }
}
