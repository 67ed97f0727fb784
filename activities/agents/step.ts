import type { AgentTask } from '../../workflows/run/plan.ts'
import type { NodeContext } from '../nodes/kit/node.ts'

/**
 * A node of kind `agent` works in steps, each an activity with a record of its own. A `turn` is the model's: it ends
 * the node, or asks for tasks. A `task` is one call of a tool. The tasks of a turn are done one after the other, in
 * their order; then comes the next turn, with what became of them.
 */
export type { AgentTask }

/** The outcome of a task: a failure is for the model to see, and does not end the node. */
export type TaskOutcome = { callId: string } & (
  | { output: unknown }
  | { error: { message: string; type: string } }
)

export type AgentStep =
  | {
      kind: 'turn'
      /** From 1, counting turns and tasks. */
      step: number
      /** What the turn before has left; undefined in the first one. */
      state: unknown
      /** All that turns before have logged. */
      log: unknown[]
      outcomes: TaskOutcome[]
    }
  | { kind: 'task'; step: number; state: unknown; task: AgentTask; resumes?: true }

/**
 * What a step has come to. `input` and `output` are for its record. A turn with `done` ends the node with that output;
 * else its tasks are done, and the next turn gets the `state`, and all that was logged up to now. What grows from turn
 * to turn belongs into the `log`: of that only what is new is stored. A task's `output` is what the model is told.
 */
export type AgentStepResult =
  | { kind: 'turn'; input: unknown; output: unknown; done: unknown }
  | { kind: 'turn'; input: unknown; output: unknown; state: unknown; log?: unknown[]; tasks: AgentTask[] }
  | { kind: 'task'; input: unknown; output: unknown }
  /** The task waits until it is nudged, or until that time in epoch milliseconds (null is never). */
  | { kind: 'task'; input: unknown; pause: { until: number | null } }

/** Executes one step. Throws a NodeFailure: of a turn it is the node's, of a task the model is told. */
export type StepRunner = (context: NodeContext, step: AgentStep) => Promise<AgentStepResult>
