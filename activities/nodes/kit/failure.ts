import type { FailureType } from '../../../workflows/nodes/failures.ts'
import type { NodeNotes } from '../../../workflows/run/records.ts'

/**
 * A failure of the node itself: it is shown in the node's record and counted by its retry policy. `type` names the kind
 * of failure for `onError` and for people (`InvalidConfig`, `ExpressionFailed` ...). `retryAfterMs` is the least delay
 * before the next attempt. `notes` are for the node's record. Only the log may show the `cause`.
 */
export class NodeFailure extends Error {
  type: FailureType
  retryable: boolean
  retryAfterMs?: number
  /** What the node has noted before it failed. */
  notes?: NodeNotes

  constructor(
    message: string,
    options: {
      type: FailureType
      retryable?: boolean
      retryAfterMs?: number
      notes?: NodeNotes
      cause?: unknown
    },
  ) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.name = 'NodeFailure'
    this.type = options.type
    this.retryable = options.retryable ?? false
    if (options.retryAfterMs !== undefined) this.retryAfterMs = options.retryAfterMs
    if (options.notes !== undefined) this.notes = options.notes
  }
}

/**
 * The attempt gives its slot back, because what it does is long, or rests: what it has done so far is kept, and the next
 * one goes on from there.
 */
export class ToBeContinued extends Error {
  readonly afterMs: number

  constructor(afterMs: number) {
    super('The node goes on in another attempt')
    this.afterMs = afterMs
  }
}

/** The failure for a config value that is wrong once rendered. `problem` follows the key: `must be ...`. */
export function invalidConfig(key: string, problem: string): NodeFailure {
  return new NodeFailure(`${key} ${problem}`, { type: 'InvalidConfig' })
}
