import { makeNextReport, type ReportMaker } from '../../activities/reports/make.ts'

const EVERY_MS = 1_000

/**
 * Makes the audit reports that users have asked for, one after the other. Any number of processes may do so. Returns
 * the function that ends it: another process goes on with the one that is being made.
 */
export function startReporting(maker: ReportMaker): () => Promise<void> {
  const stopping = new AbortController()
  let timer: NodeJS.Timeout | undefined

  async function make(): Promise<void> {
    try {
      while (!stopping.signal.aborted && (await makeNextReport(maker, stopping.signal)));
    } catch (error) {
      maker.log.warn(
        { err: error },
        'the audit reports that are due could not be made; they will be tried again',
      )
    }
  }

  let current = Promise.resolve()
  function schedule(): void {
    if (stopping.signal.aborted) return
    timer = setTimeout(() => {
      current = make().then(schedule)
    }, EVERY_MS)
  }
  schedule()

  return async () => {
    stopping.abort()
    clearTimeout(timer)
    await current
  }
}
