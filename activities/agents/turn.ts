import * as v from 'valibot'
import { isObject } from '../../workflows/json.ts'
import { type AskForSummary, loadChatMemory } from '../chat/memory.ts'
import { recall, remember, renderMemoryKey } from '../models/memory.ts'
import type { ModelMessage, ModelReply } from '../models/model.ts'
import { renderKey, renderText } from '../nodes/kit/config.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import { putInto } from '../nodes/kit/into.ts'
import type { NodeContext } from '../nodes/kit/node.ts'
import { askWithin, type Spent } from './budget.ts'
import { askCalls, planTasks } from './calls.ts'
import { type AgentConfig, readAgentConfig } from './config.ts'
import { type GuardNote, guardSummary, guardValue, redactEach, refuseByGuard } from './guards/guards.ts'
import { guardReply } from './guards/reply.ts'
import { findRemoteTools, listOffered } from './offer.ts'
import { answerCalls } from './outcomes.ts'
import { type AgentState, demandMessageRoom } from './state.ts'
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
  const checks = config.guardrails?.output
  const { reply: said, spent } = await askWithin(checks ? withoutReply(context) : context, config, {
    request: {
      messages,
      ...(tools.length > 0 ? { tools } : {}),
      temperature: await renderKey(context, 'temperature', temperatureField),
    },
    spent: spentOf(state),
    talk: state.talk === undefined || isFirst ? undefined : { counted: state.talk, news },
  })
  const { finish, usage, cost } = said
  const input = {
    model: config.model,
    messages: news,
    ...(isFirst && tools.length > 0 ? { tools: tools.map(({ name }) => name) } : {}),
  }
  const guarded = checks
    ? await guardReply(context, checks, { reply: said, before: listSaid(messages, state.opening) })
    : undefined
  if (guarded && !guarded.passed)
    return refuseTurn(context, step, guarded.note, { input, output: { finish, usage, cost } })
  const reply = guarded?.reply ?? said
  const asked = await askCalls(context, tools, reply, { said: messages, step: step.step })
  const { message } = asked
  // The calls are as many as were asked for and in their order, or the first of them.
  const calls = asked.calls.map((call, at) => {
    const fault = guarded?.faults.get(reply.toolCalls[at]!)
    return fault === undefined ? call : { ...call, fault }
  })
  const { text } = reply
  const output = {
    // Text that is held is told with the last turn, or never.
    ...(guarded ? (calls.length === 0 ? { text: guarded.whole } : { held: true }) : { text }),
    finish,
    usage,
    cost,
    ...(calls.length > 0 ? { toolCalls: calls } : {}),
    ...(guarded ? { guardrails: [...opened.notes, ...guarded.notes] } : listNotes(opened.notes)),
  }
  if (calls.length === 0) {
    if (guarded) context.reply?.write(guarded.whole)
    warnOfCut(context, reply)
    await keepAnswer(context, { state, messages, text: guarded?.whole ?? text })
    return { kind: 'turn', input, output, done: placeAnswer(context, { text, steps: step.step }) }
  }
  const tasks = planTasks(config, state.remote, calls)
  // A task is not done if no turn would see its outcome.
  const isOver = step.step + tasks.length >= config.maxSteps
  const next: AgentState = {
    ...state,
    ...spent,
    asked: calls,
    lastText: guarded || text.trim() === '' ? state.lastText : text,
    ...(isOver ? { isOver } : {}),
  }
  return { kind: 'turn', input, output, state: next, log: [...unlogged, message], tasks: isOver ? [] : tasks }
}

/** What the agent was asked and has answered is for its next execution, too. */
async function keepAnswer(
  context: NodeContext,
  { state: { memory }, messages, text }: { state: AgentState; messages: ModelMessage[]; text: string },
): Promise<void> {
  const asked = memory && messages[memory.prompt]
  if (asked?.role === 'user') await remember(context, memory!.key, { asked: asked.content, answered: text })
}

const listNotes = (notes: GuardNote[]) => (notes.length > 0 ? { guardrails: notes } : {})

/** The end of an agent whose prompt or reply was blocked: nothing of that is in what it outputs, or in its records. */
async function refuseTurn(
  context: NodeContext,
  { step }: Turn,
  note: GuardNote,
  { input, output }: { input: object; output: object },
): Promise<AgentStepResult> {
  const refused = await refuseByGuard(context, readAgentConfig(context).guardrails ?? {}, note)
  const { text: _, ...told } = refused
  return {
    kind: 'turn',
    input,
    output: { ...told, ...output, guardrails: [note] },
    done: { ...refused, steps: step },
  }
}

