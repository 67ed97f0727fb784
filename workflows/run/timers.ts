import { CancellationScope, sleep } from '@temporalio/workflow'
import { type Frame, listFrames } from './frame.ts'
import type { Plan } from './plan.ts'
import { findNode, joinStep, stepKey } from './walk.ts'

/** Calls `then` after `ms` milliseconds, unless the scope is cancelled before. */
export function afterDelay(scope: CancellationScope, ms: number, summary: string, then: () => void): void {
  scope
    .run(() => sleep(Math.max(1, ms), { summary }))
    .then(then)
    .catch(() => {})
}

/** The timers of the nodes that wait. `fired` is called after each timer that has fired. */
export function createTimers(plan: Plan, root: Frame, fired: () => void) {
  const timers = new Map<string, CancellationScope>()

  /**
   * Starts a timer for every node that waits and cancels the timers of nodes that no longer do. Makes pauses
   * due that were nudged and that no segment is looking at (`busy`). Returns how many nodes wait.
   */
  function keep(busy: ReadonlySet<string>, nudges: Set<string>): number {
    const waiting = new Set<string>()
    for (const frame of listFrames(root)) {
      for (const [id, wait] of Object.entries(frame.waits)) {
        const key = stepKey(id, joinStep(frame.iteration, wait.step))
        waiting.add(key)
        // A segment that is looking at it may have looked too early: the nudge is kept for the next look.
        if (wait.pause && !busy.has(stepKey(id, frame.iteration)) && nudges.delete(key)) wait.due = true
        if (wait.until !== null && !wait.due && !timers.has(key)) start(frame, id, key, wait.until)
      }
    }
    for (const [key, timer] of timers) {
      if (waiting.has(key)) continue
      timers.delete(key)
      timer.cancel()
    }
    return waiting.size
  }

  function start(frame: Frame, id: string, key: string, until: number): void {
    const timer = new CancellationScope()
    timers.set(key, timer)
    const { pause } = frame.waits[id]!
    // The projection settles a node when a timer with its key as summary fires, so a pause has another one.
    const summary = pause ? `time limit of ${findNode(plan, id)!.name}` : key
    afterDelay(timer, until - Date.now(), summary, () => {
      const wait = frame.waits[id]
      if (!wait) return
      if (timers.get(key) === timer) timers.delete(key)
      if (pause) wait.due = true
      else {
        delete frame.waits[id]
        frame.outcomes[id] = { handle: wait.handle }
      }
      fired()
    })
  }

  function cancel(): void {
    for (const timer of timers.values()) timer.cancel()
  }

  return { keep, cancel }
}
