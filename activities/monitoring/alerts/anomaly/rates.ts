import { DURATION_BOUNDS } from '../../../../db/monitoring/executionhours.ts'
import type { AlertSeverity } from '../../../../db/monitoring/notices/notices.ts'
import type { AlertFinding, DetectorVerdict } from '../detector.ts'
import {
  compareHoursOfDay,
  findWarmUp,
  HOUR_MS,
  type HourQuestion,
  type HourSeries,
  type HourSum,
  LEAST_REQUESTS,
  splitSeries,
  tellTooLittle,
} from './series.ts'
import { boundRate, findNormalBound, findUpperTail } from './statistics.ts'

/** How many requests must have come before, and how many near the same time of day, to be compared with those alone. */
const LEAST_HISTORY = 100
const LEAST_NEAR = 500
const NEAR_HOURS = 3
/** Which share of days that were the worst does not count: an incident of the past is not what is usual. */
const WORST_DAYS = 0.1
/** How much longer than usual p95 must be at least. */
const LEAST_LONGER = 1.25
const MOST_CLUSTERED = 10
const P95 = 0.95

/** The requests of an hour: `n` in all, `k` of which failed or took too long. */
type Counted = { hour: number; k: number; n: number }

/**
 * The usual state: the share, cautiously estimated, and by how much hours differ more than chance alone would
 * explain.
 */
type Usual = { share: number; clustering: number }

/**
 * Whether more requests fail than is usual, and than the team accepts: the exact binomial tail of the usual share, with the
 * failures of an hour taken as clustered as they were; or Wilson's bound is above the threshold by itself.
 */
export function judgeErrors(series: HourSeries, question: HourQuestion, threshold: number): DetectorVerdict {
  const { hour, metric, noun, alpha } = question
  const judged = prepare(series, question)
  if ('state' in judged) return judged
  const { now, before } = judged
  const count = ({ hour, failed, requests }: HourSum): Counted => ({ hour, k: failed, n: requests })
  const usual = findUsual(before.map(count), hour)
  const previous = before.at(-1)?.hour === hour - HOUR_MS ? count(before.at(-1)!) : undefined
  const rate = now.failed / now.requests
  for (const { k, n } of pool(count(now), previous)) {
    const [hits, trials] = [k / usual.clustering, n / usual.clustering]
    const { low } = boundRate(hits, trials, findNormalBound(alpha / 2))
    const unusual = k / n >= threshold && findUpperTail(hits, trials, usual.share) < alpha / 2
    if (rate < threshold || (low <= threshold && !unusual)) continue
    return fire(series, metric, {
      ...{ severity: gradeErrors(rate, threshold), observed: rate, expected: usual.share, threshold },
      message:
        `${percent(rate)} of ${now.requests.toLocaleString('en')} ${noun} failed in an hour; ` +
        `${percent(usual.share)} are usual.`,
    })
  }
  return { metric, workflowId: series.workflowId, state: 'QUIET' }
}

/**
 * Whether p95 is longer than is usual, and than the team accepts: by how many requests take longer than 95 % did, with the
 * exact binomial tail, so that few requests are no reason.
 */
export function judgeLatency(series: HourSeries, question: HourQuestion, threshold: number): DetectorVerdict {
  const { hour, metric, noun, alpha } = question
  const judged = prepare(series, question)
  if ('state' in judged) return judged
  const { now, before } = judged
  const near = selectNear(before, hour, ({ durations }) => sumUp(durations))
  const durations = addAll(near.map((sum) => sum.durations))
  const total = sumUp(durations)
  const ended = sumUp(now.durations)
  if (total < LEAST_HISTORY || ended < LEAST_REQUESTS)
    return tellTooLittle(series, metric, `Too few ${noun} have a known duration`)
  const edge = findEdge(durations, total)
  const count = (sum: HourSum): Counted => ({
    hour: sum.hour,
    k: sumUp(sum.durations.slice(edge)),
    n: sumUp(sum.durations),
  })
  const usual = findUsual(near.map(count), hour)
  const expected = findP95(durations)
  const observed = findP95(now.durations)
  const previous = before.at(-1)?.hour === hour - HOUR_MS ? count(before.at(-1)!) : undefined
  for (const { k, n } of pool(count(now), previous)) {
    if (observed < threshold || observed < LEAST_LONGER * expected) break
    const [hits, trials] = [k / usual.clustering, n / usual.clustering]
    if (findUpperTail(hits, trials, usual.share) >= alpha / 2) continue
    return fire(series, metric, {
      ...{ severity: gradeLatency(observed / Math.max(threshold, expected)), observed, expected, threshold },
      message:
        `95 % of ${ended.toLocaleString('en')} ${noun} took up to ${seconds(observed)} in an hour; ` +
        `${seconds(expected)} are usual.`,
    })
  }
  return { metric, workflowId: series.workflowId, state: 'QUIET' }
}

