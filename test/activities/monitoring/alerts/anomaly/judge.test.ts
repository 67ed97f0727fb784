import { expect, test } from 'vitest'
import { judgeHour } from '../../../../../activities/monitoring/alerts/anomaly/judge.ts'
import {
  HOUR_MS,
  type HourSeries,
  type HourSum,
} from '../../../../../activities/monitoring/alerts/anomaly/series.ts'
import {
  boundRate,
  findNormalBound,
  findUpperTail,
} from '../../../../../activities/monitoring/alerts/anomaly/statistics.ts'
import { DURATION_BOUNDS } from '../../../../../db/monitoring/executionhours.ts'

const THRESHOLDS = { tokenUsageSpike: 3, errorRateThreshold: 0.1, latencyThreshold: 30_000 }
const NOW = Date.UTC(2026, 9, 14, 9)

const durations = (requests: number, ms: number) => {
  const counts = new Array<number>(DURATION_BOUNDS.length + 1).fill(0)
  counts[DURATION_BOUNDS.findIndex((bound) => ms < bound)] = requests
  return counts
}

const hourOf = (hour: number, { requests = 20, failed = 0, tokens = 20_000, ms = 5_000 } = {}): HourSum => ({
  ...{ hour, requests, failed, tokens, durations: durations(requests, ms) },
})

/** Four weeks of the same hours, and one that is as given. */
function series(workflowId: string | null, now: Parameters<typeof hourOf>[1], days = 28): HourSeries {
  const before = Array.from({ length: days * 24 }, (_, place) => {
    const hour = NOW - (days * 24 - place) * HOUR_MS
    return hourOf(hour, { tokens: 19_000 + (place % 7) * 300, failed: place % 50 === 0 ? 1 : 0 })
  })
  return { workflowId, hours: [...before, hourOf(NOW, now)] }
}

const judge = (executions: HourSeries[], calls: HourSeries[] = []) =>
  judgeHour({ executions, calls }, NOW, THRESHOLDS)
const firing = (verdicts: ReturnType<typeof judge>) =>
  verdicts.flatMap(({ metric, workflowId, finding }) => (finding ? [`${metric} ${workflowId}`] : []))

test('tails and bounds are those of the tables', () => {
  expect(findUpperTail(3, 30, 0.02)).toBeCloseTo(0.02172, 4)
  expect(findUpperTail(5, 20, 0.5)).toBeCloseTo(0.99409, 4)
  expect(findUpperTail(0, 20, 0.5)).toBe(1)
  expect(findUpperTail(21, 20, 0.5)).toBe(0)
  expect(findNormalBound(0.001)).toBeCloseTo(3.0902, 3)
  expect(findNormalBound(0.05)).toBeCloseTo(1.6449, 3)
  const { low, high } = boundRate(15, 100, 1.96)
  expect([low, high].map((bound) => Number(bound.toFixed(4)))).toEqual([0.0931, 0.2328])
})

test('what is as usual is quiet, and each signal fires its metric alone', () => {
  expect(firing(judge([series('w', {})], [series('w', {})]))).toEqual([])
  expect(firing(judge([series('w', { failed: 8 })]))).toEqual(['error_rate w'])
  expect(firing(judge([series('w', { ms: 40_000 })]))).toEqual(['latency w'])
  expect(firing(judge([], [series('w', { tokens: 70_000 })]))).toEqual(['token_usage w'])
  expect(firing(judge([], [series('w', { failed: 8 })]))).toEqual(['model_error_rate w'])
  expect(firing(judge([], [series('w', { ms: 40_000 })]))).toEqual(['model_latency w'])
})

test('below the thresholds of the team, or under 15 requests, nothing fires', () => {
  expect(firing(judge([series('w', { ms: 18_000 })]))).toEqual([])
  expect(firing(judge([series('w', { requests: 200, failed: 18 })]))).toEqual([])
  expect(firing(judge([], [series('w', { tokens: 38_000 })]))).toEqual([])
  expect(firing(judge([series('w', { requests: 14, failed: 14, ms: 90_000 })]))).toEqual([])
  expect(firing(judge([], [series('w', { requests: 14, tokens: 9e6 })]))).toEqual([])
})

test('before seven days everything has too little data', () => {
  const verdicts = judge([series('w', { failed: 20 }, 6)], [series('w', { tokens: 9e6 }, 6)])
  expect(verdicts).toHaveLength(6)
  expect(new Set(verdicts.map(({ state }) => state))).toEqual(new Set(['INSUFFICIENT_DATA']))
})

test('a few workflows have their own alerts, many are one of the team', () => {
  const bad = (workflowId: string | null) => series(workflowId, { failed: 12 })
  expect(firing(judge([bad(null), bad('a'), bad('b')]))).toEqual(['error_rate a', 'error_rate b'])
  const many = judge([bad(null), ...['a', 'b', 'c', 'd'].map(bad)])
  expect(firing(many)).toEqual(['error_rate null'])
  expect(many.filter(({ state }) => state === 'FIRING')).toHaveLength(5)
})
