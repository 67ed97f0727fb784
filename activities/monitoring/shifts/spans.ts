import type { Points } from './compare.ts'
import type { MeanComparison } from './judge.ts'

/** Samples of a workflow as they are compared, whatever is measured of them. */
export type PlacedSample = { day: number; whole: boolean; short: boolean }

/** Two stretches that end with the window: a day, and its last hours, in which what has just begun shows sooner. */
export const SHORT_HOURS = 3
export const SPANS = ['whole', 'short'] as const

/** With fewer there is nothing to compare, and that is what is said. */
const LEAST_REFERENCE = 50
const LEAST_CURRENT = 20
/** The last hours are compared only where it is known how these hours differ from others. */
const LEAST_DAYS = 5

/** The parts of samples that are compared for one of the spans; undefined if there are too few. */
export function divide<Sample extends PlacedSample>(
  samples: readonly Sample[],
  span: (typeof SPANS)[number],
): { reference: Sample[]; current: Sample[]; blocks: Sample[][] } | undefined {
  const reference = samples.filter(({ day, whole }) => day > 0 && whole)
  const current = samples.filter((sample) => sample.day === 0 && sample[span])
  if (reference.length < LEAST_REFERENCE || current.length < LEAST_CURRENT) return undefined
  const days = Map.groupBy(
    samples.filter((sample) => sample.day > 0 && sample[span]),
    ({ day }) => day,
  )
  if (span === 'short' && days.size < LEAST_DAYS) return undefined
  return { reference, current, blocks: [...days.values()] }
}

/** The same parts, measured. */
export function measureParts<Sample>(
  { reference, current, blocks }: { reference: Sample[]; current: Sample[]; blocks: Sample[][] },
  measure: (samples: Sample[]) => Points,
): Pick<MeanComparison, 'reference' | 'current' | 'blocks'> {
  return { reference: measure(reference), current: measure(current), blocks: blocks.map(measure) }
}

/** Why nothing can be said. */
export function describeLack(referenceCount: number, currentCount: number, days: number): string {
  const lacks = [
    ...(referenceCount < LEAST_REFERENCE
      ? [`${referenceCount} samples of the ${days - 1} days to compare with (${LEAST_REFERENCE} are needed)`]
      : []),
    ...(currentCount < LEAST_CURRENT
      ? [`${currentCount} samples of the last 24 hours (${LEAST_CURRENT} are needed)`]
      : []),
  ]
  return `There are only ${lacks.join(', and ')}`
}
