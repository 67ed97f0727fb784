import { ApplicationFailure, TemporalFailure } from '@temporalio/common'
import type { Logger } from 'pino'
import { Fault } from '../../db/fault.ts'
import { isDatabaseError, type Judgement, judgeError } from '../../db/operation/outage.ts'
import type { FailureType } from '../../workflows/nodes/failures.ts'
import type { NodeNotes } from '../../workflows/run/records.ts'
import { type NodeError, RUN_REFUSED } from '../../workflows/run/records.ts'
import { EXPRESSIONS_DOWN } from '../expressions/failures.ts'
import type { Metrics } from '../metrics.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'

const INTERNAL = 'InternalError'
const INTERNAL_MESSAGE = 'The service failed while it carried out this node; its log has the cause'

/**
 * The error for a node's record, from what its runner threw. What the database says stays in the log, as it may
 * have SQL and values in it.
 */
export function describeFailure(error: unknown): NodeError & { type: FailureType } {
  if (error instanceof NodeFailure) return { message: error.message, type: error.type }
  if (judgeError(error) === 'away')
    return { message: 'The database takes no work at the moment', type: 'Infrastructure' }
  if (isDatabaseError(error)) return { message: INTERNAL_MESSAGE, type: INTERNAL }
  const message = error instanceof Error ? error.message : String(error)
  return { message: message || 'The node failed without a message', type: 'Error' }
}

/**
 * Whether the error is an outage of PostgreSQL or of the evaluator processes. It is not a failure of the
 * node: it does not count against its attempts and is retried.
 */
export function isInfrastructure(error: unknown): boolean {
  // A node's own failure may quote the words of others, for example of a server that it has called.
  if (error instanceof NodeFailure) return error.type === EXPRESSIONS_DOWN
  return judgeError(error) === 'away'
}

/**
 * What an error means that was thrown beside a node's runner, where values are read and stored: `own` is said of
 * the node or its run on purpose; for the others see judgeError.
 */
export function judgeWork(error: unknown): Judgement | 'own' {
  if (isInfrastructure(error)) return 'away'
  if (isOneOf(error, [NodeFailure, Fault, TemporalFailure]) || finalIfDeleted(error) !== error) return 'own'
  if (isDatabaseError(error)) return judgeError(error)
  // What JavaScript itself throws is a fault of the code or of the data.
  return isOneOf(error, [TypeError, RangeError, SyntaxError, ReferenceError]) ? 'final' : 'unknown'
}

type ErrorType = new (...args: never[]) => Error

function isOneOf(error: unknown, kinds: ErrorType[]): boolean {
  return kinds.some((kind) => error instanceof kind)
}

/** The failure of a node that the service itself could not carry out. Nothing is gained by another attempt. */
export function internalFailure(cause: unknown): NodeFailure {
  return new NodeFailure(INTERNAL_MESSAGE, { type: INTERNAL, cause })
}

/** Logs and counts what the node's record does not tell: the cause of an InternalError or of an outage. */
export function reportFailure(
  { log, metrics }: { log: Logger; metrics?: Metrics | undefined },
  error: unknown,
  where: { executionId: string; nodeId?: string; iteration?: string },
): void {
  const cause = error instanceof NodeFailure ? error.cause : error
  const { type } = describeFailure(error)
  if (type === 'Infrastructure')
    log.warn({ err: cause, ...where }, 'the database takes no work: a node waits')
  if (type !== INTERNAL || finalIfDeleted(error) !== error) return
  metrics?.internalErrors.inc()
  log.error({ err: cause, ...where }, 'a node failed because of an error of the service')
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
  details?: { returned: number; notes?: NodeNotes },
): ApplicationFailure {
  const more = details ? { details: [details] } : {}
  return ApplicationFailure.create({ message, type, nonRetryable: true, ...more })
}
