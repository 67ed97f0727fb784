/**
 * One message of a conversation with a model, in no vendor's form. It is plain JSON: an agent stores it between its
 * steps. `parts` is what a vendor wants back as it was, such as signed reasoning; only the same provider gets it.
 */
export type ModelMessage =
  | { role: 'system'; content: string }
  | { role: 'user'; content: string; files?: ModelFile[] }
  | {
      role: 'assistant'
      content: string
      toolCalls?: ToolCall[]
      parts?: { provider: string; value: unknown }
    }
  | { role: 'tool'; toolCallId: string; toolName: string; result: unknown; failed?: true }

/** An image or a PDF file that a model is shown: its bytes in base64, or an address that the vendor opens. */
export type ModelFile = { mimeType: string; name: string; data: string } | { url: string }

/** `invalid` is the text that the model gave for arguments, if that is no JSON object. */
export type ToolCall = { id: string; name: string; arguments: Record<string, unknown>; invalid?: string }

/** A tool that a model may call. `parameters` is a JSON Schema of an object. */
export type ToolSpec = { name: string; description: string; parameters: Record<string, unknown> }

export type ModelRequest = {
  messages: ModelMessage[]
  tools?: ToolSpec[]
  temperature?: number | undefined
  /** The most tokens of the answer. */
  maxTokens?: number | undefined
  /** The JSON Schema of the answer: it is then asked for as JSON, and the reply has `object`. */
  schema?: Record<string, unknown> | undefined
}

/**
 * Tokens as the vendor has reported them. `input` has those read from a cache (`cached`) and written into one
 * (`cacheWrite`) in it, `output` those of the reasoning.
 */
export type ModelUsage = {
  input: number
  output: number
  cached: number
  cacheWrite: number
  reasoning: number
}

export type ModelReply = {
  text: string
  toolCalls: ToolCall[]
  /** The answer read as JSON, if a schema was asked for; undefined if it is no JSON. It is not checked. */
  object?: unknown
  finish: 'stop' | 'length' | 'tools' | 'filter' | 'other'
  /** What the vendor calls the end of an answer, where that is no end that is known: the answer may be cut. */
  reason?: string
  /** Null if the vendor has reported none. */
  usage: ModelUsage | null
  /** US dollars; null if the usage or the model's price is not known. */
  cost: number | null
  /** The message to be added to the conversation. */
  message: Extract<ModelMessage, { role: 'assistant' }>
}
