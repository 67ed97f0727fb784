import { isObject } from '../../workflows/json.ts'
import { checkJson } from '../jsonschema/check.ts'
import type { ModelMessage, ModelReply, ToolSpec } from '../models/model.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import type { NodeContext } from '../nodes/kit/node.ts'
import type { AgentConfig } from './config.ts'
import { repeatsTool } from './repeats.ts'
import { type AskedCall, MAX_TASK_NAME, type RemoteTool } from './state.ts'
import type { AgentTask } from './step.ts'

/** The most calls that are done of one turn. The model is told of the others that they were too many. */
const MAX_CALLS = 50

/** The most calls of one turn that are looked at; a model that asks for more is told no more than that. */
const MAX_LOOKED_AT = 200

/** The most characters of JSON of the arguments of a call. */
const MAX_ARGUMENTS = 200_000

/**
 * The calls of a reply, each with what is wrong with it: a tool that there is not, arguments that do not fit its
 * parameters, or too many calls. The ids of the message and the calls are the same, and each is there once in the whole
 * conversation: vendors find results by them. `said` is the conversation before, `step` the number of the turn.
 */
export async function askCalls(
  context: NodeContext,
  tools: ToolSpec[],
  { toolCalls, message }: ModelReply,
  { said, step }: { said: ModelMessage[]; step: number },
): Promise<{ calls: AskedCall[]; message: Extract<ModelMessage, { role: 'assistant' }> }> {
  const known = new Map(tools.map((tool) => [tool.name, tool]))
  const given = toolCalls.slice(0, MAX_LOOKED_AT)
  const taken = new Set(said.flatMap((one) => (one.role === 'assistant' ? listIds(one) : [])))
  const ids = new Map<string, string>()
  const own = given.map((call, at) => {
    const { id } = call
    const isGood = id !== '' && id.length <= MAX_TASK_NAME && !taken.has(id)
    const chosen = isGood ? id : chooseId(`call_${step}_${at + 1}`, taken)
    taken.add(chosen)
    ids.set(id, chosen)
    return { ...call, id: chosen }
  })
  const calls: AskedCall[] = []
  for (const [at, call] of own.entries()) {
    const fault = at < MAX_CALLS ? await findFault(context, known, call) : TOO_MANY
    calls.push(fault === undefined ? call : { ...call, fault })
  }
  if (calls.length === 0) return { calls, message }
  const { parts, ...plain } = message
  const isWhole = own.length === toolCalls.length && ids.size === own.length
  const kept = isWhole && parts ? { parts: { ...parts, value: renameCalls(parts.value, ids) } } : {}
  return { calls, message: { ...plain, ...kept, toolCalls: own } }
}

const listIds = ({ toolCalls = [] }: Extract<ModelMessage, { role: 'assistant' }>) =>
  toolCalls.map(({ id }) => id)

function chooseId(stem: string, taken: Set<string>): string {
  let id = stem
  for (let n = 2; taken.has(id); n++) id = `${stem}_${n}`
  return id
}

/** What only the vendor understands, with other ids of its calls. */
function renameCalls(parts: unknown, ids: Map<string, string>): unknown {
  if (!Array.isArray(parts)) return parts
  return parts.map((part) =>
    isObject(part) && part.type === 'tool-call'
      ? { ...part, toolCallId: ids.get(String(part.toolCallId)) ?? part.toolCallId }
      : part,
  )
}

const TOO_MANY = `at most ${MAX_CALLS} calls are done at once: ask again for those that are still needed`

async function findFault(
  context: NodeContext,
  known: Map<string, ToolSpec>,
  { name, arguments: given, invalid }: AskedCall,
): Promise<string | undefined> {
  const tool = known.get(name)
  if (!tool) {
    const names = [...known.keys()].join(', ').slice(0, 2_000)
    return `there is no tool ${JSON.stringify(name.slice(0, 100))}${names === '' ? '' : `; there are ${names}`}`
  }
  if (invalid !== undefined) return 'the arguments must be a JSON object'
  if (JSON.stringify(given).length > MAX_ARGUMENTS)
    return `the arguments must have at most ${MAX_ARGUMENTS} characters of JSON`
  try {
    const problems = await checkJson(context, tool.parameters, given)
    return problems.length > 0 ? `the arguments do not fit the parameters: ${problems.join('; ')}` : undefined
  } catch (error) {
    const isTheirs = error instanceof NodeFailure && !error.retryable && error.type === 'ExpressionLimit'
    if (!isTheirs) throw error
    return 'the arguments could not be held against the parameters: this took too long'
  }
}

/** The tasks for the calls with nothing wrong with them, in their order. */
export function planTasks(config: AgentConfig, remote: RemoteTool[], calls: AskedCall[]): AgentTask[] {
  return calls.flatMap(({ id, name, fault }) => {
    if (fault !== undefined) return []
    const tool = findTool(config, remote, name)
    if (!tool) return []
    const { approval } = tool as { approval?: boolean }
    const pauses = approval === true || tool.type === 'SUB_WORKFLOW'
    return [{ callId: id, tool: name, repeats: repeatsTool(tool), ...(pauses ? { pauses } : {}) }]
  })
}

/** The tool of the config that a name means: that of a server for a tool which the server has. */
export function findTool(
  { tools }: Pick<AgentConfig, 'tools'>,
  remote: RemoteTool[],
  name: string,
): AgentConfig['tools'][number] | undefined {
  const offered = remote.find((one) => one.name === name)
  return offered ? tools[offered.server] : tools.find((tool) => tool.type !== 'MCP' && tool.name === name)
}
