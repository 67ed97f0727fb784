import { WorkflowNotFoundError } from '@temporalio/client'
import type { ErrandCarrier } from './carrier.ts'
import { endIfStuck, findPendingTask } from './stuck.ts'

const MAX_CHAIN = 10_000

/**
 * Asks the run to end. If it is asked again (`attempts` > 1) and no worker can carry it on, terminates it. Returns
 * how it found the run, `open` at the first time.
 */
export async function cancelRun(
  carrier: ErrandCarrier,
  executionId: string,
  attempts = 1,
): Promise<'open' | 'closed' | 'unknown'> {
  const handle = carrier.client.workflow.getHandle(executionId)
  if (attempts > 1) {
    const run = await ignoreMissing(() => handle.describe())
    if (!run) return 'unknown'
    if (run.status.name !== 'RUNNING') return 'closed'
    const ended = await endIfStuck(
      carrier,
      handle,
      findPendingTask(run),
      'was cancelled',
      carrier.stuckAfterMs,
    )
    if (ended) return 'closed'
  }
  await ignoreMissing(() => handle.cancel())
  return 'open'
}

/**
 * Terminates the run, then deletes every run of the execution's chain from Temporal, which takes half a
 * minute or more. True if Temporal still knew one of them, so that this must be repeated.
 */
export async function deleteRun({ client }: ErrandCarrier, executionId: string): Promise<boolean> {
  const { namespace } = client.options
  await ignoreMissing(() => client.workflow.getHandle(executionId).terminate('The execution was deleted'))
  let runId = ''
  for (let run = 0; run < MAX_CHAIN; run++) {
    const before = await ignoreMissing(async () => {
      const execution = { workflowId: executionId, runId }
      const request = { namespace, execution, maximumPageSize: 1 }
      const page = await client.workflowService.getWorkflowExecutionHistory(request)
      const start = page.history?.events?.[0]?.workflowExecutionStartedEventAttributes
      const workflowExecution = { ...execution, runId: start?.originalExecutionRunId ?? runId }
      const parent = start?.parentWorkflowExecution
      // A scheduled run is the child of its firing.
      if (parent?.workflowId) {
        const firing = { namespace, workflowExecution: parent }
        await ignoreMissing(() => client.workflowService.deleteWorkflowExecution(firing))
      }
      await client.workflowService.deleteWorkflowExecution({ namespace, workflowExecution })
      return start?.continuedExecutionRunId ?? ''
    })
    if (!before) return run > 0 || before === ''
    runId = before
  }
  return true
}

const GRPC_NOT_FOUND = 5

export async function ignoreMissing<T>(call: () => Promise<T>): Promise<T | undefined> {
  try {
    return await call()
  } catch (error) {
    if (error instanceof WorkflowNotFoundError || (error as { code?: number }).code === GRPC_NOT_FOUND)
      return undefined
    throw error
  }
}
