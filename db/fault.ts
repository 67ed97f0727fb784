import type { Problem } from '../workflows/graph.ts'

export type FaultCode =
  | 'INVALID'
  | 'UNAUTHENTICATED'
  | 'FORBIDDEN'
  | 'NOT_FOUND'
  | 'METHOD_NOT_ALLOWED'
  | 'CONFLICT'
  | 'PRECONDITION_FAILED'
  | 'TOO_LARGE'
  | 'UNSUPPORTED_TYPE'
  | 'THROTTLED'
  | 'UNAVAILABLE'

/**
 * The one error of the service that a caller may see. `problems` names every bad field (code INVALID);
 * `retryAfter` is in whole seconds (THROTTLED, UNAVAILABLE). api/errors.ts maps the code to an HTTP status.
 */
export class Fault extends Error {
  readonly code: FaultCode
  readonly problems: Problem[]
  readonly retryAfter: number | undefined

  constructor(code: FaultCode, message: string, more: { problems?: Problem[]; retryAfter?: number } = {}) {
    super(message)
    this.name = 'Fault'
    this.code = code
    this.problems = more.problems ?? []
    this.retryAfter = more.retryAfter
  }
}

/** A Fault of code NOT_FOUND: there is no such workflow, execution and so on. */
export function missing(noun: string): Fault {
  return new Fault('NOT_FOUND', `There is no such ${noun}`)
}

/** A Fault of code INVALID whose message sums the problems up. */
export function invalid(problems: Problem[]): Fault {
  const first = problems[0]
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : ''
  return new Fault('INVALID', first ? `${first.path}: ${first.message}${more}` : 'Invalid input', {
    problems,
  })
}
