import { ApplicationFailure } from '@temporalio/common'
import { isDatabaseAway } from '../../db/connection.ts'
import { Fault } from '../../db/fault.ts'
import type { FailureType } from '../../workflows/nodes/failures.ts'
import { type NodeError, RUN_REFUSED } from '../../workflows/run/records.ts'
import { EXPRESSIONS_DOWN } from '../expressions/failures.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'

/** The error for a node's record, from what its runner threw. */
export function describeFailure(error: unknown): NodeError & { type: FailureType } {
  if (error instanceof NodeFailure) return { message: error.message, type: error.type }
  const message = error instanceof Error ? error.message : String(error)
  return { message: message || 'The node failed without a message', type: 'Error' }
}

/**
 * Whether the error is an outage of PostgreSQL or of the evaluator processes. It is not a failure of the
 * node: it does not count against its attempts and is retried.
 */
export function isInfrastructure(error: unknown): boolean {
  return isDatabaseAway(error) || (error instanceof NodeFailure && error.type === EXPRESSIONS_DOWN)
}

/** The failure that ends a run whose execution was cancelled or deleted before the run began. */
export function endedBefore(): ApplicationFailure {
  const message = 'The execution ended before its run began'
  return finalFailure('ExecutionEnded', message)
}

const FOREIGN_KEY_VIOLATION = '23503'

/**
 * Turns the error for a deleted row, or for a run that is not its execution's, into one that ends the run
 * without a retry. Returns other errors.
 */
export function finalIfDeleted(error: unknown, details?: { returned: number }): unknown {
  if (error instanceof NodeFailure && error.type === RUN_REFUSED)
    return finalFailure(error.type, error.message, details)
  const gone =
    (error instanceof Fault && error.code === 'NOT_FOUND') ||
    (error as { code?: string }).code === FOREIGN_KEY_VIOLATION
  if (!gone) return error
  return finalFailure('ExecutionDeleted', 'The execution or its workflow was deleted', details)
}

/** A failure that Temporal does not retry. The projection reads the `details`. */
export function finalFailure(
  type: FailureType,
  message: string,
  details?: { returned: number },
): ApplicationFailure {
  const more = details ? { details: [details] } : {}
  return ApplicationFailure.create({ message, type, nonRetryable: true, ...more })
}
