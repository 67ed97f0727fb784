import * as v from 'valibot'
import { isObject } from '../../workflows/json.ts'
import { loadChatMemory } from '../agentchat/memory.ts'
import type { ModelMessage, ModelReply } from '../models/model.ts'
import { renderKey, renderText } from '../nodes/kit/config.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import { putInto } from '../nodes/kit/into.ts'
import type { NodeContext } from '../nodes/kit/node.ts'
import { askWithin, type Spent } from './budget.ts'
import { askCalls, planTasks } from './calls.ts'
import { type AgentConfig, readAgentConfig } from './config.ts'
import { findRemoteTools, listOffered } from './offer.ts'
import { answerCalls } from './outcomes.ts'
import { type AgentState, demandRoom } from './state.ts'
import type { AgentStep, AgentStepResult, TaskOutcome } from './step.ts'

const temperatureField = v.optional(v.pipe(v.number('must be a number'), v.minValue(0), v.maxValue(2)))

/** How much of the model's last text a failure has. */
const MAX_LAST = 500

type Turn = Extract<AgentStep, { kind: 'turn' }>

/**
 * One call to the model: the node ends with its text, or goes on with the tasks that it asks for. If the older part of
 * a chat has to be summarised first, the turn does only that, and the next one begins the conversation.
 */
export async function runAgentTurn(context: NodeContext, step: Turn): Promise<AgentStepResult> {
  const config = readAgentConfig(context)
  const opened = await openTurn(context, step, config)
  if ('kind' in opened) return opened
  const { state, messages, unlogged, news, isFirst } = opened
  if (state.isOver) throw outOfSteps(config, state)
  const tools = listOffered(config, state.remote)
  const { reply, spent } = await askWithin(context, config, {
    request: {
      messages,
      ...(tools.length > 0 ? { tools } : {}),
      temperature: await renderKey(context, 'temperature', temperatureField),
    },
    spent: spentOf(state),
    talk: state.talk === undefined || isFirst ? undefined : { counted: state.talk, news },
  })
  const { calls, message } = await askCalls(context, tools, reply, { said: messages, step: step.step })
  const { text, finish, usage, cost } = reply
  const input = {
    model: config.model,
    messages: news,
    ...(isFirst && tools.length > 0 ? { tools: tools.map(({ name }) => name) } : {}),
  }
  const output = { text, finish, usage, cost, ...(calls.length > 0 ? { toolCalls: calls } : {}) }
  if (calls.length === 0) {
    warnOfCut(context, reply)
    return { kind: 'turn', input, output, done: placeAnswer(context, { text, steps: step.step }) }
  }
  const tasks = planTasks(config, state.remote, calls)
  // What nobody would see the outcome of is not done.
  const isOver = step.step + tasks.length >= config.maxSteps
  const next: AgentState = {
    ...state,
    ...spent,
    asked: calls,
    lastText: text.trim() === '' ? state.lastText : text,
    ...(isOver ? { isOver } : {}),
  }
  return { kind: 'turn', input, output, state: next, log: [...unlogged, message], tasks: isOver ? [] : tasks }
}

/** The answer as output, or with `into` its text in a field of the node's item. */
function placeAnswer(context: NodeContext, answer: { text: string; steps: number }): unknown {
  return context.config.into === undefined ? answer : putInto(context, answer.text)
}

const NEW: AgentState = { remote: [], asked: [], tokens: 0, cost: 0, lastText: '' }

/** A turn's conversation: all of it, what of it is not in the log, and what is new. */
type Opened = {
  state: AgentState
  messages: ModelMessage[]
  unlogged: ModelMessage[]
  news: ModelMessage[]
  isFirst: boolean
}

/** Where this turn begins; or what it has come to, if it only summarised. Throws OutputTooLarge for a conversation that is too long. */
async function openTurn(
  context: NodeContext,
  { state, log, outcomes }: Turn,
  config: AgentConfig,
): Promise<Opened | AgentStepResult> {
  const { messages: unlogged = [], ...before } = (state ?? NEW) as AgentState
  const said = [...(log as ModelMessage[]), ...unlogged]
  if (said.length > 0) {
    const news = before.isOver ? [] : answerCalls(before.asked, outcomes satisfies TaskOutcome[])
    const messages = [...said, ...news]
    demandRoom(messages)
    return { state: before, messages, unlogged: [...unlogged, ...news], news, isFirst: false }
  }
  const { messages, summary } = await openConversation(context, config, spentOf(before))
  if (summary) return summary
  demandRoom(messages)
  const remote = await findRemoteTools(context)
  return { state: { ...before, remote }, messages, unlogged: messages, news: messages, isFirst: true }
}

const spentOf = ({ tokens, cost, talk, refusedMost }: AgentState): Spent => ({
  tokens,
  cost,
  talk,
  refusedMost,
})

/** The instructions, what the chat remembers, and the prompt; or a step of its own that has summarised the chat. */
async function openConversation(
  context: NodeContext,
  config: AgentConfig,
  spent: Spent,
): Promise<{ messages: ModelMessage[]; summary?: AgentStepResult }> {
  const instructions = await renderText(context, 'instructions')
  const prompt =
    context.config.prompt === undefined ? readPrompt(context) : await renderText(context, 'prompt')
  let summary: AgentStepResult | undefined
  const memory = await loadChatMemory(context, async (quiet, request) => {
    const asked = await askWithin(quiet, config, { request, spent })
    const { text, finish, usage, cost } = asked.reply
    summary = {
      kind: 'turn',
      input: { model: config.model, messages: request.messages },
      output: { summary: text, finish, usage, cost },
      state: { ...NEW, ...asked.spent, talk: undefined },
      tasks: [],
    }
    return asked.reply
  })
  const user: ModelMessage = { role: 'user', content: prompt }
  const messages: ModelMessage[] = [{ role: 'system', content: instructions }, ...(memory ?? []), user]
  return { messages, ...(summary ? { summary } : {}) }
}

/** What an agent without a prompt is asked: the message of the chat, or its input as a text. */
function readPrompt({ input, bindings }: NodeContext): string {
  if (bindings.execution.trigger === 'CHAT' && isObject(input) && typeof input.message === 'string')
    return input.message
  if (input === null || input === undefined)
    throw new NodeFailure('prompt is required for an agent without an input', { type: 'InvalidConfig' })
  return typeof input === 'string' ? input : JSON.stringify(input)
}

function outOfSteps({ maxSteps }: AgentConfig, { lastText, asked }: AgentState): NodeFailure {
  const wanted = [...new Set(asked.map(({ name }) => name))].join(', ').slice(0, MAX_LAST)
  const last = lastText.length > MAX_LAST ? `${lastText.slice(0, MAX_LAST)}...` : lastText
  const said = last === '' ? '' : `. Its last words: ${last}`
  return new NodeFailure(
    `The agent was not done after ${maxSteps} ${maxSteps === 1 ? 'step' : 'steps'} (maxSteps); it still wanted to call ${wanted}${said}`,
    { type: 'AgentOutOfSteps' },
  )
}

function warnOfCut({ notes }: NodeContext, { finish, reason }: ModelReply): void {
  const why =
    finish === 'length'
      ? 'the answer is cut: the model has come to the end of its tokens'
      : finish === 'filter'
        ? "the answer is cut by the vendor's filter"
        : finish === 'other'
          ? `the answer may be cut: its vendor ended it with ${JSON.stringify(reason)}`
          : undefined
  if (why) notes.add({ warnings: [{ path: 'config.model', message: why }] })
}
