import type { GraphNode } from '../../../workflows/graph/graph.ts'
import type { Presets } from '../../../workflows/run/plan.ts'
import type { Act } from '../../acts.ts'
import type { Tx } from '../../connection.ts'
import type { Right } from '../../people/rights.ts'
import type { Actor, Scope } from '../../scope.ts'
import type { NewCallback } from '../callbacks.ts'
import type { Recovery, Trigger } from '../triggers.ts'
import type { StartableWorkflow } from './startable.ts'

/** The trace context (W3C) of a request, which becomes the parent of the run's spans. */
export type TraceContext = { traceparent?: string | undefined; tracestate?: string | undefined }

/** All that an execution can be started with. */
export type AnyStart = TraceContext & {
  node: Pick<GraphNode, 'id'>
  trigger: Trigger
  data: Record<string, unknown>
  by: Actor
  /** The caller's right, if a user or token asks for the execution: it is read again when the execution is written. */
  right?: Right
  idempotencyKey?: string | undefined
  /** Like an `idempotencyKey`, whatever the data. */
  once?: string | undefined
  id?: string
  /**
   * The execution whose node starts this one; `key` is that node, as nodeId#iteration. `depth` is that of
   * this execution: 1 if its parent has no parent. The parent does not wait for a detached execution, which
   * lives on when the parent has ended.
   */
  parent?: { executionId: string; key: string; depth: number; detached?: boolean }
  /** The execution that this one retries or reruns, and which of the two it is. */
  retriedFrom?: string
  recovery?: Recovery
  /** The chat whose message starts it. It also belongs to the chat of its parent, or of the execution it repeats. */
  chatSessionId?: string
  /** The execution whose failure starts this one. */
  failed?: string
  /**
   * It tests another version than the published one, comes from a test address, or is part of such a test: nothing is
   * judged by it.
   */
  draft?: boolean | undefined
  /** Outputs that nodes are given instead of being executed. */
  given?: Presets | undefined
  /** The part of the graph to execute, as readPart reads it; all of it if it is undefined. */
  onlyNode?: string | undefined
  /** The receiver that is told when it has ended. */
  callback?: NewCallback | undefined
  /** What else the request contained: it must be the same in every request with the same `idempotencyKey`. */
  asked?: unknown
  /** The request as it came, if the same one may be made into other data or presets later: it counts instead. */
  sent?: unknown
  /** The execution whose outputs it takes over without being a retry of it. */
  reusedFrom?: string | undefined
  /** The sweeper is to start it at once; else the caller does, and the sweeper only after five seconds. */
  swept?: boolean
  /** Who starts it by which act, if that is to have an audit entry. */
  act?: { scope: Scope; name: Act } | undefined
  /** A warning about the data, for the record of the trigger. */
  inputWarning?: string | undefined
  /** Writes rows that belong to the execution `id`, before its own row is written and its gate is locked. */
  prepare?: (tx: Tx) => Promise<void>
  /**
   * Reads the workflow again where it has changed since it was remembered. Throws if what the start was judged by is no
   * longer the same.
   */
  renew?: (() => Promise<StartableWorkflow>) | undefined
  /** Gives the execution its files, once its row is written. */
  adopt?: ((tx: Tx, executionId: string) => Promise<void>) | undefined
}

type Common = 'node' | 'trigger' | 'data' | 'by' | 'inputWarning' | keyof TraceContext

/** A start that must have `Needs` and can have `May`, besides what every start has. */
type From<Origin extends string, Needs extends keyof AnyStart, May extends keyof AnyStart = never> = {
  origin: Origin
} & Pick<AnyStart, Common | May> &
  Required<Pick<AnyStart, Needs>>

/**
 * What an execution is started with, by its origin, which says what guards it. With the same `idempotencyKey` and the
 * same data, a second call starts no other execution; with the same `id`, it starts none whatever its data. Those with a
 * `right` are asked for it again when they are written.
 */
export type Start =
  | From<'REQUEST', 'right', Requested>
  | From<'SINGLE_NODE', 'right' | 'onlyNode', 'idempotencyKey' | 'asked' | 'given' | 'adopt' | 'draft'>
  | From<'RECOVERY', Repeated, 'act' | 'onlyNode' | 'given' | 'swept' | 'draft'>
  | From<'WEBHOOK', never, 'id' | 'once' | 'adopt' | 'draft' | 'renew'>
  | From<'FORM', never, 'id' | 'adopt' | 'draft' | 'renew'>
  | From<'MCP', 'right', 'idempotencyKey' | 'renew'>
  | From<'SCHEDULE', 'id'>
  | From<'CHAT', 'id' | 'chatSessionId' | 'adopt', 'right'>
  | From<'PARENT', 'id' | 'parent', 'adopt' | 'swept' | 'draft'>
  | From<'FAILURE', 'id' | 'failed', 'adopt'>
  | From<'BATCH' | 'PLAYBOOK', 'id' | 'swept'>
type Requested =
  | 'idempotencyKey'
  | 'sent'
  | 'given'
  | 'onlyNode'
  | 'reusedFrom'
  | 'callback'
  | 'adopt'
  | 'draft'
type Repeated = 'id' | 'right' | 'retriedFrom' | 'recovery' | 'prepare' | 'adopt'
