import { setTimeout as sleep } from 'node:timers/promises'

export type Load = {
  /** Runs per second that were completed in the measured time. */
  perSecond: number
  /** The duration in ms of each run that was completed in the measured time. */
  latencies: number[]
  /** The number of all runs, including those that were completed before or after the measured time. */
  total: number
}

const RAMP_MS = 300

/**
 * Keeps `inFlight` runs in flight for `seconds`. Runs that
 * are in flight at the end are awaited, but not counted.
 */
export async function applyLoad(
  one: (inFlight: number) => Promise<number>,
  inFlight: number,
  seconds: number,
): Promise<Load> {
  const begin = performance.now() + RAMP_MS
  const end = begin + seconds * 1_000
  const latencies: number[] = []
  let total = 0
  async function repeat(): Promise<void> {
    while (performance.now() < end) {
      const ms = await one(inFlight)
      const now = performance.now()
      total++
      if (now >= begin && now < end) latencies.push(ms)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, repeat))
  return { perSecond: latencies.length / seconds, latencies, total }
}

/** The value below which a share of `p` (0 to 1) of the values lies; NaN if there are none. */
export function percentile(values: number[], p: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(p * sorted.length))] ?? Number.NaN
}

export function median(values: number[]): number {
  return percentile(values, 0.5)
}

const LEAST_PAUSE_MS = 4

/**
 * Creates a client that polls sensibly. It learns when to poll first: if its first poll finds the run ended,
 * 10% sooner the next time, otherwise closer to nine tenths of the run's duration. Then it polls at intervals
 * of a quarter of that time (at least 4 ms). `polls` counts them.
 */
export function createPoller(ended: (id: string) => Promise<boolean>) {
  let first = 20
  const poller = {
    polls: 0,
    /**
     * Waits for the end of a run that began at `since`
     * (performance.now()), and resolves with its duration in ms.
     */
    async await(id: string, since: number): Promise<number> {
      await sleep(Math.max(0, since + first - performance.now()))
      const pause = Math.max(LEAST_PAUSE_MS, first / 4)
      let polls = 1
      while (!(await ended(id))) {
        polls++
        await sleep(pause)
      }
      poller.polls += polls
      const ms = performance.now() - since
      first = polls === 1 ? 0.9 * first : first + (0.9 * ms - first) / 5
      return ms
    },
  }
  return poller
}
