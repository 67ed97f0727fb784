import type { Agent, AgentTask, BegunAgent, Envelope, LogChunk, SettledTask } from './plan.ts'
import type { NodeError, StepResult } from './records.ts'

/** The input of an attempt of a step. */
export type AgentInput =
  | { kind: 'turn'; step: number; state?: Envelope; log?: LogChunk[]; settled: SettledTask[] }
  | { kind: 'task'; step: number; state: Envelope; task: AgentTask; resumes?: true }

/** The result of an attempt of a step: `record` is for the step's record, the rest for the steps after it. */
export type AgentResult = {
  record: { input: Envelope; output: Envelope }
  /** The state after a turn that does not end the node. */
  state?: Envelope
  /** The whole log, if the turn has added to it. */
  log?: LogChunk[]
  tasks?: AgentTask[]
  /** The task waits until it is nudged, or until that time in epoch milliseconds (null is never). */
  pause?: { until: number | null }
}

/** How a step goes on: with another one, with a wait, or with the end of the node. */
export type AgentMove =
  | { agent: Agent; until?: number | null }
  | { ended: Extract<StepResult, { status: 'SUCCESS' }> | { status: 'FAILED'; error: NodeError } }

/** The most steps, turns and tasks together, that an agent may make. */
const MAX_AGENT_STEPS = 500

/** How much of a task's error the agent carries along. */
const MAX_ERROR_CHARS = 300

/** An agent before its first step here. */
export function beginAgent({ begun }: { begun?: BegunAgent } = {}): Agent {
  return begun?.agent ?? { step: 1, tasks: [], settled: [] }
}

/** The task that an agent is at; undefined in a turn. */
export function taskOf({ tasks }: Agent): AgentTask | undefined {
  return tasks[0]
}

export function describeStep(agent: Agent): AgentInput {
  const { step, state, log, settled, paused } = agent
  const task = taskOf(agent)
  if (!task) return { kind: 'turn', step, ...(state ? { state } : {}), ...(log ? { log } : {}), settled }
  return { kind: 'task', step, state: state!, task, ...(paused ? { resumes: true } : {}) }
}

/** The move that follows the end of an agent's step. The next turn sees a failed task; a failed turn fails the node. */
export function moveAgent(
  agent: Agent,
  outcome: { output: Envelope; agent?: AgentResult } | { error: NodeError },
): AgentMove {
  const task = taskOf(agent)
  if (!task) {
    if ('error' in outcome) return { ended: { status: 'FAILED', error: outcome.error } }
    const { state, log = agent.log, tasks } = outcome.agent ?? {}
    if (!tasks) return { ended: { status: 'SUCCESS', output: outcome.output, handle: null } }
    const left = { ...(state ? { state } : {}), ...(log ? { log } : {}) }
    return goOn({ step: agent.step + 1, ...left, tasks, settled: [] })
  }
  if ('agent' in outcome && outcome.agent?.pause)
    return { agent: { ...agent, paused: true }, until: outcome.agent.pause.until }
  const { callId } = task
  const settled: SettledTask =
    'error' in outcome ? { callId, error: cutError(outcome.error) } : { callId, output: outcome.output }
  const { paused: _, ...rest } = agent
  return goOn({
    ...rest,
    step: agent.step + 1,
    tasks: agent.tasks.slice(1),
    settled: [...agent.settled, settled],
  })
}

function goOn(agent: Agent): AgentMove {
  if (agent.step <= MAX_AGENT_STEPS) return { agent }
  const message = `The agent was not done after ${MAX_AGENT_STEPS} steps`
  return { ended: { status: 'FAILED', error: { message, type: 'AgentOutOfSteps' } } }
}

function cutError({ message, type }: NodeError): NodeError {
  return { message: message.slice(0, MAX_ERROR_CHARS), type }
}