/** Removes the reply, so that nothing is told before it is checked. */
function withoutReply({ reply: _, ...quiet }: NodeContext): NodeContext {
  return quiet
}

/** What the agent itself has said so far; its conversation begins with what the chat remembers. */
function listSaid(messages: ModelMessage[], opening: number | undefined): string[] {
  return messages
    .slice(opening ?? messages.length)
    .flatMap((message) => (message.role === 'assistant' && message.content !== '' ? [message.content] : []))
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
  /** The findings in the prompt. */
  notes: GuardNote[]
}

/**
 * Where this turn begins; or what it has come to, if it only summarised. Throws OutputTooLarge for a conversation that
 * is too long.
 */
async function openTurn(
  context: NodeContext,
  step: Turn,
  config: AgentConfig,
): Promise<Opened | AgentStepResult> {
  const { state, log, outcomes } = step
  const { messages: unlogged = [], ...before } = (state ?? NEW) as AgentState
  const said = [...(log as ModelMessage[]), ...unlogged]
  if (said.length > 0) {
    const news = before.isOver ? [] : answerCalls(before.asked, outcomes satisfies TaskOutcome[])
    const messages = [...said, ...news]
    demandMessageRoom(messages)
    return {
      state: before,
      messages,
      unlogged: [...unlogged, ...news],
      news,
      isFirst: false,
      notes: [],
    }
  }
  const key = await renderMemoryKey(context)
  const { messages, spent, result, notes } = await openConversation(context, config, {
    key,
    step,
    spent: spentOf(before),
  })
  if (result) return result
  demandMessageRoom(messages)
  const remote = await findRemoteTools(context)
  const opening = config.guardrails?.output ? { opening: messages.length } : {}
  return {
    state: {
      ...before,
      ...spent,
      ...opening,
      ...(key === undefined ? {} : { memory: { key, prompt: messages.length - 1 } }),
      remote,
    },
    messages,
    unlogged: messages,
    news: messages,
    isFirst: true,
    notes,
  }
}

const spentOf = ({ tokens, cost, talk, refusedMost }: AgentState): Spent => ({
  tokens,
  cost,
  talk,
  refusedMost,
})

/**
 * The instructions, what the chat remembers, and the prompt; or the result of a step of its own that has summarised the
 * chat, or of an agent whose prompt was blocked.
 */
async function openConversation(
  context: NodeContext,
  config: AgentConfig,
  { step, spent, key }: { step: Turn; spent: Spent; key: string | undefined },
): Promise<{ messages: ModelMessage[]; spent: Spent; notes: GuardNote[]; result?: AgentStepResult }> {
  const instructions = await renderText(context, 'instructions')
  const given =
    context.config.prompt === undefined ? readPrompt(context) : await renderText(context, 'prompt')
  const input = config.guardrails?.input
  const output = config.guardrails?.output
  const asked = input && (await guardValue(context, 'input', input, given))
  if (asked && !asked.passed) {
    const blocked = { input: { model: config.model, messages: [] }, output: {} }
    const result = await refuseTurn(context, step, asked.note, blocked)
    return { messages: [], spent, notes: [], result }
  }
  const prompt = asked ? String(asked.value) : given
  let result: AgentStepResult | undefined
  let used = spent
  const clean = input?.redactPii ? (texts: string[]) => redactEach(context, input, texts) : undefined
  const askForSummary: AskForSummary = async (quiet, request) => {
    const { reply, spent: after } = await askWithin(quiet, config, { request, spent })
    const { finish, usage, cost } = reply
    used = { ...after, talk: undefined }
    const text = output ? await guardSummary(context, output, reply.text) : reply.text
    result = {
      kind: 'turn',
      input: { model: config.model, messages: request.messages },
      output: { summary: text, finish, usage, cost },
      state: { ...NEW, ...used },
      tasks: [],
    }
    return { ...reply, text }
  }
  const memory = await loadChatMemory(context, askForSummary, clean)
  const before = key === undefined ? [] : await recall(context, key, clean)
  const user: ModelMessage = { role: 'user', content: prompt }
  const system: ModelMessage = { role: 'system', content: instructions }
  const messages = [system, ...(memory ?? before), user]
  const notes = asked ? [asked.note] : []
  return { messages, spent: used, notes, ...(result ? { result } : {}) }
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
