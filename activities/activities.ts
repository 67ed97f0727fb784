import type { Activities } from '../workflows/run/messages.ts'
import type { ActivityDeps } from './deps.ts'
import { attemptInPlace, segmentInPlace } from './fairness/turns.ts'
import { runNode } from './run/attempt.ts'
import { observeAttempt, observeSegment } from './run/observe.ts'
import { walkSegment } from './run/segment.ts'

/** The activities that a worker registers, bound to their dependencies. */
export function createActivities(deps: ActivityDeps): Activities {
  return {
    walkSegment: (input) =>
      segmentInPlace(deps, input, (placed) => observeSegment(placed, input, walkSegment)),
    runNode: (input) => attemptInPlace(deps, input, (placed) => observeAttempt(placed, input, runNode)),
  }
}
