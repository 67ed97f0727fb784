import type { Sinks } from '@temporalio/workflow'
import type { Frame, Item } from './frame.ts'
import type { Envelope, ExecutionContext, Plan, PlanNode, RunContext } from './plan.ts'
import type { NodeRecord } from './records.ts'

/** What continue-as-new carries over: what is settled, what waits, and instants in epoch milliseconds. */
export type Carried = {
  startedAt: number
  deadline: number | null
  root: Frame
  /** The stepKeys of nudges for nodes that do not wait yet. */
  nudges: string[]
  /** No segment starts before this time. */
  awayUntil?: number
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
  outputs: Record<string, Envelope>
  iteration: string
  item?: Item
}

/** `returned`: how many attempts have only returned their slot to the worker. */
export type AttemptResult = { output: Envelope; handle: string | null; returned?: number }

export type Activities = {
  walkSegment(input: SegmentInput): Promise<NodeRecord[]>
  runNode(input: AttemptInput): Promise<AttemptResult>
}

export type RunSinks = Sinks & { run: { closing(): void } }
