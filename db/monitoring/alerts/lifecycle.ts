import type { AlertSeverity } from '../notices/notices.ts'

/** The last state of a metric of a workflow, or of the team. */
export type WatchState = {
  state: 'FIRING' | 'QUIET' | 'INSUFFICIENT_DATA' | 'FAILED'
  /** The end of the window since which it is so. */
  since: Date
  quietWindows: number
}

/** The verdict of the present window. */
export type WatchVerdict = {
  state: WatchState['state']
  finding?: { severity: AlertSeverity; observed: number } | undefined
}

/** The alert that is not resolved yet, or the one that was resolved last. */
export type KnownAlert = { severity: AlertSeverity; observed: number; resolvedAt: Date | null }

/** The change of its alert. */
export type AlertStep = 'OPEN' | 'UPDATE' | 'RESOLVE' | 'NONE'

/** The number of quiet windows that resolve an alert; or the time with too little data for any verdict. */
const QUIET_WINDOWS = 2
const SILENT_MS = 24 * 3_600_000

/** For so long after its end an alert is not opened again, unless it is worse: graver, or so many times as far. */
const COOL_DOWN_MS = 6 * 3_600_000
const WORSE = 1.5

const GRAVENESS: AlertSeverity[] = ['LOW', 'MEDIUM', 'HIGH', 'CRITICAL']

/** The graver one. */
export function raiseSeverity(a: AlertSeverity, b: AlertSeverity): AlertSeverity {
  return GRAVENESS.indexOf(a) >= GRAVENESS.indexOf(b) ? a : b
}

/**
 * What a window makes of the state before it and of its alert. A window with too little data neither adds to the quiet ones
 * nor takes them back.
 */
export function stepAlert(
  before: WatchState | undefined,
  judged: WatchVerdict,
  windowTo: Date,
  known: KnownAlert | undefined,
): { next: WatchState; step: AlertStep } {
  const since = before?.state === judged.state ? before.since : windowTo
  const next: WatchState = { state: judged.state, since, quietWindows: before?.quietWindows ?? 0 }
  if (judged.state === 'FIRING') next.quietWindows = 0
  if (judged.state === 'QUIET') next.quietWindows++
  const live = known && known.resolvedAt === null ? known : undefined
  if (live) {
    if (judged.finding) return { next, step: 'UPDATE' }
    const isQuiet = judged.state === 'QUIET' && next.quietWindows >= QUIET_WINDOWS
    const isSilent = judged.state === 'INSUFFICIENT_DATA' && windowTo.getTime() - since.getTime() >= SILENT_MS
    return { next, step: isQuiet || isSilent ? 'RESOLVE' : 'NONE' }
  }
  if (!judged.finding) return { next, step: 'NONE' }
  const cools = known?.resolvedAt && windowTo.getTime() < known.resolvedAt.getTime() + COOL_DOWN_MS
  const isWorse =
    known &&
    (raiseSeverity(known.severity, judged.finding.severity) !== known.severity ||
      Math.abs(judged.finding.observed) >= WORSE * Math.abs(known.observed))
  return { next, step: cools && !isWorse ? 'NONE' : 'OPEN' }
}
