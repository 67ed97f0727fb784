import type { AttributeValue } from './rawspan.ts'

type Attributes = ReadonlyMap<string, AttributeValue>

/**
 * The attributes of which something is kept, by what they say: those of the GenAI semantic conventions first, then their
 * older names, then those of OpenLLMetry and OpenInference (`llm.`) and of Vercel's AI SDK (`ai.`). No other attribute is
 * ever read, and none of these has a text that a model or a person has written.
 */
const NAMES = {
  model: [
    'gen_ai.response.model',
    'gen_ai.request.model',
    'ai.response.model',
    'ai.model.id',
    'llm.model_name',
    'embedding.model_name',
  ],
  provider: ['gen_ai.provider.name', 'gen_ai.system', 'llm.provider', 'llm.system', 'ai.model.provider'],
  agent: ['gen_ai.agent.name'],
  input: [
    'gen_ai.usage.input_tokens',
    'gen_ai.usage.prompt_tokens',
    'llm.token_count.prompt',
    'llm.usage.prompt_tokens',
    'ai.usage.inputTokens',
    'ai.usage.promptTokens',
    'ai.usage.tokens',
  ],
  output: [
    'gen_ai.usage.output_tokens',
    'gen_ai.usage.completion_tokens',
    'llm.token_count.completion',
    'llm.usage.completion_tokens',
    'ai.usage.outputTokens',
    'ai.usage.completionTokens',
  ],
  cached: [
    'gen_ai.usage.cache_read.input_tokens',
    'gen_ai.usage.cache_read_input_tokens',
    'gen_ai.usage.details.cache_read_tokens',
    'llm.token_count.prompt_details.cache_read',
    'ai.usage.cachedInputTokens',
  ],
  cacheWrite: [
    'gen_ai.usage.cache_creation.input_tokens',
    'gen_ai.usage.cache_creation_input_tokens',
    'gen_ai.usage.details.cache_write_tokens',
    'llm.token_count.prompt_details.cache_write',
  ],
  reasoning: [
    'gen_ai.usage.reasoning.output_tokens',
    'gen_ai.usage.reasoning_tokens',
    'gen_ai.usage.details.reasoning_tokens',
    'llm.token_count.completion_details.reasoning',
    'ai.usage.reasoningTokens',
  ],
  error: ['error.type'],
} as const

const OPERATION_NAMES = {
  standard: 'gen_ai.operation.name',
  openInference: 'openinference.span.kind',
  openLlmetry: 'llm.request.type',
  traceloop: 'traceloop.span.kind',
  vercel: 'ai.operationId',
}

/** The only attributes that are read, those of resources included. */
export const KEPT_ATTRIBUTES: ReadonlySet<string> = new Set([
  ...Object.values(NAMES).flat(),
  ...Object.values(OPERATION_NAMES),
  'service.name',
])

/** The calls to models: the only spans whose tokens count, because those of agents have the sums of their calls. */
export const MODEL_OPERATIONS = ['chat', 'text_completion', 'generate_content', 'embeddings'] as const

/** The operations of spans, by their names in the semantic conventions; `other` is used for all further names. */
const TELEMETRY_OPERATIONS = [
  ...MODEL_OPERATIONS,
  'create_agent',
  'invoke_agent',
  'invoke_workflow',
  'execute_tool',
  'retrieval',
  'other',
] as const
export type TelemetryOperation = (typeof TELEMETRY_OPERATIONS)[number]

const OF_OPEN_INFERENCE: Record<string, TelemetryOperation> = {
  LLM: 'chat',
  EMBEDDING: 'embeddings',
  AGENT: 'invoke_agent',
  TOOL: 'execute_tool',
  RETRIEVER: 'retrieval',
}

const OF_OPEN_LLMETRY: Record<string, TelemetryOperation> = {
  chat: 'chat',
  completion: 'text_completion',
  embedding: 'embeddings',
  agent: 'invoke_agent',
  tool: 'execute_tool',
  workflow: 'invoke_workflow',
}

/** What a span is about; undefined if it is about no model, agent or tool. */
export function findOperation(attributes: Attributes): TelemetryOperation | undefined {
  const of = (name: keyof typeof OPERATION_NAMES) => readName(attributes, [OPERATION_NAMES[name]])
  const standard = of('standard')?.toLowerCase()
  if (standard) return TELEMETRY_OPERATIONS.find((name) => name === standard) ?? 'other'
  const vercel = of('vercel')
  if (vercel?.startsWith('ai.')) {
    if (/\.(doGenerate|doStream)$/.test(vercel)) return 'chat'
    if (vercel.endsWith('.doEmbed')) return 'embeddings'
    // Around them is a span with their sums.
    return vercel === 'ai.toolCall' ? 'execute_tool' : 'invoke_agent'
  }
  const named =
    OF_OPEN_INFERENCE[of('openInference')?.toUpperCase() ?? ''] ??
    OF_OPEN_LLMETRY[of('openLlmetry')?.toLowerCase() ?? ''] ??
    OF_OPEN_LLMETRY[of('traceloop')?.toLowerCase() ?? '']
  if (named) return named
  if (readName(attributes, NAMES.agent)) return 'invoke_agent'
  return readName(attributes, NAMES.model) ? 'chat' : undefined
}

/** A name of a span, without spaces around it; undefined if it has none. */
export function findName(
  attributes: Attributes,
  what: 'model' | 'provider' | 'agent' | 'error',
): string | undefined {
  return readName(attributes, NAMES[what])
}

/** A number of tokens as it was reported, whatever it is; undefined if it was not. */
export function findTokens(
  attributes: Attributes,
  what: 'input' | 'output' | 'cached' | 'cacheWrite' | 'reasoning',
): AttributeValue | undefined {
  const name = NAMES[what].find((name) => attributes.has(name))
  return name && attributes.get(name)
}

function readName(attributes: Attributes, names: readonly string[]): string | undefined {
  for (const name of names) {
    const value = attributes.get(name)
    if (typeof value === 'string' && value.trim() !== '') return value.trim()
  }
}
