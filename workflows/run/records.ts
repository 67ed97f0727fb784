import type { Envelope } from './plan.ts'

/**
 * The record of one step of a run. A segment returns them in the order in which it took the steps; for an attempt the
 * workflow makes one itself. Times are in epoch milliseconds.
 */
export type NodeRecord = RecordHead & StepResult

type RecordHead = {
  nodeId: string
  iteration: string
  startedAt: number
  completedAt: number
  /** For the node's record; the run does not read them. */
  notes?: NodeNotes
}

/** SUCCESS, FAILED settle a node; WAITING, LOOPING open a wait or a loop; TURNED, FOLDED advance a loop. */
export type StepResult =
  | { status: 'SUCCESS'; output: Envelope; handle: string | null }
  /** With an output if onError turned the error into one. */
  | { status: 'FAILED'; error: NodeError; output?: Envelope; handle: string | null }
  /** A WAIT: at `until` it leaves by `handle`, with `output`. */
  | { status: 'WAITING'; until: number; output: Envelope; handle: string | null; pause?: never }
  /** A pause: waits for an answer from outside the run, until `until` at the latest or (null) without a limit. */
  | { status: 'WAITING'; until: number | null; output?: never; handle: null; pause: true }
  | { status: 'LOOPING'; loop: LoopItems; handle: null }
  /** REPEAT's condition was tested; `over` if it held. */
  | { status: 'TURNED'; over: boolean; handle: null }
  /** `output` holds the results of the iterations `folded`, together with the last `merged` chunks. */
  | { status: 'FOLDED'; output: Envelope; folded: number[]; merged: number; handle: null }
  /** No step: the segment gave its slot back before it was done. For `forMs` the run starts no other one. */
  | { status: 'AWAY'; forMs: number; handle: null }

/**
 * The most iterations that a loop may have, and the items of a FOR_EACH. `taken`: iterations that the execution
 * takes over from the one that it retries.
 */
export type LoopItems = { count: number; pages: ItemPage[]; taken?: TakenIterations }

/** Their numbers, in ranges from the first to the last in ascending order, and chunks of their results. */
export type TakenIterations = { ranges: [from: number, to: number][]; chunks: Envelope[] }

/** An array of some of a loop's items, beginning with item `from`; if `deep`, an array of such pages. */
export type ItemPage = { from: number; items: Envelope; deep?: true }

/**
 * The notes of a node's evaluation beside its output: warnings, each with the path in the config that it is about, and
 * the console output of its code. At most 16 KB of JSON.
 */
export type NodeNotes = {
  warnings?: { path: string; message: string }[]
  console?: { level: string; text: string }[]
}

export type NodeError = { message: string; type: string }

/** The error of a node if Temporal itself gave up on its activity: every attempt lost its worker. */
export const WORKER_LOST: NodeError = { message: 'No worker finished this node', type: 'WorkerLost' }

/** The type of the error that ends a run without regard to its nodes' handling of errors: the run was tampered with. */
export const RUN_REFUSED = 'RunRefused'

/** Failure types of a run, read by the projection. */
export const RUN_TIMED_OUT = 'RunTimedOut'
export const NODE_FAILED = 'NodeFailed'
export const ENGINE_FAILED = 'EngineFailed'

/**
 * How the reason began with which earlier releases terminated a run that no worker could carry on: it FAILED.
 * Rows are still rebuilt from such histories.
 */
export const STUCK_REASON = 'The run was stuck in its workflow code'

/**
 * How the reason begins with which the service terminates an execution that was cancelled, or whose time limit
 * has passed, while no worker could carry it on: it is CANCELLED.
 */
export const STUCK_ENDED = 'The execution could not go on'
