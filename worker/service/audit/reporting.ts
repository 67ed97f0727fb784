import { makeNextReport, type ReportMaker } from '../../../activities/audit/reports/make.ts'
import { startLoop } from '../queue.ts'

const EVERY_MS = 1_000

/**
 * Makes the audit reports that users have asked for, one after the other. Any number of processes may do so. Returns
 * the function that ends it: another process goes on with the one that is being made.
 */
export function startReporting(maker: ReportMaker): () => Promise<void> {
  const { stop } = startLoop({
    what: 'the audit reports that are due',
    everyMs: EVERY_MS,
    log: maker.log,
    run: (signal) => makeNextReport(maker, signal),
  })
  return stop
}
