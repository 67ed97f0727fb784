import { estimateTokens } from '../../db/chat/history.ts'
import { askModel } from '../models/ask.ts'
import { OUT_OF_TOKENS } from '../models/failures.ts'
import type { ModelMessage, ModelReply, ModelRequest } from '../models/model.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import type { NodeContext } from '../nodes/kit/node.ts'
import type { AgentConfig } from './config.ts'
import type { AgentState } from './state.ts'

/** What an agent has used, and what is known for its next call. */
export type Spent = Pick<AgentState, 'tokens' | 'cost' | 'talk' | 'refusedMost'>

/**
 * The tokens that are assumed for the answer of a call whose usage is unknown: its worker was lost, or its answer was
 * cut.
 */
const LOST_ANSWER_TOKENS = 1_000

/** Vendors refuse to be asked for less. */
const LEAST_ANSWER_TOKENS = 16

/** No model gives more in one answer: a limit beyond that says nothing. */
const LIMITING_TOKENS = 131_072

/** The messages of a request that the last answer's report does not count yet, and the report's tokens of all others. */
export type Talk = { counted: number; news: ModelMessage[] }

/**
 * Asks the model within the agent's budget, and returns the tokens and the cost up to then, with those of earlier
 * attempts of the step: calls whose usage is unknown count as an estimate. The answer is limited to the rest of the
 * budget; one that would be too short is not asked for. Throws what askModel throws, and BudgetExceeded, also for an
 * answer that has come to its end that way.
 */
export async function askWithin(
  context: NodeContext,
  { credentialId, model, maxTokens, maxCost }: AgentConfig,
  { request, spent, talk }: { request: ModelRequest; spent: Spent; talk?: Talk | undefined },
): Promise<{ reply: ModelReply; spent: Spent }> {
  const ask = (most?: number) =>
    askModel(context, {
      credentialId,
      model,
      request: most === undefined ? request : { ...request, maxTokens: most },
      budget: { maxCost },
    })
  if (maxTokens === undefined && maxCost === undefined) return await settle(spent, request, await ask())
  const input = talk ? talk.counted + countMessages(talk.news) : countRequest(request)
  const price = await openPrice(context, { credentialId, model, maxCost })
  const before = await addEarlier(context, spent, input, price)
  demandBudget({ maxTokens, maxCost }, before)
  const room = await findRoom({ maxTokens, maxCost }, before, input, price)
  const own = request.maxTokens ?? LIMITING_TOKENS
  // A limit that the vendor has refused is above its own. Half of it is worth a try.
  const isLimited = room < own && (before.refusedMost === undefined || room <= before.refusedMost / 2)
  try {
    const reply = await ask(isLimited ? room : undefined)
    if (isLimited && reply.finish === 'length') throw cutByBudget(room)
    return await settle(before, request, reply, price)
  } catch (error) {
    if (!isLimited || !(error instanceof NodeFailure)) throw error
    if (error.type === 'ModelAnswer' && error.cause === OUT_OF_TOKENS) throw cutByBudget(room)
    if (error.type !== 'ModelRefused' || !/token/i.test(error.message)) throw error
    return await settle({ ...before, refusedMost: room }, request, await ask(), price)
  }
}

function cutByBudget(room: number): NodeFailure {
  return new NodeFailure(
    `The answer was cut after the ${room} tokens that were left of the agent's budget (maxTokens, maxCost)`,
    { type: 'BudgetExceeded' },
  )
}

/**
 * Adds a call to the tokens and cost that were spent before it. If the vendor has reported no usage, the call counts
 * as an estimate.
 */
async function settle(
  spent: Spent,
  request: ModelRequest,
  reply: ModelReply,
  price?: Price,
): Promise<{ reply: ModelReply; spent: Spent }> {
  const { usage } = reply
  const guess = usage ?? { input: countRequest(request), output: countMessage(reply.message) }
  const tokens = guess.input + guess.output
  const cost = usage ? reply.cost : ((await price?.(guess)) ?? null)
  return {
    reply,
    spent: {
      ...spent,
      tokens: spent.tokens + tokens,
      cost: spent.cost === null || cost === null ? null : spent.cost + cost,
      talk: usage ? usage.input + Math.max(0, usage.output - usage.reasoning) : undefined,
    },
  }
}

