import { setTimeout as sleep } from 'node:timers/promises'

export type Load = {
  /** Completed runs a second, once the load was under way. */
  perSecond: number
  /** Milliseconds of each run. */
  latencies: number[]
  /** All runs, those before and after the measured time too. */
  total: number
}

const RAMP_MS = 300

/** Keeps `inFlight` runs going for `seconds`; runs that are under way at the end are waited for, not counted. */
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

/** The value below which the share `p` (0 to 1) of the values lies. */
export function percentile(values: number[], p: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(p * sorted.length))] ?? Number.NaN
}

export function median(values: number[]): number {
  return percentile(values, 0.5)
}

const LEAST_PAUSE_MS = 4

/**
 * A client that polls as a sensible one would. It learns when to ask first: a little sooner after a run that it
 * found ended at once, else towards nine tenths of what the run took; then it asks at every quarter of that (4 ms at
 * least). `polls` counts what it asked.
 */
export function createPoller(ended: (id: string) => Promise<boolean>) {
  let first = 20
  const poller = {
    polls: 0,
    /** Waits for the end of a run that was begun at `since` (performance.now()); answers its milliseconds. */
    async await(id: string, since: number): Promise<number> {
      await sleep(Math.max(0, since + first - performance.now()))
      const pause = Math.max(LEAST_PAUSE_MS, first / 4)
      let asked = 1
      while (!(await ended(id))) {
        asked++
        await sleep(pause)
      }
      poller.polls += asked
      const ms = performance.now() - since
      first = asked === 1 ? 0.9 * first : first + (0.9 * ms - first) / 5
      return ms
    },
  }
  return poller
}
