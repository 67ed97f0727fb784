import * as v from 'valibot'
import { isObject } from '../../workflows/json.ts'
import { loadChatMemory } from '../agentchat/memory.ts'
import { askModel } from '../models/ask.ts'
import type { ModelMessage, ModelReply } from '../models/model.ts'
import { renderKey, renderText } from '../nodes/kit/config.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import type { NodeContext } from '../nodes/kit/node.ts'
import { askCalls, planTasks } from './calls.ts'
import { type AgentConfig, readAgentConfig } from './config.ts'
import { findRemoteTools, listOffered } from './offer.ts'
import { answerCalls } from './outcomes.ts'
import { type AgentState, demandRoom } from './state.ts'
import type { AgentStep, AgentStepResult, TaskOutcome } from './step.ts'

const temperatureField = v.optional(v.pipe(v.number('must be a number'), v.minValue(0), v.maxValue(2)))

/** About how many characters a token has, for calls whose vendor reports none. */
const TOKEN_CHARS = 4

/** How much of the model's last text a failure has. */
const MAX_LAST = 500

type Turn = Extract<AgentStep, { kind: 'turn' }>

/** One call to the model: the node ends with its text, or goes on with the tasks that it asks for. */
export async function runAgentTurn(context: NodeContext, step: Turn): Promise<AgentStepResult> {
  const config = readAgentConfig(context)
  const { state, news } = await openTurn(context, step, config)
  if (state.isOver) throw outOfSteps(config, state)
  demandBudget(config, state)
  const tools = listOffered(config, state.remote)
  const reply = await askModel(context, {
    credentialId: config.credentialId,
    model: config.model,
    request: {
      messages: state.messages,
      ...(tools.length > 0 ? { tools } : {}),
      temperature: await renderKey(context, 'temperature', temperatureField),
    },
    budget: { maxCost: config.maxCost },
  })
  const { calls, message } = await askCalls(context, tools, reply)
  const { text, finish, usage, cost } = reply
  const input = {
    model: config.model,
    messages: news,
    ...(step.state === undefined && tools.length > 0 ? { tools: tools.map(({ name }) => name) } : {}),
  }
  const output = { text, finish, usage, cost, ...(calls.length > 0 ? { toolCalls: calls } : {}) }
  if (calls.length === 0) {
    warnOfCut(context, finish)
    return { kind: 'turn', input, output, done: { text, steps: step.step } }
  }
  const tasks = planTasks(config, state.remote, calls)
  // What nobody would see the outcome of is not done.
  const isOver = step.step + tasks.length >= config.maxSteps
  const next: AgentState = {
    ...spend(state, state.messages, reply),
    messages: [...state.messages, message],
    asked: calls,
    lastText: text.trim() === '' ? state.lastText : text,
    ...(isOver ? { isOver } : {}),
  }
  return { kind: 'turn', input, output, state: demandRoom(next), tasks: isOver ? [] : tasks }
}

/** The state for this turn, with what is new in its conversation. */
async function openTurn(
  context: NodeContext,
  { state, outcomes }: Turn,
  config: AgentConfig,
): Promise<{ state: AgentState; news: ModelMessage[] }> {
  if (state === undefined) {
    const remote = await findRemoteTools(context)
    const spent: Spent = { tokens: 0, cost: 0 }
    const messages = await openConversation(context, config, spent)
    return { state: { messages, remote, asked: [], ...spent, lastText: '' }, news: messages }
  }
  const before = state as AgentState
  const news = before.isOver ? [] : await answerCalls(before.asked, outcomes satisfies TaskOutcome[])
  return { state: { ...before, messages: [...before.messages, ...news] }, news }
}

type Spent = Pick<AgentState, 'tokens' | 'cost'>

/** The instructions, what the chat remembers, and the prompt. A summary of the chat adds to what is `spent`. */
async function openConversation(
  context: NodeContext,
  { credentialId, model, maxCost }: AgentConfig,
  spent: Spent,
): Promise<ModelMessage[]> {
  const instructions = await renderText(context, 'instructions')
  const prompt =
    context.config.prompt === undefined ? readPrompt(context) : await renderText(context, 'prompt')
  const memory = await loadChatMemory(context, async (quiet, request) => {
    const reply = await askModel(quiet, { credentialId, model, request, budget: { maxCost } })
    spend(spent, request.messages, reply)
    return reply
  })
  return [{ role: 'system', content: instructions }, ...(memory ?? []), { role: 'user', content: prompt }]
}

/** What an agent without a prompt is asked: the message of the chat, or its input as a text. */
function readPrompt({ input, bindings }: NodeContext): string {
  if (bindings.execution.trigger === 'CHAT' && isObject(input) && typeof input.message === 'string')
    return input.message
  if (input === null || input === undefined)
    throw new NodeFailure('prompt is required for an agent without an input', { type: 'InvalidConfig' })
  return typeof input === 'string' ? input : JSON.stringify(input)
}

/** Throws a NodeFailure (BudgetExceeded) if the turns before this one have used up what the agent may use. */
function demandBudget({ maxTokens, maxCost }: AgentConfig, { tokens, cost }: AgentState): void {
  if (maxTokens !== undefined && tokens >= maxTokens)
    throw new NodeFailure(`The agent has used ${tokens} tokens; maxTokens is ${maxTokens}`, {
      type: 'BudgetExceeded',
    })
  if (maxCost === undefined) return
  if (cost === null) {
    const message = 'The vendor has not reported what the agent has used, so maxCost cannot be kept'
    throw new NodeFailure(message, { type: 'BudgetExceeded' })
  }
  // What costs nothing may go on with a budget of nothing.
  if (cost > 0 && cost >= maxCost)
    throw new NodeFailure(`The agent has used ${cost} US dollars; maxCost is ${maxCost}`, {
      type: 'BudgetExceeded',
    })
}

/** Adds a call to what was spent before it. */
function spend<S extends Spent>(spent: S, messages: ModelMessage[], reply: ModelReply): S {
  spent.tokens += countTokens(messages, reply)
  spent.cost = spent.cost === null || reply.cost === null ? null : spent.cost + reply.cost
  return spent
}

function countTokens(messages: ModelMessage[], { usage, message }: ModelReply): number {
  if (usage) return usage.input + usage.output
  return Math.ceil(JSON.stringify([messages, message]).length / TOKEN_CHARS)
}

function outOfSteps({ maxSteps }: AgentConfig, { lastText, asked }: AgentState): NodeFailure {
  const wanted = [...new Set(asked.map(({ name }) => name))].join(', ').slice(0, MAX_LAST)
  const last = lastText.length > MAX_LAST ? `${lastText.slice(0, MAX_LAST)}...` : lastText
  const said = last === '' ? '' : `. Its last words: ${last}`
  return new NodeFailure(
    `The agent was not done after ${maxSteps} steps (maxSteps); it still wanted to call ${wanted}${said}`,
    { type: 'AgentOutOfSteps' },
  )
}

function warnOfCut({ notes }: NodeContext, finish: ModelReply['finish']): void {
  const why =
    finish === 'length'
      ? 'the answer is cut: the model has come to the end of its tokens'
      : finish === 'filter'
        ? "the answer is cut by the vendor's filter"
        : undefined
  if (why) notes.add({ warnings: [{ path: 'config.model', message: why }] })
}
