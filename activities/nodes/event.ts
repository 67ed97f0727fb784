import * as v from 'valibot'
import { openPause, type Pause, readPause } from '../../db/executions/waits/pauses.ts'
import { nameField } from '../../workflows/nodes/fields.ts'
import { waitLimitField } from '../../workflows/nodes/pauses.ts'
import { renderKey } from './kit/config.ts'
import type { NodeContext, NodeResult, NodeRunner } from './kit/node.ts'
import { demandPause, keepWaiting } from './kit/pauses.ts'

/** WAIT_FOR_EVENT: waits for an event that is sent to its name or its URL, and outputs the event's data. */
export const runWaitForEvent: NodeRunner = async (context) => {
  const { spot } = context
  const wanted = {
    kind: 'EVENT' as const,
    name: await renderKey(context, 'name', nameField),
    timeoutMs: (await renderKey(context, 'timeoutMs', v.optional(waitLimitField))) ?? null,
  }
  return leave(context, await openPause(spot.store, spot, wanted))
}

/** Looks again at a WAIT_FOR_EVENT, after a nudge or a timeout. */
export const resumeWaitForEvent: NodeRunner = async (context) =>
  leave(context, await readPause(context.spot.store, context.spot))

/** If no event came in time, the input is passed on by the handle `timeout`. */
function leave({ input }: NodeContext, pause: Pause | undefined): NodeResult {
  const { status, data, leftMs } = demandPause(pause)
  if (status === 'OPEN') return keepWaiting(leftMs)
  return status === 'EXPIRED' ? { output: input, handle: 'timeout' } : { output: data }
}
