import type { LanguageModelV4CallOptions, LanguageModelV4Message } from '@ai-sdk/provider'
import type { ModelMessage, ModelRequest } from './model.ts'

type Assistant = Extract<LanguageModelV4Message, { role: 'assistant' }>
/** A part of an answer as the vendors' libraries have it. */
export type AnswerPart = Assistant['content'][number]

/** A request in the form that the vendors' libraries take. Parts of another provider's answers are left out. */
export function writePrompt(
  provider: string,
  { messages, tools, temperature, maxTokens }: ModelRequest,
): LanguageModelV4CallOptions {
  return {
    prompt: arrange(messages.map((message) => writeMessage(provider, message))),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { maxOutputTokens: maxTokens }),
    ...(tools && tools.length > 0
      ? {
          tools: tools.map(({ name, description, parameters }) => ({
            type: 'function' as const,
            name,
            description,
            // Vendors refuse an object without properties.
            inputSchema: { type: 'object' as const, properties: {}, ...parameters },
          })),
        }
      : {}),
  }
}

function writeMessage(provider: string, message: ModelMessage): LanguageModelV4Message {
  switch (message.role) {
    case 'system':
      return { role: 'system', content: message.content }
    case 'user':
      return { role: 'user', content: writeSaid(message) }
    case 'assistant':
      return { role: 'assistant', content: writeAnswer(provider, message) }
    case 'tool': {
      const { toolCallId, toolName, result, failed } = message
      const text = typeof result === 'string' ? result : (JSON.stringify(result) ?? 'null')
      const output = { type: failed ? ('error-text' as const) : ('text' as const), value: text }
      return { role: 'tool', content: [{ type: 'tool-result', toolCallId, toolName, output }] }
    }
  }
}

type User = Extract<LanguageModelV4Message, { role: 'user' }>

/** What the user shows, and then says. Vendors refuse a text that is empty beside a file. */
function writeSaid({ content, files = [] }: Extract<ModelMessage, { role: 'user' }>): User['content'] {
  const shown = files.map((file) =>
    'url' in file
      ? {
          ...{ type: 'file' as const, mediaType: 'image' },
          data: { type: 'url' as const, url: new URL(file.url) },
        }
      : {
          ...{ type: 'file' as const, mediaType: file.mimeType, filename: file.name },
          data: { type: 'data' as const, data: file.data },
        },
  )
  return content === '' && shown.length > 0 ? shown : [...shown, { type: 'text' as const, text: content }]
}

/** The parts as the vendor wants them back; of its calls only those that the message has. */
function writeAnswer(
  provider: string,
  { content, toolCalls = [], parts }: Extract<ModelMessage, { role: 'assistant' }>,
): AnswerPart[] {
  const calls = new Map(
    toolCalls.map(({ id, name, arguments: input }) => [
      id,
      { type: 'tool-call' as const, toolCallId: id, toolName: name, input },
    ]),
  )
  const own = parts?.provider === provider && Array.isArray(parts.value) ? (parts.value as AnswerPart[]) : []
  const said = own.flatMap((part): AnswerPart[] => {
    if (part.type !== 'tool-call') return [part]
    const call = calls.get(part.toolCallId)
    calls.delete(part.toolCallId)
    return call ? [{ ...part, ...call }] : []
  })
  const text: AnswerPart[] = content === '' ? [] : [{ type: 'text', text: content }]
  return [...(own.length > 0 ? said : text), ...calls.values()]
}

/**
 * Messages as every vendor takes them: one of the system, first; none that is empty of the model; the results of one
 * answer's calls together.
 */
function arrange(messages: LanguageModelV4Message[]): LanguageModelV4Message[] {
  const told = messages.flatMap((message) => (message.role === 'system' ? [message.content] : []))
  const arranged: LanguageModelV4Message[] = []
  for (const message of messages) {
    const last = arranged.at(-1)
    if (message.role === 'system' || message.content.length === 0) continue
    if (message.role === 'tool' && last?.role === 'tool') last.content.push(...message.content)
    else arranged.push(message)
  }
  return told.length > 0 ? [{ role: 'system', content: told.join('\n\n') }, ...arranged] : arranged
}
