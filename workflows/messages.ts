import type { Sinks } from '@temporalio/workflow'
import type { Frame, Item } from './frame.ts'
import type { Envelope, ExecutionContext, Plan, PlanNode, RunContext } from './plan.ts'
import type { NodeRecord } from './walk.ts'

/** A run carried over by continue-as-new: only what is settled, what waits, and absolute instants. */
export type Carried = {
  startedAt: number
  deadline: number | null
  root: Frame
  /** Signals for nodes that do not wait yet. */
  nudges: string[]
}

export type RunInput = {
  plan: Plan
  context: RunContext
  input: Envelope
  timeoutMs: number | null
  /** Tests make a run continue as new after so many events. */
  continueAfterEvents?: number
  carried?: Carried
}

export type SegmentInput = {
  plan: Plan
  context: ExecutionContext
  input: Envelope
  /** The state as far as the segment needs it. */
  root: Frame
  /** What others are at, by stepKey. */
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
  outputs: Record<string, Envelope>
  iteration: string
  item?: Item
}

export type AttemptResult = { output: Envelope; handle: string | null }

export type Activities = {
  walkSegment(input: SegmentInput): Promise<NodeRecord[]>
  runNode(input: AttemptInput): Promise<AttemptResult>
}

export type RunSinks = Sinks & { run: { closing(): void } }
