import * as v from 'valibot'
import { openPause, type Pause, readPause } from '../../db/pauses.ts'
import { name } from '../../workflows/nodes/fields.ts'
import { patience } from '../../workflows/nodes/pauses.ts'
import { demandPause, waitOn } from './approval.ts'
import { readKey } from './config.ts'
import type { NodeContext, NodeResult, NodeRunner } from './node.ts'

/** WAIT_FOR_EVENT: waits for what is sent to its name or its URL, and outputs it. */
export const runWaitForEvent: NodeRunner = async (context) => {
  const { spot } = context
  const asked = {
    kind: 'EVENT' as const,
    name: await readKey(context, 'name', name),
    timeoutMs: (await readKey(context, 'timeoutMs', v.optional(patience))) ?? null,
  }
  return leave(context, await openPause(spot.store, spot, asked))
}

/** WAIT_FOR_EVENT that was nudged, or whose time is up. */
export const resumeWaitForEvent: NodeRunner = async (context) =>
  leave(context, await readPause(context.spot.store, context.spot))

/** Without an event in time the input goes on, by the handle timeout. */
function leave({ input }: NodeContext, pause: Pause | undefined): NodeResult {
  const { status, data, leftMs } = demandPause(pause)
  if (status === 'OPEN') return waitOn(leftMs)
  return status === 'EXPIRED' ? { output: input, handle: 'timeout' } : { output: data }
}
