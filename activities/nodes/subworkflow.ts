import * as v from 'valibot'
import { isEnded } from '../../db/executions.ts'
import { Fault } from '../../db/fault.ts'
import type { Store } from '../../db/scope.ts'
import { type Child, readChild, readChildOutput, startChild } from '../../db/subworkflows.ts'
import { isObject } from '../../workflows/inputs.ts'
import { record } from '../../workflows/nodes/fields.ts'
import { workflowId } from '../../workflows/nodes/pauses.ts'
import { readKey } from './config.ts'
import { NodeFailure } from './failure.ts'
import type { NodeContext, NodeResult, NodeRunner } from './node.ts'

/** How often a start is tried whose workflow was changed at that moment. */
const TRIES = 3

/** SUB_WORKFLOW: starts another workflow's run, and waits for its end where it shall. */
export const runSubWorkflow: NodeRunner = async (context) => {
  const { config, spot } = context
  const wait = await readKey(context, 'wait', v.optional(v.boolean('must be true or false'), true))
  const call = {
    workflowId: (await readKey(context, 'workflowId', workflowId)).toLowerCase(),
    input: config.input === undefined ? asObject(context.input) : await readKey(context, 'input', record),
    wait,
    traceparent: spot.traceparent,
  }
  const child = await start(context, call)
  return wait ? leave(context, child) : { output: { executionId: child.executionId } }
}

/** SUB_WORKFLOW whose child may have ended. */
export const resumeSubWorkflow: NodeRunner = async (context) =>
  leave(context, await readChild(context.spot.store, context.spot))

async function start({ spot }: NodeContext, call: Parameters<typeof startChild>[2]): Promise<Child> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await startChild(spot.store, spot, call)
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      if (error.code === 'UNAVAILABLE' && attempt < TRIES) continue
      throw new NodeFailure(error.message, { type: 'SubWorkflowRefused' })
    }
  }
}

async function leave({ spot }: NodeContext, child: Child | undefined): Promise<NodeResult> {
  if (!child) throw deleted()
  const { executionId, status, errorMessage } = child
  if (!isEnded(status)) return { pause: { until: null } }
  if (status === 'SUCCESS') return { output: await readOutput(spot.store, executionId) }
  if (status === 'FAILED') {
    throw new NodeFailure(errorMessage ?? 'The sub-workflow failed', { type: 'SubWorkflowFailed' })
  }
  // Its reason speaks of "the run": that would be taken for this one.
  const message = `The sub-workflow was cancelled: ${errorMessage ?? 'without a reason'}`
  throw new NodeFailure(message, { type: 'SubWorkflowCancelled' })
}

// A child that is gone is this node's failure, not the end of the run that asks for it.
async function readOutput(store: Store, executionId: string): Promise<unknown> {
  try {
    return await readChildOutput(store, executionId)
  } catch (error) {
    throw error instanceof Fault && error.code === 'NOT_FOUND' ? deleted() : error
  }
}

function deleted(): NodeFailure {
  return new NodeFailure('The run of the sub-workflow was deleted', { type: 'SubWorkflowDeleted' })
}

function asObject(input: unknown): Record<string, unknown> {
  if (isObject(input)) return input
  return input === null || input === undefined ? {} : { value: input }
}
