import { CancellationScope, sleep } from '@temporalio/workflow'
import { type Frame, listFrames } from './frame.ts'
import type { Plan } from './plan.ts'
import { findNode, stepKey } from './walk.ts'

/** Does something after a time, unless the scope is cancelled before. */
export function after(scope: CancellationScope, ms: number, summary: string, then: () => void): void {
  scope
    .run(() => sleep(Math.max(1, ms), { summary }))
    .then(then)
    .catch(() => {})
}

/** The timers of the nodes that wait; `told` is called whenever one of them need wait no more. */
export function createTimers(plan: Plan, root: Frame, told: () => void) {
  const timers = new Map<string, CancellationScope>()

  /**
   * Gives every node that waits its timer, ends the timers of those that wait no more; answers how many wait. Those
   * that were nudged, and that nobody is at (`busy`), are due.
   */
  function keep(busy: ReadonlySet<string>, nudges: Set<string>): number {
    const waiting = new Set<string>()
    for (const frame of listFrames(root)) {
      for (const [id, wait] of Object.entries(frame.waits)) {
        const key = stepKey(id, frame.iteration)
        waiting.add(key)
        // Whoever looks at it now may have looked too early: the nudge is for the next look.
        if (wait.pause && !busy.has(key) && nudges.delete(key)) wait.due = true
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
    // The projection takes a timer that has a node's key for the end of that node.
    const summary = pause ? `time limit of ${findNode(plan, id)!.name}` : key
    after(timer, until - Date.now(), summary, () => {
      const wait = frame.waits[id]
      if (!wait) return
      if (timers.get(key) === timer) timers.delete(key)
      if (pause) wait.due = true
      else {
        delete frame.waits[id]
        frame.outcomes[id] = { handle: wait.handle }
      }
      told()
    })
  }

  function cancel(): void {
    for (const timer of timers.values()) timer.cancel()
  }

  return { keep, cancel }
}
