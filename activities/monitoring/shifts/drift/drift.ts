import type { Db } from '../../../../db/connection.ts'
import { listShifting, readShiftChecks } from '../../../../db/monitoring/shifts/checks.ts'
import {
  type ComparedSample,
  DRIFT_SIDES,
  type DriftSide,
  readDriftSamples,
} from '../../../../db/monitoring/shifts/driftsamples.ts'
import { type Work, workInTurns } from '../../../../workflows/turns.ts'
import { EMBEDDING_MODEL, openRows, ROW_LENGTH } from '../../../guardrails/semantic/embedder.ts'
import type { Detector, DetectorInput, DetectorVerdict } from '../../alerts/detector.ts'
import { meanOf, measureSpread, type Points } from '../compare.ts'
import { isWorse, judgeShift, type Shift } from '../judge.ts'
import { describeLack, divide, measureParts, SHORT_HOURS, SPANS } from '../spans.ts'
import { type ObservedShift, settleShift } from '../verdict.ts'

/** The days before a window that are looked at: the last one is compared with the fourteen that ended a day before it. */
export const DRIFT_DAYS = 15
const DRIFT_METRICS: Record<DriftSide, string> = { INPUT: 'drift.input', OUTPUT: 'drift.output' }

/** Where a mean has moved by this part of how far texts lie apart, about every eighth text is of something else. */
const LEAST_MEANING = 0.16
/** By how much more than by half it is likely that a current text is longer, or shorter, than one before. */
const LEAST_LENGTH = 0.15
const SEVERE_TIMES = 2
const MOST_EXAMPLES = 5
const TESTS = SPANS.length * DRIFT_SIDES.length * 2

/** Whether the inputs and outputs of a team's workflows are about something else, or of another length, than before. */
export const detectDrift: Detector = async ({ db, teamId, window, signal }) => {
  const verdicts: DetectorVerdict[] = []
  for (const workflowId of await listShifting(db, teamId, 'DRIFT', { to: window.to, days: DRIFT_DAYS })) {
    const before = await readShiftChecks(db, workflowId)
    for (const side of DRIFT_SIDES) {
      signal.throwIfAborted()
      const look = () => lookAt(db, { teamId, workflowId, side, to: window.to })
      verdicts.push(await settleShift(db, teamId, window.to, before.get(DRIFT_METRICS[side]), look))
    }
  }
  return verdicts
}

type SampledSide = { teamId: string; workflowId: string; side: DriftSide; to: DetectorInput['window']['to'] }

async function lookAt(db: Db, { teamId, workflowId, side, to }: SampledSide): Promise<ObservedShift> {
  const span = { to, days: DRIFT_DAYS, hours: SHORT_HOURS }
  const samples = await readDriftSamples(db, { workflowId, side, model: EMBEDDING_MODEL }, span)
  const about = { workflowId, metric: DRIFT_METRICS[side] }
  return workInTurns(judgeSamples(samples, { ...about, side }), teamId)
}

/** Compares the samples of one side of a workflow by their meanings and their lengths, for a day and for some hours. */
export function* judgeSamples(
  samples: ComparedSample[],
  { side, ...about }: Pick<ObservedShift, 'workflowId' | 'metric'> & { side: DriftSide },
): Work<ObservedShift> {
  const counts = {
    referenceCount: samples.filter(({ day, whole }) => day > 0 && whole).length,
    currentCount: samples.filter(({ day, whole }) => day === 0 && whole).length,
  }
  let worst: { shift: Shift; what: 'meaning' | 'length'; examples: string[] } | undefined
  const readable = samples.filter(({ meaning }) => meaning !== null)
  yield 1 + Math.ceil((readable.length * ROW_LENGTH) / 400)
  const readMeanings = createReading(readable)
  for (const span of SPANS) {
    const meant = divide(readable, span)
    if (meant) {
      yield 1 + Math.ceil((readable.length * ROW_LENGTH) / 2_000)
      const parts = measureParts(meant, readMeanings)
      const scale = measureSpread(parts.reference) || 1
      const asked = { ...parts, scale, floor: LEAST_MEANING }
      const shift = yield* judgeShift(asked, { tests: TESTS, seed: samples.length })
      if (isWorse(shift, worst?.shift))
        worst = { shift, what: 'meaning', examples: findFarthest(meant.current, parts) }
    }
    const written = divide(samples, span)
    if (written) {
      const parts = measureParts(written, createRanking(written.reference))
      const asked = { ...parts, scale: 1, floor: LEAST_LENGTH }
      const shift = yield* judgeShift(asked, { tests: TESTS, seed: samples.length })
      if (isWorse(shift, worst?.shift))
        worst = { shift, what: 'length', examples: pickFirst(written.current) }
    }
  }
  if (!worst)
    return { ...about, ...counts, lack: describeLack(counts.referenceCount, counts.currentCount, DRIFT_DAYS) }
  const { shift, what, examples } = worst
  const changed = what === 'meaning' ? 'are about something else' : 'are of another length'
  return {
    ...about,
    ...counts,
    shift,
    observed: shift.effect,
    expected: 0,
    finding: {
      type: 'DRIFT',
      severity: shift.effect >= SEVERE_TIMES * shift.threshold ? 'HIGH' : 'MEDIUM',
      message:
        `The ${side === 'INPUT' ? 'inputs' : 'outputs'} of the workflow ${changed} than in the two weeks before: ` +
        `a shift of ${shift.effect.toFixed(2)}, where up to ${shift.threshold.toFixed(2)} is usual`,
      sampleExecutionIds: examples,
    },
  }
}

/** Reads the meanings of samples, each of them once. */
function createReading(samples: Pick<ComparedSample, 'meaning'>[]) {
  const rows = new Map(samples.map((sample) => [sample, openRows(sample.meaning!)]))
  return (chosen: Pick<ComparedSample, 'meaning'>[]): Points => {
    const figures = new Float32Array(chosen.length * ROW_LENGTH)
    for (const [place, sample] of chosen.entries()) figures.set(rows.get(sample)!, place * ROW_LENGTH)
    return { figures, width: ROW_LENGTH }
  }
}

/** Places lengths among those of the reference, from 0 to 1: a few very long texts must not outweigh all others. */
function createRanking(reference: { length: number }[]): (samples: { length: number }[]) => Points {
  const sorted = Float64Array.from(reference, ({ length }) => length).sort()
  const below = (length: number, orSame: boolean): number => {
    let [from, to] = [0, sorted.length]
    while (from < to) {
      const middle = (from + to) >> 1
      if (sorted[middle]! < length || (orSame && sorted[middle]! === length)) from = middle + 1
      else to = middle
    }
    return from
  }
  const rank = ({ length }: { length: number }) =>
    (below(length, false) + below(length, true)) / 2 / sorted.length
  return (samples) => ({ figures: Float32Array.from(samples, rank), width: 1 })
}

/** The current ones that lie farthest in the direction in which the mean has moved. */
function findFarthest(current: ComparedSample[], parts: { reference: Points; current: Points }): string[] {
  const from = meanOf(parts.reference)
  const moved = meanOf(parts.current).map((figure, i) => figure - from[i]!)
  const { figures, width } = parts.current
  const placed = current.map(({ executionId }, place) => ({
    executionId,
    along: moved.reduce((sum, figure, i) => sum + figure * figures[place * width + i]!, 0),
  }))
  return pickFirst(placed.sort((a, b) => b.along - a.along))
}

const pickFirst = (samples: { executionId: string }[]) =>
  samples.slice(0, MOST_EXAMPLES).map(({ executionId }) => executionId)
