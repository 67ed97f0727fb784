import type { Pause } from '../../../db/executions/waits/pauses.ts'
import { NodeFailure } from './failure.ts'
import type { NodeResult } from './node.ts'

/** The pause of a node. Throws a NodeFailure (Abandoned) if it is gone or abandoned. */
export function demandPause(pause: Pause | undefined): Pause {
  if (pause && pause.status !== 'ABANDONED') return pause
  throw new NodeFailure('The wait was abandoned because its execution or iteration ended', {
    type: 'Abandoned',
  })
}

/** The result of a node whose pause stays open for another `leftMs` milliseconds; null is without a limit. */
export function keepWaiting(leftMs: number | null): NodeResult {
  return { pause: { until: leftMs === null ? null : Date.now() + Math.ceil(leftMs) } }
}
