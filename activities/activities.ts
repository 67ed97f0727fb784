import type { Activities } from '../workflows/messages.ts'
import { runNode } from './attempt.ts'
import { observeAttempt, observeSegment } from './observe.ts'
import { walkSegment } from './segment.ts'
import type { ActivityDeps } from './step.ts'

/** The activities a worker registers, bound to what they need. */
export function createActivities(deps: ActivityDeps): Activities {
  return {
    walkSegment: (input) => observeSegment(deps, input, walkSegment),
    runNode: (input) => observeAttempt(deps, input, runNode),
  }
}
