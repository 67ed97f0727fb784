import type { Db } from '../../../../db/connection.ts'
import { listShifting, readShiftChecks } from '../../../../db/monitoring/shifts/checks.ts'
import { type ComparedScore, readScores } from '../../../../db/monitoring/shifts/sentimentscores.ts'
import { type Work, workInTurns } from '../../../../workflows/turns.ts'
import type { Detector, DetectorVerdict } from '../../alerts/detector.ts'
import { meanOf, type Points } from '../compare.ts'
import { isWorse, judgeShift, type Shift } from '../judge.ts'
import { describeLack, divide, measureParts, SHORT_HOURS, SPANS } from '../spans.ts'
import { type ObservedShift, settleShift } from '../verdict.ts'

/** The days before a window that are looked at: the last one is compared with the four weeks that ended a day before it. */
export const SENTIMENT_DAYS = 29
const SENTIMENT_METRIC = 'sentiment'

/** A smaller shift would not be noticed by people. */
const LEAST_SHIFT = 0.12
const SEVERE = 0.3
const MOST_EXAMPLES = 5

/** Whether what users say to the agents of a team sounds better or worse than it did. */
export const detectSentiment: Detector = async ({ db, teamId, window: { to }, signal }) => {
  const verdicts: DetectorVerdict[] = []
  for (const workflowId of await listShifting(db, teamId, 'SENTIMENT', { to, days: SENTIMENT_DAYS })) {
    signal.throwIfAborted()
    const before = (await readShiftChecks(db, workflowId)).get(SENTIMENT_METRIC)
    verdicts.push(await settleShift(db, teamId, to, before, () => lookAt(db, { teamId, workflowId, to })))
  }
  return verdicts
}

async function lookAt(
  db: Db,
  asked: { teamId: string; workflowId: string; to: Date },
): Promise<ObservedShift> {
  const { teamId, workflowId, to } = asked
  const scores = await readScores(db, workflowId, { to, days: SENTIMENT_DAYS, hours: SHORT_HOURS })
  return workInTurns(judgeScores(scores, workflowId), teamId)
}

/** Compares the scores of a workflow, for a day and for some hours. */
export function* judgeScores(scores: ComparedScore[], workflowId: string): Work<ObservedShift> {
  const about = {
    workflowId,
    metric: SENTIMENT_METRIC,
    referenceCount: scores.filter(({ day, whole }) => day > 0 && whole).length,
    currentCount: scores.filter(({ day, whole }) => day === 0 && whole).length,
  }
  let worst: { shift: Shift; observed: number; expected: number; current: ComparedScore[] } | undefined
  for (const span of SPANS) {
    const divided = divide(scores, span)
    if (!divided) continue
    const parts = measureParts(divided, readFigures)
    const asked = { ...parts, scale: 1, floor: LEAST_SHIFT }
    const shift = yield* judgeShift(asked, { tests: SPANS.length, seed: scores.length })
    const [observed, expected] = [meanOf(parts.current)[0]!, meanOf(parts.reference)[0]!]
    if (isWorse(shift, worst?.shift)) worst = { shift, observed, expected, current: divided.current }
  }
  if (!worst)
    return { ...about, lack: describeLack(about.referenceCount, about.currentCount, SENTIMENT_DAYS) }
  const { shift, observed, expected, current } = worst
  const isBetter = observed > expected
  const examples = current.toSorted((a, b) => (isBetter ? b.score - a.score : a.score - b.score))
  return {
    ...about,
    shift,
    observed,
    expected,
    finding: {
      type: 'SENTIMENT',
      severity: isBetter ? 'LOW' : expected - observed >= SEVERE ? 'HIGH' : 'MEDIUM',
      message:
        `What users write to the workflow's agent sounds ${isBetter ? 'better' : 'worse'} than in the four weeks ` +
        `before: ${observed.toFixed(2)} on average instead of ${expected.toFixed(2)}, from -1 to 1`,
      sampleExecutionIds: [...new Set(examples.map(({ executionId }) => executionId))].slice(
        0,
        MOST_EXAMPLES,
      ),
    },
  }
}

const readFigures = (scores: { score: number }[]): Points => ({
  figures: Float32Array.from(scores, ({ score }) => score),
  width: 1,
})
