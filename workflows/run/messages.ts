import type { Sinks } from '@temporalio/workflow'
import type { AgentInput, AgentResult } from './agents.ts'
import type { Frame, Item, Trail } from './frame.ts'
import type { Envelope, ExecutionContext, Plan, PlanNode, RunContext } from './plan.ts'
import { type NodeError, type NodeNotes, type NodeRecord, RUN_REFUSED } from './records.ts'
import type { TakenEdge } from './walk.ts'

/** The state that continue-as-new carries over: settled nodes, waits, and instants in epoch milliseconds. */
export type Carried = {
  startedAt: number
  deadline: number | null
  root: Frame
  /** The stepKeys of nudges for nodes that do not wait yet. */
  nudges: string[]
  /** No segment starts before this time. */
  awayUntil?: number
  /** How many runs of the chain come before; not set in chains that an older release began. */
  chain?: number
}

export type RunInput = {
  plan: Plan
  context: RunContext
  input: Envelope
  timeoutMs: number | null
  /** For tests: the run continues as new after this many history events. */
  continueAfterEvents?: number
  carried?: Carried
}

export type SegmentInput = {
  plan: Plan
  context: ExecutionContext
  input: Envelope
  /** The slice of the run's state that the segment needs. */
  root: Frame
  /** The taskKeys of what others are working on. */
  busy: string[]
  /** The run is about to continue as new. */
  drains?: true
}

export type AttemptInput = {
  node: PlanNode
  context: ExecutionContext
  triggerNodeId: string
  inlineBytes: number
  sources: string[]
  /** The taken in-edges, if one of the sources left by several handles. */
  taken?: TakenEdge[]
  /** For a node that works on one of its items: the input of its node, if that is the item of a loop around it. */
  around?: Item
  /** If its config pairs its items with those of nodes before it. */
  trail?: Trail
  outputs: Record<string, Envelope>
  iteration: string
  item?: Item
  /** For a step of an agent. */
  agent?: AgentInput
}

/** `returned`: how many attempts have only returned their slot to the worker. `notes` are for the node's record. */
export type AttemptResult = {
  output: Envelope
  handle: string | null
  returned?: number
  notes?: NodeNotes
  /**
   * The result of a step of an agent. `output` is then the answer to the model about a task, or the node's output if a
   * turn has ended it.
   */
  agent?: AgentResult
}

export type Activities = {
  walkSegment(input: SegmentInput): Promise<NodeRecord[]>
  runNode(input: AttemptInput): Promise<AttemptResult>
}

/**
 * The value that is read in place of a payload that the service did not seal for this run. It has the fields of a
 * failure's message, because it may take the place of one.
 */
export type Refused = { refused: true; message: string; stack_trace: string }

export function refuse(reason: string): Refused {
  return { refused: true, message: `What came from Temporal was refused: ${reason}`, stack_trace: '' }
}

/** No message of ours has that field; values of users are deeper inside. */
export function isRefused(message: unknown): message is Refused {
  return typeof message === 'object' && message !== null && 'refused' in message && message.refused === true
}

/**
 * Reads the failure of an activity. `hidden` is read from the payload in which the failure converter puts every
 * message, so that it is sealed.
 */
export function readActivityError(message: string, type: string, hidden: unknown): NodeError {
  if (isRefused(hidden)) return { message: hidden.message, type: RUN_REFUSED }
  if (hidden !== undefined) return { message, type }
  return { message: refuse(`a failure that is not sealed: ${message}`).message, type: RUN_REFUSED }
}

export type RunSinks = Sinks & { run: { closing(): void } }
