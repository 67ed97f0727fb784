import type { AlertSeverity } from '../../../../db/monitoring/notices/notices.ts'
import type { DetectorVerdict } from '../detector.ts'
import {
  compareHoursOfDay,
  findWarmUp,
  HISTORY_MS,
  HOUR_MS,
  type HourQuestion,
  type HourSeries,
  type HourSum,
  LEAST_REQUESTS,
  splitSeries,
  tellTooLittle,
} from './series.ts'
import { findMedian, findQuantile, findSpread, findStudentBound } from './statistics.ts'

/** How many hours back the same hour of the week is. */
const WEEK = 7 * 24
/** How many hours with something must be known, where most have nothing. */
const LEAST_ACTIVE = 24
/** Where fewer hours than this share have something, only those are compared. */
const MOSTLY_SILENT = 0.7
/** No series is so steady that less than this is taken for its scatter, as a logarithm. */
const LEAST_SPREAD = 0.08
/** How far below the multiple an hour may stay, if the series scatters: at most to this share of it. */
const LEAST_OF_MULTIPLE = 0.7
/** A share of hours that few exceed, and how many standard deviations that is. */
const RARE = 0.975
const RARE_BOUND = 1.96
/** Spikes of the past are among them, so that they do not count for more. */
const MOST_WIDER = 1.25

/** What an hour is measured by, and with what it is compared. */
type Compared = { observed: number; reference: number[]; sameOfWeek: number[] }

/**
 * Whether an hour has far more than the same hours of earlier days: in logarithms, above their median by more standard
 * deviations (from the median of distances) than chance explains, rarely reached before, and the multiple that the team has
 * set. The hour is compared alone, and together with the one before it. Where most hours are silent, only the others count.
 */
export function judgeSpike(
  series: HourSeries,
  { hour, metric, noun, alpha }: HourQuestion,
  read: (sum: HourSum) => number,
  multiple: number,
): DetectorVerdict {
  const { now, before } = splitSeries(series, hour)
  const warmUp = findWarmUp(before, hour)
  if (warmUp) return tellTooLittle(series, metric, warmUp)
  const quiet: DetectorVerdict = { metric, workflowId: series.workflowId, state: 'QUIET' }
  if (!now || now.requests < LEAST_REQUESTS) return quiet
  const values = new Map([...before, now].map((sum) => [sum.hour, read(sum)]))
  const first = Math.max(before[0]!.hour, hour - HISTORY_MS)
  const one = compare(values, hour, first, 1)
  if (!one) return tellTooLittle(series, metric, `Fewer than ${LEAST_ACTIVE} earlier hours have ${noun}`)
  const two = values.get(hour - HOUR_MS) ? compare(values, hour, first, 2) : undefined
  const found = [one, two].map((compared) => compared && exceed(compared, multiple, alpha / 2))
  const ratio = found.find((each) => each !== undefined)
  if (ratio === undefined) return quiet
  const expected = Math.max(1, Math.round(one.observed / ratio))
  const severity = gradeSpike(ratio / multiple)
  return {
    ...{ metric, workflowId: series.workflowId, state: 'FIRING' },
    finding: {
      ...{ type: 'ANOMALY', severity, observed: one.observed, expected },
      threshold: Math.round(expected * multiple),
      message:
        `${one.observed.toLocaleString('en')} ${noun} in an hour, ${ratio.toFixed(1)} times the ` +
        `${expected.toLocaleString('en')} that are usual at this time of day.`,
      sampleExecutionIds: [],
    },
  }
}

/** What `span` hours that end with one are compared with; undefined if there is too little. */
function compare(
  values: Map<number, number>,
  hour: number,
  first: number,
  span: 1 | 2,
): Compared | undefined {
  const sum = (end: number) => (values.get(end) ?? 0) + (span === 2 ? (values.get(end - HOUR_MS) ?? 0) : 0)
  const ends: number[] = []
  for (let end = first + (span - 1) * HOUR_MS; end <= hour - span * HOUR_MS; end += HOUR_MS) ends.push(end)
  const near = ends.filter((end) => compareHoursOfDay(end, hour) <= 1 && isWeekend(end) === isWeekend(hour))
  const ofDay = near.map(sum)
  const active = ofDay.filter((value) => value > 0)
  const observed = sum(hour)
  if (active.length < MOSTLY_SILENT * ofDay.length) {
    const all = ends.map(sum).filter((value) => value > 0)
    return all.length < LEAST_ACTIVE ? undefined : { observed, reference: all, sameOfWeek: [] }
  }
  const ofWeek = near.filter((end) => {
    const apart = Math.round((hour - end) / HOUR_MS) % WEEK
    return Math.min(apart, WEEK - apart) <= 1
  })
  return { observed, reference: active, sameOfWeek: ofWeek.map(sum).filter((value) => value > 0) }
}

/** How many times what is expected there is, if that is a spike. */
function exceed(
  { observed, reference, sameOfWeek }: Compared,
  multiple: number,
  alpha: number,
): number | undefined {
  const logs = reference.map(Math.log).sort((a, b) => a - b)
  const median = findQuantile(logs, 0.5)
  const rare = findQuantile(logs, RARE)
  // Bursts scatter further up than the distances from the median say.
  const middle = findSpread(logs, median)
  const upper = Math.min((rare - median) / RARE_BOUND, MOST_WIDER * middle)
  const spread = Math.max(LEAST_SPREAD, middle, upper)
  // A day of the week that is always busy is no spike.
  const weekly = sameOfWeek.length >= 6 ? findMedian(sameOfWeek.map(Math.log)) : median
  const above = Math.log(observed) - Math.max(median, weekly)
  const least = Math.log(multiple) + Math.max(Math.log(LEAST_OF_MULTIPLE), -1.645 * spread)
  const bound = findStudentBound(alpha, reference.length / 2) * spread
  return above >= least && above > bound && Math.log(observed) > rare ? Math.exp(above) : undefined
}

/** Saturdays and Sundays (UTC): what is usual on other days is not on them. */
function isWeekend(hour: number): boolean {
  return new Date(hour).getUTCDay() % 6 === 0
}

/** By how many times the multiple it is. */
function gradeSpike(times: number): AlertSeverity {
  if (times >= 3) return 'CRITICAL'
  return times >= 5 / 3 ? 'HIGH' : 'MEDIUM'
}
