import type { Activities } from '../workflows/run/messages.ts'
import type { ActivityDeps } from './deps.ts'
import { runNode } from './run/attempt.ts'
import { observeAttempt, observeSegment } from './run/observe.ts'
import { walkSegment } from './run/segment.ts'
import { demandCaller } from './temporal/identity.ts'

/** The activities that a worker registers, bound to their dependencies. */
export function createActivities(deps: ActivityDeps): Activities {
  return {
    walkSegment: async (input) => observeSegment(deps, demandCaller(input), walkSegment),
    runNode: async (input) => observeAttempt(deps, demandCaller(input), runNode),
  }
}
