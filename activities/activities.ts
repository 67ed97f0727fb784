import type { Activities } from '../workflows/run/messages.ts'
import type { ActivityDeps } from './deps.ts'
import { attemptInPlace, segmentInPlace } from './fairness/turns.ts'
import { runNode } from './run/attempt.ts'
import { observeAttempt, observeSegment } from './run/observe.ts'
import { walkSegment } from './run/segment.ts'
import { demandCaller } from './temporal/identity.ts'

/** The activities that a worker registers, bound to their dependencies. */
export function createActivities(deps: ActivityDeps): Activities {
  return {
    walkSegment: async (input) =>
      segmentInPlace(deps, demandCaller(input), (placed, segment) =>
        observeSegment(placed, segment, walkSegment),
      ),
    runNode: async (input) =>
      attemptInPlace(deps, demandCaller(input), (placed, node) => observeAttempt(placed, node, runNode)),
  }
}
