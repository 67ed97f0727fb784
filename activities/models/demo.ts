import { setTimeout as sleep, setImmediate as soon } from 'node:timers/promises'
import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { getOwn } from '../../workflows/json.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import { chooseToolCalls, type DemoCall, findPrompt } from './demotools.ts'
import { makeDemoValue } from './demovalue.ts'
import type { ModelMessage, ModelRequest } from './model.ts'

/** The milliseconds before each word. */
const PACES: Record<string, number> = { demo: 0, 'demo-slow': 50 }
const CHARS_PER_TOKEN = 4
const MAX_QUOTED = 500

/**
 * The model of the provider DEMO: it answers by rules, in this process, without a key and without cost, and the same
 * request always gets the same answer, word by word. It carries out `use the tool NAME with {"json": 1}`, and calls the
 * first tool whose name the prompt speaks of; it answers what it is asked by a schema with a value that fits it.
 * Throws a NodeFailure (ModelRefused) for a model that it has not.
 */
export function startDemo(
  name: string,
  request: ModelRequest,
  signal: AbortSignal,
): AsyncGenerator<LanguageModelV4StreamPart, void, undefined> {
  const paceMs = getOwn(PACES, name)
  if (paceMs !== undefined) return speak(request, paceMs, signal)
  const known = Object.keys(PACES).join(' and ')
  throw new NodeFailure(`DEMO has no model ${name.slice(0, 100)}: its models are ${known}`, {
    type: 'ModelRefused',
  })
}

async function* speak(
  request: ModelRequest,
  paceMs: number,
  signal: AbortSignal,
): AsyncGenerator<LanguageModelV4StreamPart, void, undefined> {
  const calls = chooseToolCalls(request)
  const whole = calls.length > 0 ? '' : answer(request)
  const most = (request.maxTokens ?? Number.POSITIVE_INFINITY) * CHARS_PER_TOKEN
  const text = whole.length > most ? whole.slice(0, most).toWellFormed() : whole
  for (const word of text.match(/\s*\S+\s*$|\s*\S+|\s+$/gu) ?? []) {
    await (paceMs > 0 ? sleep(paceMs, undefined, { signal }) : soon(undefined, { signal }))
    yield { type: 'text-delta', id: '0', delta: word }
  }
  for (const call of calls) {
    await soon(undefined, { signal })
    yield { type: 'tool-call', toolCallId: call.id, toolName: call.name, input: call.input }
  }
  const unified = calls.length > 0 ? 'tool-calls' : text === whole ? 'stop' : 'length'
  yield { type: 'finish', finishReason: { unified, raw: unified }, usage: countUsage(request, text, calls) }
}

function countUsage({ messages, tools = [], schema }: ModelRequest, text: string, calls: DemoCall[]) {
  const sent = [messages, tools, schema].reduce<number>(
    (sum, one) => sum + (one ? JSON.stringify(one).length : 0),
    0,
  )
  const said = calls.reduce((sum, { name, input }) => sum + name.length + input.length, text.length)
  const total = (chars: number) => Math.ceil(chars / CHARS_PER_TOKEN)
  return {
    inputTokens: { total: total(sent), noCache: total(sent), cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: total(said), text: total(said), reasoning: 0 },
  }
}

function answer(request: ModelRequest): string {
  const { messages, schema } = request
  const prompt = findPrompt(messages)
  if (schema) return JSON.stringify(makeDemoValue(schema, prompt))
  const told = quoteResults(messages)
  return told === '' ? reply(prompt, messages) : told
}

/** What the tools have answered since the user spoke. */
function quoteResults(messages: ModelMessage[]): string {
  const since = messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1)
  const lines = since.flatMap((message) => {
    if (message.role !== 'tool') return []
    const { toolName, result, failed } = message
    const text = typeof result === 'string' ? result : (JSON.stringify(result) ?? 'null')
    return `The tool ${toolName} ${failed ? 'failed' : 'answered'}: ${quote(text)}`
  })
  return lines.slice(-10).join('\n')
}

const quote = (text: string) =>
  text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED).toWellFormed()}...` : text

function reply(prompt: string, messages: ModelMessage[]): string {
  const said = /^\s*(?:please )?(?:say|repeat|answer with)\s*:?\s+([^\n]+)/i.exec(prompt)?.[1]
  if (said) return said.trim()
  const sum = /(-?\d{1,9}(?:\.\d{1,6})?)\s{0,3}([-+*/x])\s{0,3}(-?\d{1,9}(?:\.\d{1,6})?)/.exec(prompt)
  if (sum && /\b(?:what|how much|compute|calculate)\b/i.test(prompt))
    return calculate(sum[1]!, sum[2]!, sum[3]!)
  if (/\bwhat (?:did|have) I (?:say|said|ask|asked)\b/i.test(prompt)) return recall(messages)
  if (/\bsummar(?:y|ize|ise)\b/i.test(`${prompt.slice(0, 200)} ${findSystem(messages)}`))
    return summarize(prompt)
  if (/\bwho are you\b/i.test(prompt))
    return 'I am the demo model: I answer by rules, without a key and without cost.'
  if (/^\s*(?:hello|hi|hey)\b/i.test(prompt)) return 'Hello! I am the demo model. What can I do for you?'
  return prompt.trim() === '' ? 'You said nothing.' : `You said: ${quote(prompt.trim())}`
}

function calculate(left: string, sign: string, right: string): string {
  const [a, b] = [Number(left), Number(right)]
  const results: Record<string, number> = { '+': a + b, '-': a - b, '*': a * b, x: a * b, '/': a / b }
  return `${a} ${sign} ${b} is ${Number(results[sign]!.toPrecision(12))}.`
}

function recall(messages: ModelMessage[]): string {
  const said = messages
    .flatMap((message) => (message.role === 'user' ? [quote(message.content)] : []))
    .slice(0, -1)
  return said.length === 0 ? 'You have said nothing before.' : `You said: ${said.slice(-10).join(' / ')}`
}

function findSystem(messages: ModelMessage[]): string {
  const [first] = messages
  return first?.role === 'system' ? first.content.slice(0, 200) : ''
}

/** The beginning of a text: its first sentences, at most forty words. */
function summarize(text: string): string {
  const rest = text.replace(/^\s*(?:please )?summar(?:ize|ise)[^:\n]{0,200}[:\n]/i, '').trim()
  const words = rest.split(/\s+/, 41)
  return words.length > 40 ? `${words.slice(0, 40).join(' ')} ...` : words.join(' ')
}
