import type { DetectorVerdict } from '../detector.ts'

/** What a workflow, or a team, did in an hour: its executions that ended, or its calls to models. */
export type HourSum = {
  /** The hour's begin, in milliseconds. */
  hour: number
  /** The executions that came to an end, except cancelled ones; `failed` are among them. */
  requests: number
  failed: number
  /** The tokens of calls; zero for executions. */
  tokens: number
  /** How many are in each bucket of DURATION_BOUNDS. */
  durations: readonly number[]
}

/** The watched figures of a workflow, or with null of the team: the hours in ascending order, empty ones left out. */
export type HourSeries = { workflowId: string | null; hours: HourSum[] }

/** The question about a series: the hour, the name of the metric, and the accepted chance of a false alarm. */
export type HourQuestion = {
  hour: number
  metric: string
  /** Such as "calls to models". */
  noun: string
  alpha: number
}

/** With fewer, an hour is too little to judge. */
export const LEAST_REQUESTS = 15

/** How much comes before an hour that is judged, and how much of it there must be at least. */
export const HISTORY_MS = 28 * 86_400_000
const WARM_UP_MS = 7 * 86_400_000
export const HOUR_MS = 3_600_000

/** The hours before one, and the hour itself; undefined if nothing was in it. */
export function splitSeries(
  { hours }: HourSeries,
  hour: number,
): { now: HourSum | undefined; before: HourSum[] } {
  const before = hours.filter((sum) => sum.hour < hour && sum.hour >= hour - HISTORY_MS)
  return { now: hours.find((sum) => sum.hour === hour), before }
}

/** That there is too little to say anything of a metric, and why. */
export function tellTooLittle(series: HourSeries, metric: string, reason: string): DetectorVerdict {
  return { metric, workflowId: series.workflowId, state: 'INSUFFICIENT_DATA', reason }
}

/** Why the hours before one are not enough to judge it by; undefined if they are. */
export function findWarmUp(before: HourSum[], hour: number): string | undefined {
  const first = before[0]
  if (first && first.hour <= hour - WARM_UP_MS) return undefined
  const days = first ? Math.floor((hour - first.hour) / (24 * HOUR_MS)) : 0
  return `It is judged after ${WARM_UP_MS / (24 * HOUR_MS)} days; there are ${days} days so far`
}

/** How far two hours are apart as hours of the day, 0 to 12. */
export function compareHoursOfDay(a: number, b: number): number {
  const apart = Math.abs(Math.round((a - b) / HOUR_MS)) % 24
  return Math.min(apart, 24 - apart)
}
