import { type ReportCarrier, sendReportRun } from '../../../activities/monitoring/reports/send.ts'
import { claimReportRuns, endLostReportRuns, renewReportRuns } from '../../../db/monitoring/reports/claims.ts'
import { beginSlots, purgeReportRuns } from '../../../db/monitoring/reports/runs.ts'
import { startLoop, startQueue } from '../queue.ts'

const EVERY_MS = 2_000
const PURGE_EVERY_MS = 60 * 60_000

/** How many mails a process sends at once. */
const AT_ONCE = 4

/** After this long without a sign of life of its process, another one takes a run. */
const LEASE_MS = 60_000
const RENEW_MS = 15_000

/**
 * Begins the slots of the scheduled reports that are due, and sends their mails. Any number of processes may do so.
 * Returns the function that ends it: what is not handed over is sent by another one.
 */
export function startScheduledReports(carrier: ReportCarrier): () => Promise<void> {
  const { store, log } = carrier
  const sending = startQueue({
    what: 'the scheduled reports that are due',
    everyMs: EVERY_MS,
    atOnce: AT_ONCE,
    log,
    // First the slots: of a report only the latest one is sent.
    async prepare(signal) {
      while (!signal.aborted && (await beginSlots(store)) > 0);
      await endLostReportRuns(store)
    },
    claim: ({ limit }) => claimReportRuns(store, limit, LEASE_MS),
    work: (run, signal) => sendReportRun(carrier, run, signal),
  })
  const loops = [
    sending,
    startLoop({
      what: 'the claims on scheduled reports',
      everyMs: RENEW_MS,
      log,
      async run() {
        const held = sending.held()
        if (held.length > 0) await renewReportRuns(store, held, LEASE_MS)
      },
    }),
    startLoop({
      what: 'the runs of reports that are past their time',
      everyMs: PURGE_EVERY_MS,
      log,
      run: () => purgeReportRuns(store),
    }),
  ]
  return async () => {
    await Promise.all(loops.map((loop) => loop.stop()))
  }
}
