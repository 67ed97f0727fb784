import type { CaseCounts, CasePair, Counted } from '../../db/evaluation/batches/results.ts'
import type { BatchRun } from '../../db/evaluation/batches/runs.ts'
import {
  type FigureSummary,
  type Interval,
  intervalOfMean,
  intervalOfShare,
  summarize,
  testSignedRanks,
  testSigns,
} from './statistics.ts'

/** A share with Wilson's interval at 95 %; null of nothing. */
type RatedShare = { hits: number; n: number; rate: number | null; ci95: Interval | null }

export type BatchSummary = {
  /** By dimension. `failed` are those of which the judge gave no score. */
  dimensions: Record<string, FigureSummary & { failed: number }>
  compositeScore: FigureSummary
  passRate: RatedShare
  goldStandard: RatedShare & { rungs: Record<string, number> }
  /** The cases whose material may have tried to tell the judge what to say. */
  flaggedCases: number
  failureReasons: { reason: string; count: number }[]
}

export function summarizeBatch(run: BatchRun, counts: CaseCounts): BatchSummary {
  const dimensions = run.evalDimensions.map((name) => {
    const own = counts.scores.filter(({ dimension }) => dimension === name)
    const scored = own.filter((row): row is typeof row & { value: number } => row.value !== null)
    const failed = own.filter(({ value }) => value === null).reduce((sum, { n }) => sum + n, 0)
    return [name, { ...summarize(spread(scored)), failed }] as const
  })
  const { match, miss, rungs } = counts.gold
  return {
    dimensions: Object.fromEntries(dimensions),
    compositeScore: summarize(spread(counts.composites)),
    passRate: shareOf(run.passedCases, run.completedCases),
    goldStandard: {
      ...shareOf(match, match + miss),
      rungs: Object.fromEntries(rungs.map(({ value, n }) => [value, n])),
    },
    flaggedCases: counts.flagged,
    failureReasons: counts.reasons.map(({ value, n }) => ({ reason: value, count: n })),
  }
}

const spread = (counted: Counted<number>[]): number[] =>
  counted.flatMap(({ value, n }) => new Array<number>(n).fill(value))

const shareOf = (hits: number, n: number): RatedShare => ({
  ...{ hits, n, rate: n === 0 ? null : hits / n, ci95: intervalOfShare(hits, n) },
})

/** How scores of the same cases differ. P-values are two-sided; small ones speak against chance. */
type PairedDifference = {
  n: number
  before: number | null
  after: number | null
  meanDifference: number | null
  ci95: Interval | null
  better: number
  worse: number
  /** From Wilcoxon's signed-rank test, and from the sign test. */
  pValue: number
  signPValue: number
}

export type BatchComparison = {
  paired: number
  unpaired: { before: number; after: number }
  compositeScore: PairedDifference
  dimensions: Record<string, PairedDifference>
  /** McNemar's exact test of those that pass in one of the two only. */
  pass: { before: number | null; after: number | null; gained: number; lost: number; pValue: number }
}

/** Compares two batches by the cases that both have. */
export function compareBatches(
  pairs: CasePair[],
  unpaired: BatchComparison['unpaired'],
  dimensions: string[],
): BatchComparison {
  const differ = (read: (side: CasePair['before']) => number | null) =>
    findDifference(pairs.map(({ before, after }) => [read(before), read(after)] as const))
  const gained = pairs.filter(({ before, after }) => !before.passed && after.passed).length
  const lost = pairs.filter(({ before, after }) => before.passed && !after.passed).length
  const rate = (side: 'before' | 'after') =>
    pairs.length === 0 ? null : pairs.filter((pair) => pair[side].passed).length / pairs.length
  return {
    paired: pairs.length,
    unpaired,
    compositeScore: differ(({ composite }) => composite),
    dimensions: Object.fromEntries(
      dimensions.map((name) => [name, differ(({ scores }) => scores[name] ?? null)]),
    ),
    pass: { before: rate('before'), after: rate('after'), gained, lost, pValue: testSigns(gained, lost) },
  }
}

function findDifference(values: (readonly [number | null, number | null])[]): PairedDifference {
  const both = values.filter(
    (pair): pair is readonly [number, number] => pair[0] !== null && pair[1] !== null,
  )
  const differences = both.map(([before, after]) => after - before)
  const { mean } = summarize(differences)
  const better = differences.filter((difference) => difference > 1e-9).length
  const worse = differences.filter((difference) => difference < -1e-9).length
  return {
    n: both.length,
    before: summarize(both.map(([before]) => before)).mean,
    after: summarize(both.map(([, after]) => after)).mean,
    meanDifference: mean,
    ci95: intervalOfMean(differences),
    better,
    worse,
    pValue: testSignedRanks(differences),
    signPValue: testSigns(better, worse),
  }
}
