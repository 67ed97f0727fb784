import { DefaultFailureConverter, defaultPayloadConverter } from '@temporalio/common'
import type { Command, Job } from './sandbox.ts'

export const converter = new DefaultFailureConverter({ encodeCommonAttributes: true })

/** Whether the command ends the run. */
export function isEnd(command: Command): boolean {
  const { completeWorkflowExecution, failWorkflowExecution, cancelWorkflowExecution } = command
  const ends = completeWorkflowExecution ?? failWorkflowExecution ?? cancelWorkflowExecution
  return Boolean(ends ?? command.continueAsNewWorkflowExecution)
}

export const payload = (value: unknown) => defaultPayloadConverter.toPayload(value)!

/** Tells the workflow what an activity came to. */
export function resolve(seq: number, result: object, isLocal = false): Job {
  return { resolveActivity: { seq, isLocal, result } } as Job
}

function describeActivity(message: string, activityId: string, cause: object) {
  const type = { activityType: { name: 'runNode' }, activityId, identity: '' }
  return { failure: { message, activityFailureInfo: { ...type, retryState: 3 }, cause } }
}

export function failed({ activityId }: { activityId: string }, error: unknown) {
  const cause = converter.errorToFailure(error, defaultPayloadConverter)
  return { failed: describeActivity('Activity task failed', activityId, cause) }
}

export function cancelled({ activityId }: { activityId: string }) {
  const cause = { message: 'Activity cancelled', canceledFailureInfo: {} }
  return { cancelled: describeActivity('Activity cancelled', activityId, cause) }
}

export async function settle<T>(work: Promise<T>): Promise<{ value?: T; error?: unknown }> {
  return work.then(
    (value) => ({ value }),
    (error) => ({ error: error ?? new Error('It failed without an error') }),
  )
}
