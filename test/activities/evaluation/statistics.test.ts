import { expect, test } from 'vitest'
import {
  intervalOfMean,
  intervalOfShare,
  summarize,
  testSignedRanks,
  testSigns,
} from '../../../activities/evaluation/statistics.ts'

// The expected figures were computed in Python with mpmath, to 30 places, by the textbook's formulas.

test('a summary has the interval of Student for its mean', () => {
  const found = summarize([3, 4, 5, 4, 2, 5, 5, 1, 4, 4])
  expect(found).toMatchObject({ n: 10, mean: 3.7, median: 4, min: 1, max: 5 })
  expect(found.ci95!.low).toBeCloseTo(2.74321478104, 9)
  expect(found.ci95!.high).toBeCloseTo(4.65678521896, 9)
  // With one degree of freedom, the quantile is 12.7062047362.
  expect(intervalOfMean([1, 2])!.high).toBeCloseTo(1.5 + 12.7062047362 / 2, 8)
  expect(summarize([])).toEqual({ n: 0, mean: null, median: null, min: null, max: null, ci95: null })
  expect(summarize([2])).toMatchObject({ n: 1, mean: 2, ci95: null })
  expect(summarize([4, 1, 3, 2]).median).toBe(2.5)
})

test('shares have the interval of Wilson', () => {
  expect(intervalOfShare(8, 10)!.low).toBeCloseTo(0.490162471537, 10)
  expect(intervalOfShare(8, 10)!.high).toBeCloseTo(0.943317848546, 10)
  expect(intervalOfShare(450, 500)!.low).toBeCloseTo(0.870578090368, 10)
  expect(intervalOfShare(0, 10)).toEqual({ low: 0, high: expect.closeTo(0.277532799863, 10) })
  expect(intervalOfShare(0, 0)).toBeNull()
})

test('the sign test is exact', () => {
  expect(testSigns(2, 9)).toBeCloseTo(0.0654296875, 10)
  expect(testSigns(40, 80)).toBeCloseTo(0.000330400018391, 12)
  expect([testSigns(5, 5), testSigns(0, 0)]).toEqual([1, 1])
})

test('the signed-rank test counts all signs of few differences, with ties, and approximates for many', () => {
  // All 2^n choices of signs, counted.
  expect(testSignedRanks([1, -0.5, 2, 0, 1.5, 0.5, -1, 2, 1, 0.5, 1])).toBeCloseTo(0.046875, 12)
  expect(testSignedRanks([1.1, 2.2, -3.3, 4.4, 5.5, 6.6])).toBeCloseTo(0.15625, 12)
  const many = Array.from({ length: 80 }, (_, at) => (((at * 7) % 11) - 4) / 2)
  expect(testSignedRanks(many)).toBeCloseTo(0.0121915100428, 10)
  expect(testSignedRanks([0, 0])).toBe(1)
})
