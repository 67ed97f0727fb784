import { makeDemoValue } from './demovalue.ts'
import type { ModelMessage, ModelRequest, ToolSpec } from './model.ts'

/** A call of a tool; `input` is the text of its arguments, which may be no JSON if the prompt's was none. */
export type DemoCall = { id: string; name: string; input: string }

/** The most calls that one prompt asks for. */
const MAX_CALLS = 20_000
/** Longer prompts are read up to here. */
const MAX_READ = 20_000

/** The last thing that the user has said. */
export function findPrompt(messages: ModelMessage[]): string {
  const last = messages.findLast(({ role }) => role === 'user')
  return last?.role === 'user' ? last.content.slice(0, MAX_READ) : ''
}

/**
 * The calls of tools with which the demo model answers; none if it answers with words. `use the tool NAME with {...}`
 * asks for a call, with `5 times` after it for five; one after the other, or all in one answer if the prompt says
 * `at once`. In the arguments, "$n" is the number of the call. Without such words it calls the first tool of whose name
 * the prompt has a word, once.
 */
export function chooseToolCalls(request: ModelRequest): DemoCall[] {
  const { messages, tools = [] } = request
  if (tools.length === 0) return []
  const prompt = findPrompt(messages)
  const before = countCalls(messages)
  const done =
    before -
    countCalls(
      messages.slice(
        0,
        messages.findLastIndex(({ role }) => role === 'user'),
      ),
    )
  const named = listOrders(prompt)
  const orders = named.length > 0 ? named : guess(tools, prompt)
  const open = orders.slice(done)
  const chosen = /\bat once\b/i.test(prompt) ? open : open.slice(0, 1)
  return chosen.map((order, i) => ({ id: `call-${before + i + 1}`, ...order }))
}

function countCalls(messages: ModelRequest['messages']): number {
  return messages.reduce(
    (n, message) => n + (message.role === 'assistant' ? (message.toolCalls?.length ?? 0) : 0),
    0,
  )
}

type Order = Omit<DemoCall, 'id'>

function listOrders(prompt: string): Order[] {
  const orders: Order[] = []
  for (const match of prompt.matchAll(/\buse the tool\s{1,3}["'`]?([\w.-]{1,128})["'`]?/gi)) {
    const rest = prompt.slice(match.index + match[0].length)
    const lead = /^\s{0,3}with\s{0,3}(?=\{)/i.exec(rest)?.[0].length
    const input = lead === undefined ? '{}' : takeBraces(rest.slice(lead))
    const after = lead === undefined ? rest : rest.slice(lead + input.length)
    const times = Number(/^\s{0,3}(\d{1,5}) times\b/i.exec(after)?.[1] ?? 1)
    for (let n = 1; n <= times && orders.length < MAX_CALLS; n++)
      orders.push({ name: match[1]!.replace(/\.+$/, ''), input: input.replaceAll('"$n"', String(n)) })
  }
  return orders
}

/** The text from a brace to the one that closes it; all of the text if none does. */
function takeBraces(text: string): string {
  let depth = 0
  let quoted = false
  for (let i = 0; i < text.length; i++) {
    const char = text[i]
    if (quoted) {
      if (char === '\\') i++
      else if (char === '"') quoted = false
    } else if (char === '"') quoted = true
    else if (char === '{') depth++
    else if (char === '}' && --depth === 0) return text.slice(0, i + 1)
  }
  return text
}

/** The first tool of which the prompt speaks: by a word of its name with four letters or more. */
function guess(tools: ToolSpec[], prompt: string): Order[] {
  const words = new Set(prompt.toLowerCase().match(/\p{L}+/gu))
  const tool = tools.find(({ name }) =>
    splitName(name).some((word) => word.length >= 4 && (words.has(word) || words.has(`${word}s`))),
  )
  return tool
    ? [{ name: tool.name, input: JSON.stringify(makeDemoValue(tool.parameters, prompt) ?? {}) }]
    : []
}

function splitName(name: string): string[] {
  return name
    .replace(/(\p{Ll})(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}]+/u)
}
