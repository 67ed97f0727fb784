/**
 * A node's own failure: what its record shows and what its retry policy counts. `type` names the kind for
 * `onError` and for people (`InvalidConfig`, `ExpressionFailed` ...); `retryAfterMs` is the earliest next attempt.
 */
export class NodeFailure extends Error {
  type: string
  retryable: boolean
  retryAfterMs?: number

  constructor(message: string, options: { type: string; retryable?: boolean; retryAfterMs?: number }) {
    super(message)
    this.name = 'NodeFailure'
    this.type = options.type
    this.retryable = options.retryable ?? false
    if (options.retryAfterMs !== undefined) this.retryAfterMs = options.retryAfterMs
  }
}

/** The failure for a config value that turned out wrong once rendered: names its key. */
export function invalidConfig(key: string, problem: string): NodeFailure {
  return new NodeFailure(`${key} ${problem}`, { type: 'InvalidConfig' })
}
