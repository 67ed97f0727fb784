import type { Problem } from '../workflows/problem.ts'

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
  | 'MISDIRECTED'
  | 'UNPROCESSABLE'
  | 'THROTTLED'
  | 'UNAVAILABLE'
  | 'AUDIT_CHAIN_BROKEN'

/**
 * The only kind of error whose message a caller may see. `problems` lists every invalid field (code INVALID);
 * `retryAfter` is in whole seconds (429, 503). api/http/errors.ts maps the code to an HTTP
 * status.
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

/** A Fault with the code NOT_FOUND. `noun` names what does not exist: "workflow", "execution". */
export function missing(noun: string): Fault {
  return new Fault('NOT_FOUND', `There is no such ${noun}`)
}

/** A Fault with the code INVALID. Its message is the first problem and the number of the others. */
export function invalid(problems: Problem[]): Fault {
  const first = problems[0]
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : ''
  return new Fault('INVALID', first ? `${first.path}: ${first.message}${more}` : 'Invalid input', {
    problems,
  })
}
