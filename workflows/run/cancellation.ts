import { CancellationScope } from '@temporalio/workflow'
import { type Frame, framesTo, listFrames } from './frame.ts'
import type { Plan } from './plan.ts'
import { stepKey } from './walk.ts'

/**
 * The cancellation scopes of a run: what is under way ends with its iteration, and all of it with the run.
 */
export function createCancellation(plan: Plan, root: Frame) {
  const whole = new CancellationScope()
  /** The scopes of iterations, by the stepKey of the loop's id and the iteration. */
  const scopes = new Map<string, CancellationScope>()

  function find(frame: Frame): CancellationScope {
    if (frame === root) return whole
    const key = stepKey(frame.loopId, frame.iteration)
    let own = scopes.get(key)
    if (!own) {
      const parent = find(framesTo(plan, root, frame).at(-2)!)
      own = new CancellationScope({ cancellable: true, parent })
      scopes.set(key, own)
    }
    return own
  }

  /** Cancels what is still under way in iterations that are over because one of their branches has failed. */
  function drop(): void {
    const live = new Set(listFrames(root).map(({ loopId, iteration }) => stepKey(loopId, iteration)))
    for (const [key, own] of scopes) {
      if (live.has(key)) continue
      scopes.delete(key)
      own.cancel()
    }
  }

  return { whole, find, drop }
}
