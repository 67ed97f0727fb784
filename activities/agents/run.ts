import type { GraphNode } from '../../workflows/graph/graph.ts'
import { getOwn } from '../../workflows/json.ts'
import type { AgentInput } from '../../workflows/run/agents.ts'
import type { AttemptInput, AttemptResult } from '../../workflows/run/messages.ts'
import type { AgentTask, Envelope, LogChunk, SettledTask } from '../../workflows/run/plan.ts'
import type { ActivityDeps } from '../deps.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import type { NodeContext, NodeResult } from '../nodes/kit/node.ts'
import { createRunValues, demandInputRoom, packValue, type RunValues } from '../run/values.ts'
import { callOnce } from './once.ts'
import { showOutcome } from './outcomes.ts'
import { STEP_RUNNERS } from './runners.ts'
import { MAX_TASK_NAME } from './state.ts'
import type { AgentStep, AgentStepResult, StepRunner, TaskOutcome } from './step.ts'

/** The most tasks of one turn. */
const MAX_TASKS = 50

/**
 * What a record shows travels inline up to this many bytes, and what the run carries from step to step up to these:
 * very many agents may be under way in one run.
 */
const RECORD_BYTES = 2_000
const CARRIED_BYTES = 200

const NOTHING: Envelope = { v: null, bytes: 4 }

/** Opens what a step works with. Throws a NodeFailure (InputTooLarge) if it is more than a worker can hold. */
export async function openAgentStep(values: RunValues, agent: AgentInput): Promise<AgentStep> {
  const { step } = agent
  const settled = agent.kind === 'turn' ? agent.settled : []
  const outputs = settled.flatMap((task) => ('output' in task ? [task.output] : []))
  const chunks = agent.kind === 'turn' ? (agent.log ?? []).map(({ entries }) => entries) : []
  demandInputRoom([...(agent.state ? [agent.state] : []), ...chunks, ...outputs])
  const state = agent.state && (await values.open(agent.state))
  if (agent.kind === 'task') {
    const { task, resumes } = agent
    return { kind: 'task', step, state, task, ...(resumes ? { resumes } : {}) }
  }
  const log = await openLog(values, chunks)
  const outcomes: TaskOutcome[] = []
  for (const task of settled) outcomes.push(await openOutcome(values, task))
  return { kind: 'turn', step, state, log, outcomes }
}

async function openOutcome(values: RunValues, task: SettledTask): Promise<TaskOutcome> {
  const { callId } = task
  return 'error' in task ? { callId, error: task.error } : { callId, output: await values.open(task.output) }
}

/**
 * Executes a step of an agent; its AgentStepResult is the output. What the runner throws is a failure of a turn or of a
 * task, not of the engine.
 */
export async function runAgentStep(
  node: GraphNode,
  context: NodeContext,
  step: AgentStep,
  runners: Partial<Record<string, StepRunner>> = STEP_RUNNERS,
): Promise<NodeResult> {
  const runner = getOwn(runners, node.type)
  if (!runner) throw new NodeFailure(`No runner for the steps of ${node.type}`, { type: 'UnknownNodeType' })
  try {
    const output = await callOnce(context, step, (own) => runner(own, step))
    if ('tasks' in output) demandTasks(output.tasks)
    return { output }
  } catch (error) {
    if (error instanceof NodeFailure && error.notes) context.notes.add(error.notes)
    throw error
  }
}

function demandTasks(tasks: AgentTask[]): void {
  const isLong = tasks.some(
    ({ callId, tool }) => callId.length > MAX_TASK_NAME || tool.length > MAX_TASK_NAME,
  )
  if (tasks.length <= MAX_TASKS && !isLong) return
  const message = isLong
    ? `The model gave a call of a tool a name or an id of more than ${MAX_TASK_NAME} characters`
    : `The model asked for ${tasks.length} calls of tools at once; at most ${MAX_TASKS} are made`
  throw new NodeFailure(message, { type: 'ModelAnswer' })
}

/** Packs what runAgentStep has come to. */
export async function packAgentStep(
  deps: Pick<ActivityDeps, 'store'>,
  { context, inlineBytes, agent }: Pick<AttemptInput, 'context' | 'inlineBytes' | 'agent'>,
  { output, notes }: NodeResult,
): Promise<AttemptResult> {
  const result = output as AgentStepResult
  const pack = (value: unknown, most: number) =>
    packValue(deps, context.id, value, Math.min(inlineBytes, most))
  const rest = { handle: null, ...(notes ? { notes } : {}) }
  const input = await pack(result.input, RECORD_BYTES)
  if ('pause' in result) {
    return { output: NOTHING, ...rest, agent: { record: { input, output: NOTHING }, pause: result.pause } }
  }
  if (result.kind === 'task') {
    const shown = await showOutcome(result.output)
    const told = await pack(shown, CARRIED_BYTES)
    const whole = shown === result.output ? told : await pack(result.output, CARRIED_BYTES)
    return { output: told, ...rest, agent: { record: { input, output: whole } } }
  }
  const record = { input, output: await pack(result.output, RECORD_BYTES) }
  if ('done' in result) return { output: await pack(result.done, inlineBytes), ...rest, agent: { record } }
  const { tasks, log } = result
  const before = agent?.kind === 'turn' ? (agent.log ?? []) : []
  const state = await pack(result.state, CARRIED_BYTES)
  const logged = log ? { log: await addToLog(deps, context.id, before, log) } : {}
  return { output: NOTHING, ...rest, agent: { record, state, ...logged, tasks } }
}

async function openLog(values: Pick<RunValues, 'open'>, chunks: Envelope[]): Promise<unknown[]> {
  const entries: unknown[] = []
  for (const chunk of chunks) entries.push(...((await values.open(chunk)) as unknown[]))
  return entries
}

/**
 * The number of chunks of a log that become one: each entry is stored a few times, and the run carries few
 * references.
 */
const JOINED = 8

/**
 * Stores the new entries of a log, joined with the last chunks if those are many; the chunks before them stay as they
 * are.
 */
async function addToLog(
  deps: Pick<ActivityDeps, 'store'>,
  executionId: string,
  chunks: LogChunk[],
  entries: unknown[],
): Promise<LogChunk[]> {
  const kept = [...chunks]
  const values = createRunValues(deps, executionId)
  let joined = entries
  let level = 0
  while (kept.length >= JOINED - 1 && kept.slice(1 - JOINED).every((chunk) => chunk.level === level)) {
    const last = kept.splice(1 - JOINED).map((chunk) => chunk.entries)
    joined = [...(await openLog(values, last)), ...joined]
    level++
  }
  return [...kept, { entries: await packValue(deps, executionId, joined, CARRIED_BYTES), level }]
}
