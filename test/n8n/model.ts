import type { Answer, Asked } from './mock.ts'

type Message = {
  role: string
  content?: unknown
  tool_calls?: { function: { name: string; arguments: string } }[]
}
type Body = {
  model: string
  messages: Message[]
  tools?: { function: { name: string; description?: string; parameters?: Record<string, unknown> } }[]
  temperature?: number
  max_tokens?: number
  max_completion_tokens?: number
  stream?: boolean
}

const plainText = (content: unknown): string => {
  if (typeof content === 'string') return content
  return Array.isArray(content) ? content.map((part) => String(Object(part).text ?? '')).join('') : ''
}

/** What of a request to the model both products are held to. */
export function readAsking({ model, messages, tools = [], temperature, ...more }: Body) {
  return {
    model,
    messages: messages.map(({ role, content, tool_calls: calls = [] }) => ({
      role,
      content: plainText(content),
      ...(calls.length > 0
        ? {
            calls: calls.map(({ function: { name, arguments: args } }) => ({ name, args: JSON.parse(args) })),
          }
        : {}),
    })),
    ...(tools.length > 0
      ? {
          tools: tools.map(({ function: { name, description = '', parameters = {} } }) => {
            const { $schema: _, ...schema } = parameters
            return { name, description, parameters: schema }
          }),
        }
      : {}),
    ...(temperature === undefined ? {} : { temperature }),
    ...((more.max_tokens ?? more.max_completion_tokens) === undefined
      ? {}
      : { maxTokens: more.max_tokens ?? more.max_completion_tokens }),
  }
}

/** What Perdure tells a model that is to answer by a schema; n8n has other words, and other schemas. */
const OUR_WORDS = 'Answer with JSON only: no other words, no Markdown.'

/**
 * The model of the cases. The last message of the user says what it answers: `SAY text`, or `CALL tool {...}` for a call
 * of a tool, after which it answers `Done.`; `CALL` lines are called one after the other, a turn each. `OURS {...}` is
 * what it answers to Perdure instead of SAY if that asks for JSON. To all else it answers `You said: ...`.
 */
export function askModel({ body }: Asked): Answer {
  const { messages, model, stream } = JSON.parse(body) as Body
  const at = messages.findLastIndex(({ role }) => role === 'user')
  const text = plainText(messages[at]?.content)
  const results = messages.slice(at + 1).filter(({ role }) => role === 'tool')
  const calls = [...text.matchAll(/^CALL ([\w-]+) (\{.*\})$/gm)]
  const [, name, args] = calls[results.length] ?? []
  const isOurs = messages.some(({ content }) => plainText(content).includes(OUR_WORDS))
  const said = (isOurs ? /OURS ([^\n]*)/ : /SAY ([^\n]*)/).exec(text)?.[1]
  const answer = name
    ? {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: `call_${results.length + 1}`, type: 'function', function: { name, arguments: args } },
        ],
      }
    : { role: 'assistant', content: said ?? (calls.length > 0 ? 'Done.' : `You said: ${text}`) }
  const finish = name ? 'tool_calls' : 'stop'
  const head = { id: 'chatcmpl-1', created: 1_760_000_000, model }
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
  if (!stream) {
    const choices = [{ index: 0, message: answer, logprobs: null, finish_reason: finish }]
    return { json: { ...head, object: 'chat.completion', choices, usage } }
  }
  const { tool_calls: asked, ...words } = answer as { tool_calls?: object[]; role: string; content: unknown }
  const delta = { ...words, ...(asked ? { tool_calls: asked.map((one, index) => ({ index, ...one })) } : {}) }
  const chunks = [
    { choices: [{ index: 0, delta, finish_reason: null }] },
    { choices: [{ index: 0, delta: {}, finish_reason: finish }] },
    { choices: [], usage },
  ].map((chunk) => `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', ...chunk })}\n\n`)
  return { text: `${chunks.join('')}data: [DONE]\n\n`, headers: { 'content-type': 'text/event-stream' } }
}