type Prepared = { now: HourSum; before: HourSum[] }

function prepare(series: HourSeries, { hour, metric, noun }: HourQuestion): Prepared | DetectorVerdict {
  const { now, before } = splitSeries(series, hour)
  const warmUp = findWarmUp(before, hour)
  if (warmUp) return tellTooLittle(series, metric, warmUp)
  if (!now || now.requests < LEAST_REQUESTS)
    return tellTooLittle(series, metric, `Fewer than ${LEAST_REQUESTS} ${noun} ended in the hour`)
  if (before.reduce((sum, { requests }) => sum + requests, 0) < LEAST_HISTORY)
    return tellTooLittle(series, metric, `Fewer than ${LEAST_HISTORY} ${noun} ended in the four weeks before`)
  return { now, before }
}

/** The hour alone, and together with the one before it. */
function pool(now: Counted, previous: Counted | undefined): Counted[] {
  if (!previous) return [now]
  return [now, { hour: now.hour, k: now.k + previous.k, n: now.n + previous.n }]
}

/** The hours near the same time of day if there is enough of them, else all. */
function selectNear<T extends { hour: number }>(hours: T[], hour: number, weigh: (sum: T) => number): T[] {
  const near = hours.filter((sum) => compareHoursOfDay(sum.hour, hour) <= NEAR_HOURS)
  return near.reduce((sum, each) => sum + weigh(each), 0) >= LEAST_NEAR ? near : hours
}

function findUsual(all: Counted[], hour: number): Usual {
  const days = Map.groupBy(
    selectNear(all, hour, ({ n }) => n),
    (each) => Math.floor(each.hour / (24 * HOUR_MS)),
  )
  const kept = [...days.values()]
    .map((hours) => ({ hours, k: total(hours, 'k'), n: total(hours, 'n') }))
    .sort((a, b) => a.k / a.n - b.k / b.n)
  kept.splice(kept.length - Math.floor(kept.length * WORST_DAYS))
  const hours = kept.flatMap((day) => day.hours)
  const [k, n] = [total(hours, 'k'), total(hours, 'n')]
  // Few requests leave room for a higher share.
  const share = Math.max(boundRate(k, n, 0.5).high, 0.5 / n)
  const whole = hours.filter((each) => each.n >= 5)
  const excess = whole.reduce(
    (sum, each) => sum + (each.k - each.n * share) ** 2 / (each.n * share * (1 - share)),
    0,
  )
  const clustering = Math.min(MOST_CLUSTERED, Math.max(1, excess / Math.max(1, whole.length - 1)))
  return { share, clustering }
}

function total(hours: Counted[], of: 'k' | 'n'): number {
  return hours.reduce((sum, each) => sum + each[of], 0)
}

function sumUp(numbers: readonly number[]): number {
  let sum = 0
  for (const number of numbers) sum += number
  return sum
}

function addAll(lists: (readonly number[])[]): number[] {
  const sums = new Array<number>(DURATION_BOUNDS.length + 1).fill(0)
  for (const list of lists) for (let place = 0; place < sums.length; place++) sums[place]! += list[place] ?? 0
  return sums
}

/** The first bucket that at most 5 % reach. */
function findEdge(durations: number[], total: number): number {
  let below = 0
  let edge = 0
  while (edge < durations.length - 1 && below < P95 * total) below += durations[edge++]!
  return edge
}

/** The milliseconds that 95 % stay under, as far as the buckets tell. */
function findP95(durations: readonly number[]): number {
  const wanted = P95 * sumUp(durations)
  let below = 0
  for (const [place, n] of durations.entries()) {
    if (n > 0 && below + n >= wanted) {
      const low = DURATION_BOUNDS[place - 1] ?? 1
      const high = DURATION_BOUNDS[place] ?? low * 1.25
      return Math.round(low * (high / low) ** ((wanted - below) / n))
    }
    below += n
  }
  return 0
}

function fire(
  { workflowId }: HourSeries,
  metric: string,
  finding: Pick<AlertFinding, 'severity' | 'observed' | 'expected' | 'threshold' | 'message'>,
): DetectorVerdict {
  return {
    ...{ metric, workflowId, state: 'FIRING' },
    finding: { type: 'ANOMALY', ...finding, sampleExecutionIds: [] },
  }
}

function gradeErrors(rate: number, threshold: number): AlertSeverity {
  if (rate >= Math.min(0.9, Math.max(0.5, 3 * threshold))) return 'CRITICAL'
  return rate >= Math.max(0.25, 1.5 * threshold) ? 'HIGH' : 'MEDIUM'
}

function gradeLatency(times: number): AlertSeverity {
  if (times >= 4) return 'CRITICAL'
  return times >= 2 ? 'HIGH' : 'MEDIUM'
}

const percent = (share: number) => `${(100 * share).toFixed(1)} %`
const seconds = (ms: number) => (ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`)
