import * as v from 'valibot'
import {
  type ChildExecution,
  readChild,
  readChildOutput,
  startChild,
} from '../../db/executions/starts/subworkflows.ts'
import { isEnded } from '../../db/executions/status.ts'
import { Fault } from '../../db/fault.ts'
import { copyNamedFiles } from '../../db/files/named.ts'
import type { Store } from '../../db/scope.ts'
import { isObject } from '../../workflows/json.ts'
import { anyObject } from '../../workflows/nodes/fields.ts'
import { workflowIdField } from '../../workflows/nodes/pauses.ts'
import { renderKey } from './kit/config.ts'
import { NodeFailure } from './kit/failure.ts'
import { listOwnItems } from './kit/items.ts'
import type { NodeContext, NodeResult, NodeRunner } from './kit/node.ts'

/** How often a start is tried if the workflow is changed at that very moment. */
const TRIES = 3

/** SUB_WORKFLOW: starts an execution of another workflow and, unless `wait` is false, waits for its end. */
export const runSubWorkflow: NodeRunner = async (context) => {
  const { config, spot } = context
  const wait = await renderKey(context, 'wait', v.optional(v.boolean('must be true or false'), true))
  const call = {
    workflowId: (await renderKey(context, 'workflowId', workflowIdField)).toLowerCase(),
    input:
      config.itemInput !== undefined
        ? await renderItems(context)
        : config.input === undefined
          ? asObject(context.input)
          : await renderKey(context, 'input', anyObject),
    wait,
    traceparent: spot.traceparent,
    tracestate: spot.tracestate,
  }
  const child = await start(context, call)
  if (wait) return leave(context, child)
  return {
    output: config.passOn === true ? listOwnItems(context.inputs) : { executionId: child.executionId },
  }
}

/** What the other workflow gets for each item of this node. */
async function renderItems({ config, inputs, evaluator, bindings }: NodeContext) {
  const rows = listOwnItems(inputs).map((item, index) => ({ item, index }))
  const items = await evaluator.rows('render', config.itemInput, rows, bindings)
  const failed = items.find((item) => item instanceof NodeFailure)
  if (failed) throw failed
  return { items }
}

/** Looks again at a SUB_WORKFLOW whose child may have ended. */
export const resumeSubWorkflow: NodeRunner = async (context) =>
  leave(context, await readChild(context.spot.store, context.spot))

async function start({ spot }: NodeContext, call: Parameters<typeof startChild>[2]): Promise<ChildExecution> {
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

async function leave({ spot }: NodeContext, child: ChildExecution | undefined): Promise<NodeResult> {
  if (!child) throw deleted()
  const { executionId, status, errorMessage } = child
  if (!isEnded(status)) return { pause: { until: null } }
  if (status === 'SUCCESS') {
    const output = await readChildResult(spot.store, executionId)
    await takeFiles(spot, executionId, output)
    return { output }
  }
  if (status === 'FAILED') {
    throw new NodeFailure(errorMessage ?? 'The sub-workflow failed', { type: 'SubWorkflowFailed' })
  }
  // Alone, the child's message would read as if this execution had been cancelled.
  const message = `The sub-workflow was cancelled: ${errorMessage ?? 'without a reason'}`
  throw new NodeFailure(message, { type: 'SubWorkflowCancelled' })
}

// NOT_FOUND would end this run as deleted; that the child is gone is a failure of this node only.
async function readChildResult(store: Store, executionId: string): Promise<unknown> {
  try {
    return await readChildOutput(store, executionId)
  } catch (error) {
    throw error instanceof Fault && error.code === 'NOT_FOUND' ? deleted() : error
  }
}

/** The files that the output names belong to this execution, too, from now on. */
async function takeFiles(
  { store, executionId }: NodeContext['spot'],
  child: string,
  output: unknown,
): Promise<void> {
  try {
    await copyNamedFiles(store, child, executionId, output)
  } catch (error) {
    if (!(error instanceof Fault && error.code === 'TOO_LARGE')) throw error
    throw new NodeFailure(error.message, { type: 'FileTooLarge' })
  }
}

function deleted(): NodeFailure {
  return new NodeFailure('The execution of the sub-workflow was deleted', { type: 'SubWorkflowDeleted' })
}

function asObject(input: unknown): Record<string, unknown> {
  if (isObject(input)) return input
  return input === null || input === undefined ? {} : { value: input }
}
