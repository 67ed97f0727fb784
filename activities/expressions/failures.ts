import { quoteSource } from '../../workflows/expressions/expressions.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import { type EvaluatorFault, type EvaluatorReply, JOB_TIME_FACTOR } from './job.ts'

/** The failure of a node whose expression cannot be evaluated. */
export function expressionFailure(message: string): NodeFailure {
  return new NodeFailure(message, { type: 'ExpressionFailed' })
}

/** The failure of a node whose expressions need too much time or memory, or give too big a result. */
export function expressionLimit(message: string): NodeFailure {
  return new NodeFailure(message, { type: 'ExpressionLimit' })
}

/** The limits of one expression, in milliseconds and MB of heap; `maxChars` of JSON limits a whole call. */
export type ExpressionLimits = { timeoutMs: number; heapMb: number; maxChars: number }

/** The failure that a reply without a result describes; `expressions` are those of the job. */
export function describeReply(
  reply: EvaluatorReply,
  expressions: { source: string }[],
  limits: ExpressionLimits,
): NodeFailure {
  if (reply.kind !== 'error') return expressionFailure('the evaluator gave an unexpected reply')
  const expression = expressions.length === 1 ? expressions[0] : expressions[reply.at]
  return describeFault(reply.cause, quoteExpression(expression?.source), limits, reply.message)
}

/** The failure for a fault. `what` is the subject of its message, such as `expression {{ $input.n }}`. */
export function describeFault(
  fault: EvaluatorFault,
  what: string,
  { timeoutMs, heapMb, maxChars }: ExpressionLimits,
  message = '',
): NodeFailure {
  const seconds = timeoutMs / 1_000
  switch (fault) {
    case 'TIMEOUT':
      return expressionLimit(`${what} took longer than ${seconds} s of processor time`)
    case 'TOTAL':
      return expressionLimit(
        `the expressions of this node took longer than ${JOB_TIME_FACTOR * seconds} s of processor time together`,
      )
    case 'MEMORY':
      return expressionLimit(`${what} used too much memory (more than ${heapMb} MB)`)
    case 'SIZE':
      return expressionLimit(`${what} has a result that is too big (more than ${maxChars / 1_000_000} MB)`)
    case 'ERROR':
      return expressionFailure(`${what}: ${message}`)
    case 'DOWN':
    case 'BUSY': {
      const failed = `expressions cannot be evaluated now: ${message}`
      return new NodeFailure(failed, {
        type: fault === 'DOWN' ? EXPRESSIONS_DOWN : EXPRESSIONS_BUSY,
        retryable: true,
      })
    }
  }
}

export function quoteExpression(source: string | undefined): string {
  return source === undefined ? 'an expression of this node' : `expression ${quoteSource(source)}`
}

/** The failure type of a job that was given up because no process was free: it is done again later. */
export const EXPRESSIONS_BUSY = 'ExpressionsBusy'

/** The failure type that says nothing about the expression: there is no process, or the service stops. */
export const EXPRESSIONS_DOWN = 'ExpressionsUnavailable'
