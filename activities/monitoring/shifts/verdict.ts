import type { Db } from '../../../db/connection.ts'
import { keepShiftCheck, type ShiftCheck } from '../../../db/monitoring/shifts/checks.ts'
import type { AlertFinding, DetectorVerdict } from '../alerts/detector.ts'
import type { Shift } from './judge.ts'

/** What a window of a workflow shows of a metric: the comparisons that were made, the one that says most first. */
export type ObservedShift = {
  workflowId: string
  metric: string
  referenceCount: number
  currentCount: number
} & (
  | { lack: string }
  | {
      shift: Shift
      observed: number
      expected: number | null
      finding: Omit<AlertFinding, 'observed' | 'expected' | 'threshold'>
    }
)

/** A hit this much earlier still counts as the one before: hours without a check may lie between. */
const IN_A_ROW_MS = 3 * 3_600_000

/**
 * The verdict on a window, and its row. A shift must be there in two windows in a row, unless it is plain. A window
 * that was judged already keeps its verdict, so that a process gives the same answer after a crash.
 */
export async function settleShift(
  db: Db,
  teamId: string,
  to: Date,
  before: ShiftCheck | undefined,
  look: () => Promise<ObservedShift>,
): Promise<DetectorVerdict> {
  if (before && before.windowTo >= to) return showCheck(before)
  const seen = await look()
  const check = judgeSeen(seen, to, before)
  await keepShiftCheck({ db }, teamId, check)
  return showCheck(check)
}

function judgeSeen(seen: ObservedShift, windowTo: Date, before: ShiftCheck | undefined): ShiftCheck {
  const { workflowId, metric, referenceCount, currentCount } = seen
  const base = { workflowId, metric, windowTo, referenceCount, currentCount }
  const nothing = { statistic: null, threshold: null, observed: null, expected: null, hits: 0, finding: null }
  if ('lack' in seen) return { ...base, ...nothing, state: 'INSUFFICIENT_DATA', reason: seen.lack }
  const { shift, observed, expected } = seen
  const figures = { statistic: shift.effect, threshold: shift.threshold, observed, expected }
  if (!shift.isHit) return { ...base, ...figures, state: 'QUIET', reason: null, hits: 0, finding: null }
  const isInRow = before !== undefined && windowTo.getTime() - before.windowTo.getTime() <= IN_A_ROW_MS
  const hits = isInRow ? before.hits + 1 : 1
  const isFiring = hits > 1 || shift.isPlain
  const finding: AlertFinding = { ...seen.finding, observed, expected, threshold: shift.threshold }
  const reason = isFiring ? null : 'There may be a shift: the next window will tell'
  return {
    ...base,
    ...figures,
    state: isFiring ? 'FIRING' : 'QUIET',
    reason,
    hits,
    finding: isFiring ? finding : null,
  }
}

function showCheck({ workflowId, metric, state, reason, finding }: ShiftCheck): DetectorVerdict {
  return {
    metric,
    workflowId,
    state,
    ...(finding ? { finding: finding as AlertFinding } : {}),
    ...(reason === null ? {} : { reason }),
  }
}
