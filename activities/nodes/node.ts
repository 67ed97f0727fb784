import type { Answer } from '../../db/hooks.ts'
import type { Spot } from '../../db/pauses.ts'
import type { Store } from '../../db/scope.ts'
import type { Bindings, Evaluator } from '../expressions.ts'
import type { HttpClient } from '../http.ts'

/** Everything one attempt of a node is given. Values are plain JSON, shared between nodes: never changed. */
export type NodeContext = {
  /** As stored: checked on save, templates not rendered. */
  config: Record<string, unknown>
  /** `$input`. */
  input: unknown
  /** The outputs of the taken in-edges' sources, in edge order. */
  inputs: unknown[]
  bindings: Bindings
  evaluator: Evaluator
  /** Aborted on cancel, on shutdown and when the attempt's time is up. */
  signal: AbortSignal
  /** The first is 1. */
  attempt: number
  /** The same for every attempt: execution id and activity id. */
  idempotencyKey: string
  http: HttpClient
  /** Where it stands in its run: for those who wait for somebody outside, whose rows are kept there. */
  spot: Spot & { store: Store; traceparent: string | undefined }
  /** Notes what the webhook's call is answered with that started the run; only the first one counts. */
  answer: (answer: Answer) => Promise<void>
}

/**
 * `handle` undefined is the main one; `until` (epoch milliseconds) makes the run wait before it goes on. `pause` is
 * no result yet: somebody outside writes into the node's row and nudges the run, or the time comes.
 */
export type NodeResult = {
  output?: unknown
  handle?: string
  until?: number
  pause?: { until: number | null }
}

/** Runs one attempt; throws a NodeFailure when the node itself fails. */
export type NodeRunner = (context: NodeContext) => Promise<NodeResult>
