import {
  HOUR_MS,
  type HourSeries,
  type HourSum,
} from '../../../activities/monitoring/alerts/anomaly/series.ts'
import { DURATION_BOUNDS } from '../../../db/monitoring/executionhours.ts'
import type { Chance } from './figures.ts'

const DAYS = 30
export const HOURS = DAYS * 24
/** A Monday. */
export const BEGIN = Date.UTC(2026, 8, 7)

export const BASELINES = ['flat', 'daily', 'bursty', 'zero-inflated'] as const
export type Baseline = (typeof BASELINES)[number]
export const KINDS = ['spike x3', 'errors 2% to 15%', 'p95 x2'] as const
export type Kind = (typeof KINDS)[number]

/** What is planted: from an hour on, in a workflow, in its executions or in its calls to models. */
export type Plant = { kind: Kind; from: number; to: number; workflow: number; inCalls: boolean }

/** One workflow's traffic, as sums of hours. */
export type SimulatedWorkflow = { executions: HourSum[]; calls: HourSum[] }

const CALLS_EACH = 1.5
const SIGMA = 0.5
/** p95 of a lognormal number, as a multiple of its median. */
const P95_OF_MEDIAN = Math.exp(1.645 * SIGMA)

/** How busy an hour is, with 1 for the usual. */
function shapeHour(baseline: Baseline, hour: number, chance: Chance): number {
  const [ofDay, day] = [hour % 24, Math.floor(hour / 24) % 7]
  if (baseline === 'flat') return 1
  if (baseline === 'daily') {
    const light = 0.5 - 0.5 * Math.cos((2 * Math.PI * (ofDay - 3)) / 24)
    return (0.15 + 1.2 * light) * (day >= 5 ? 0.35 : 1)
  }
  if (baseline === 'bursty') {
    const burst = chance.next() < 0.02 ? chance.between(1.5, 3) : 1
    return Math.exp(0.3 * chance.normal()) * burst
  }
  return chance.next() < 0.35 ? Math.exp(0.25 * chance.normal()) : 0
}

export function simulateWorkflow(
  baseline: Baseline,
  { size, plants, chance }: { size: number; plants: Plant[]; chance: Chance },
): SimulatedWorkflow {
  const made: SimulatedWorkflow = { executions: [], calls: [] }
  const longest = chance.between(18_000, 28_000)
  const tokensEach = chance.between(400, 4_000)
  for (let hour = 0; hour < HOURS; hour++) {
    const planted = plants.filter(({ from, to }) => hour >= from && hour < to)
    const has = (kind: Kind, inCalls: boolean) =>
      planted.some((plant) => plant.kind === kind && plant.inCalls === inCalls)
    // What is zero cannot be three times as much: a plant makes its hours busy ones.
    const shape = shapeHour(baseline, hour, chance) || (planted.length > 0 ? 1 : 0)
    const errors = 0.02 * (baseline === 'bursty' ? Math.exp(0.4 * chance.normal()) : 1)
    const sum = (mean: number, inCalls: boolean): HourSum => {
      const requests = chance.poisson(mean)
      const slower = has('p95 x2', inCalls) ? 2 : 1
      const durations = new Array<number>(DURATION_BOUNDS.length + 1).fill(0)
      for (let each = 0; each < requests; each++) {
        const ms = ((longest * slower) / P95_OF_MEDIAN) * Math.exp(SIGMA * chance.normal())
        const place = Math.ceil(Math.log(ms / 10) / Math.log(1.25))
        durations[Math.min(DURATION_BOUNDS.length, Math.max(0, place))]!++
      }
      const failed = chance.binomial(requests, has('errors 2% to 15%', inCalls) ? 0.15 : errors)
      const noise = requests === 0 ? 0 : Math.exp((0.8 / Math.sqrt(requests)) * chance.normal())
      const tokens = inCalls ? Math.round(requests * tokensEach * noise) : 0
      return { hour: BEGIN + hour * HOUR_MS, requests, failed, tokens, durations }
    }
    const mean = size * shape
    const more = has('spike x3', false) ? 3 : 1
    const executions = sum(mean, false)
    const calls = sum(mean * CALLS_EACH * more, true)
    if (has('spike x3', true)) calls.tokens *= 3
    if (executions.requests > 0) made.executions.push(executions)
    if (calls.requests > 0) made.calls.push(calls)
  }
  return made
}

/** All workflows of a team together. */
function addSeries(all: HourSum[][]): HourSum[] {
  const byHour = Map.groupBy(all.flat(), ({ hour }) => hour)
  return [...byHour.values()]
    .map((sums) =>
      sums.reduce((a, b) => ({
        hour: a.hour,
        requests: a.requests + b.requests,
        failed: a.failed + b.failed,
        tokens: a.tokens + b.tokens,
        durations: a.durations.map((n, place) => n + b.durations[place]!),
      })),
    )
    .sort((a, b) => a.hour - b.hour)
}

export function nameSeries(workflows: HourSum[][]): HourSeries[] {
  const own = workflows.map((hours, place) => ({ workflowId: String(place), hours }))
  return workflows.length === 1 ? own : [{ workflowId: null, hours: addSeries(workflows) }, ...own]
}
