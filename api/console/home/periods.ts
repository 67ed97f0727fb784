import type { Statistics } from './data.ts'

type Period = {
  id: string
  label: string
  hours: number
  /** The number of hours in one bar. */
  step: number
  format: (instant: string) => string
}

const HOUR = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })
const DAY = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' })
const both = (at: string) => `${DAY.format(new Date(at))} ${HOUR.format(new Date(at))}`

export const PERIODS: readonly Period[] = [
  { id: 'day', label: 'Last 24 hours', hours: 23, step: 1, format: (at) => HOUR.format(new Date(at)) },
  { id: 'week', label: 'Last 7 days', hours: 167, step: 6, format: both },
  { id: 'month', label: 'Last 30 days', hours: 719, step: 24, format: (at) => DAY.format(new Date(at)) },
]

export function readPeriod(id: string): Period {
  return PERIODS.find((one) => one.id === id) ?? PERIODS[0]!
}

type Hour = Statistics['hours'][number]

export type Bucket = {
  at: string
  succeeded: number
  failed: number
  cancelled: number
  /** The highest of the hours in it: durations cannot be added up. */
  durationP50Ms: number | null
  durationP95Ms: number | null
}

/** Hours put together, so that a month is no 720 bars. The last bucket ends now. */
export function gather(hours: readonly Hour[], step: number): Bucket[] {
  const buckets: Bucket[] = []
  const odd = hours.length % step
  for (let at = odd === 0 ? 0 : odd - step; at < hours.length; at += step) {
    const held = hours.slice(Math.max(0, at), at + step)
    const count = (of: 'succeeded' | 'failed' | 'cancelled') => held.reduce((sum, one) => sum + one[of], 0)
    const most = (of: 'durationP50Ms' | 'durationP95Ms') => {
      const known = held.flatMap((one) => one[of] ?? [])
      return known.length === 0 ? null : Math.max(...known)
    }
    buckets.push({
      at: held[0]!.hour,
      ...{ succeeded: count('succeeded'), failed: count('failed'), cancelled: count('cancelled') },
      ...{ durationP50Ms: most('durationP50Ms'), durationP95Ms: most('durationP95Ms') },
    })
  }
  return buckets
}