type Price = (tokens: { input: number; output: number }) => Promise<number | undefined>

/** What calls to the model cost; undefined without maxCost. */
async function openPrice(
  { credentials, meter }: NodeContext,
  { credentialId, model, maxCost }: Pick<AgentConfig, 'credentialId' | 'model' | 'maxCost'>,
): Promise<Price | undefined> {
  if (maxCost === undefined || !credentials || !meter) return undefined
  const { type: provider, data } = await credentials.open(credentialId, 'LLM')
  const { baseUrl } = data
  const called = { provider, model, ...(typeof baseUrl === 'string' ? { baseUrl } : {}) }
  return (tokens) => meter.estimate(called, tokens)
}

/** Adds what earlier attempts of the same step took, whose answers are lost to the agent. */
async function addEarlier(
  { meter }: NodeContext,
  spent: Spent,
  input: number,
  price: Price | undefined,
): Promise<Spent> {
  const earlier = await meter?.readEarlier()
  if (!earlier) return spent
  const { tokens, cost, lost } = earlier
  const each = { input, output: LOST_ANSWER_TOKENS }
  const eachCost = lost > 0 && price ? ((await price(each)) ?? 0) : 0
  return {
    ...spent,
    tokens: spent.tokens + tokens + lost * (each.input + each.output),
    cost: spent.cost === null ? null : spent.cost + cost + lost * eachCost,
  }
}

type Bounds = Pick<AgentConfig, 'maxTokens' | 'maxCost'>

/** Throws a NodeFailure (BudgetExceeded) if the calls before this one have used up what the agent may use. */
function demandBudget({ maxTokens, maxCost }: Bounds, { tokens, cost }: Spent): void {
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

/** How many tokens an answer may have. Throws a NodeFailure (BudgetExceeded) if they are too few for one. */
async function findRoom(
  { maxTokens, maxCost }: Bounds,
  { tokens, cost }: Spent,
  input: number,
  price: Price | undefined,
): Promise<number> {
  const ofTokens = maxTokens === undefined ? Number.POSITIVE_INFINITY : maxTokens - tokens - input
  if (ofTokens < LEAST_ANSWER_TOKENS)
    throw new NodeFailure(
      `The agent has used ${tokens} tokens, and its next call takes about ${input} before its answer; maxTokens is ${maxTokens}`,
      { type: 'BudgetExceeded' },
    )
  if (maxCost === undefined || !price) return ofTokens
  const asked = (await price({ input, output: 0 })) ?? 0
  const answered = ((await price({ input, output: 1_000 })) ?? 0) - asked
  if (answered <= 0 && asked <= 0) return ofTokens
  const left = maxCost - (cost ?? 0) - asked
  const ofCost =
    answered > 0 ? Math.floor((left / answered) * 1_000) : left >= 0 ? Number.POSITIVE_INFINITY : 0
  if (ofCost < LEAST_ANSWER_TOKENS)
    throw new NodeFailure(
      `The agent has used ${cost} US dollars, and its next call costs about ${asked} before its answer; maxCost is ${maxCost}`,
      { type: 'BudgetExceeded' },
    )
  return Math.min(ofTokens, ofCost)
}

function countRequest({ messages, tools }: ModelRequest): number {
  return countMessages(messages) + (tools ? estimateTokens(JSON.stringify(tools)) : 0)
}

function countMessages(messages: ModelMessage[]): number {
  return messages.reduce((sum, message) => sum + countMessage(message), 0)
}

function countMessage(message: ModelMessage): number {
  if (message.role === 'tool') {
    const { result } = message
    return estimateTokens(typeof result === 'string' ? result : (JSON.stringify(result) ?? ''))
  }
  const calls = message.role === 'assistant' && message.toolCalls ? JSON.stringify(message.toolCalls) : ''
  return estimateTokens(message.content) + estimateTokens(calls)
}
