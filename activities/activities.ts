import type { Activities } from '../workflows/run.ts'
import { runNode } from './attempt.ts'
import { walkSegment } from './segment.ts'
import type { ActivityDeps } from './step.ts'

/** The activities a worker registers, bound to what they need. */
export function createActivities(deps: ActivityDeps): Activities {
  return {
    walkSegment: (input) => walkSegment(deps, input),
    runNode: (input) => runNode(deps, input),
  }
}
