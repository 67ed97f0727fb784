import { randomUUID } from 'node:crypto'
import { noteSending, placeOf, readMessageNote } from '../../db/send/notes.ts'
import { runCode } from '../nodes/code.ts'
import { callConnector } from '../nodes/connector.ts'
import { queryDatabase } from '../nodes/database.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import type { NodeContext } from '../nodes/kit/node.ts'
import { resumeSubWorkflow, runSubWorkflow } from '../nodes/subworkflow.ts'
import { runDataTable } from '../nodes/table.ts'
import { retryOutages } from '../run/outages.ts'
import { findTool } from './calls.ts'
import { isToolOf, readAgentConfig } from './config.ts'
import { guardTask } from './guards/task.ts'
import { callServerTool } from './mcp/tools.ts'
import type { AgentState, AskedCall } from './state.ts'
import type { AgentStep, AgentStepResult } from './step.ts'
import { askApprovers } from './tools/approve.ts'
import { callHttpTool } from './tools/http.ts'
import { callRunTool } from './tools/run.ts'

type Task = Extract<AgentStep, { kind: 'task' }>
type Tool = NonNullable<ReturnType<typeof findTool>>

/** One call of a tool, whose answer is checked if the agent has guardrails for that. */
export function runAgentTask(context: NodeContext, step: Task): Promise<AgentStepResult> {
  return guardTask(context, () => doTask(context, step))
}

/** One call of a tool. Its expressions know the arguments as `$args`: values, which are never read as expressions. */
async function doTask(context: NodeContext, { state, task, resumes }: Task): Promise<AgentStepResult> {
  const { asked, remote } = state as AgentState
  const call = asked.find(({ id }) => id === task.callId)
  const tool = call && findTool(readAgentConfig(context), remote, call.name)
  if (!call || !tool) throw new NodeFailure(`There is no call ${task.callId}`, { type: 'InvalidInput' })
  const input = call.arguments
  if ('approval' in tool && tool.approval === true) {
    const verdict = await askApprovers(context, call)
    if ('pause' in verdict) return { kind: 'task', input, pause: verdict.pause }
    if ('refusal' in verdict) return { kind: 'task', input, output: verdict.refusal }
  }
  const own = { ...context, config: { ...tool }, bindings: { ...context.bindings, args: call.arguments } }
  if (isToolOf(tool, 'SUB_WORKFLOW')) {
    const { workflowId, input: given = '{{ $args }}' } = tool
    const isStarted = tool.approval === true ? await wasStarted(context) : resumes === true
    const { pause, output } = await (isStarted
      ? resumeSubWorkflow(own)
      : runSubWorkflow({ ...own, config: { workflowId, input: given } }))
    return pause ? { kind: 'task', input, pause } : { kind: 'task', input, output }
  }
  return { kind: 'task', input, output: await callTool(own, tool, call, remote) }
}

/**
 * Whether a sub-workflow was started already that waited for an approval first: what is deleted then is not started
 * again. Notes that it is started now.
 */
async function wasStarted({ spot, idempotencyKey, signal }: NodeContext): Promise<boolean> {
  const { store, executionId } = spot
  const place = placeOf(executionId, idempotencyKey)
  if (await retryOutages(signal, () => readMessageNote(store, place))) return true
  const note = { call: randomUUID(), again: true }
  await retryOutages(signal, () => noteSending(store, place, note))
  return false
}

/** Carries out a call, with `context.begin` as late as possible before anything that cannot be undone. */
async function callTool(
  context: NodeContext,
  tool: Tool,
  call: AskedCall,
  remote: AgentState['remote'],
): Promise<unknown> {
  const begin = context.begin ?? (async () => {})
  switch (tool.type) {
    case 'HTTP':
      return callHttpTool(context, tool, begin)
    case 'MCP':
      return callServerTool(context, tool, {
        remote: remote.find(({ name }) => name === call.name)!,
        call,
        begin,
      })
    case 'RUN':
      return callRunTool(context, tool, call.arguments)
    case 'CODE':
    case 'DATABASE_QUERY': {
      const { output, notes } =
        tool.type === 'CODE'
          ? await runCode(context)
          : await queryDatabase(context, async () => ({ begin, undone: async () => {} }))
      if (notes) context.notes.add(notes)
      return output
    }
    case 'DATA_TABLE':
      // What it writes is noted with it, so that it may be called again.
      return (await runDataTable(context)).output
    case 'CONNECTOR':
      // Its requests are noted one by one.
      return callConnector(
        context,
        await context.evaluator.render(tool.input ?? '{{ $args }}', context.bindings),
      )
    default:
      throw new NodeFailure(`The tool ${call.name} cannot be called`, { type: 'InvalidConfig' })
  }
}
