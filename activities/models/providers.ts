import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider'
import type { OpenedCredential } from '../../db/credentials/open.ts'
import { isObject } from '../../workflows/json.ts'
import { quoteShort } from '../../workflows/problem.ts'
import { findBase } from '../credentials/checks/ask.ts'
import { AZURE_VERSION } from '../credentials/checks/llm.ts'
import { invalidConfig, NodeFailure } from '../nodes/kit/failure.ts'
import type { ModelLine } from './line.ts'
import type { ModelMessage, ModelRequest } from './model.ts'
import { writePrompt } from './prompt.ts'

/** A model of a vendor, and how it is asked for an answer by a JSON Schema. */
type OpenedModel = {
  model: LanguageModelV4
  options?: LanguageModelV4CallOptions['providerOptions']
  /** `vendor`: the vendor makes the answer fit; `words`: the model is told to. */
  json: 'vendor' | 'words'
}

type OpenModel = (
  opened: OpenedCredential,
  name: string,
  line: ModelLine,
  request: ModelRequest,
) => Promise<OpenedModel>

/** In the place of keys, which the guarded client adds: libraries would look for one in the environment. */
const apiKey = 'added-later'

/** Each library is loaded when a model of its vendor is first asked. */
const OPENERS: Record<string, OpenModel> = {
  async OPENAI(opened, name, { fetch }, { schema }) {
    const { createOpenAI } = await import('@ai-sdk/openai')
    const baseURL = findBase(opened, 'https://api.openai.com/v1')
    return {
      model: createOpenAI({ apiKey, baseURL, fetch }).responses(name),
      options: { openai: { store: false, strictJsonSchema: isStrictSchema(schema) } },
      json: 'vendor',
    }
  },
  async OPENAI_COMPATIBLE(opened, name, { fetch }) {
    const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
    const baseURL = findBase(opened, '')
    const provider = createOpenAICompatible({
      name: 'compatible',
      apiKey,
      baseURL,
      fetch,
      includeUsage: true,
    })
    // Some servers refuse a response_format, others ignore it.
    return { model: provider.chatModel(name), json: 'words' }
  },
  async AZURE_OPENAI(opened, name, { fetch }, { schema }) {
    const { createOpenAI } = await import('@ai-sdk/openai')
    return {
      model: createOpenAI({
        apiKey,
        baseURL: findAzureBase(opened, name),
        fetch: withVersion(opened, fetch),
      }).chat(name),
      options: { openai: { store: false, strictJsonSchema: isStrictSchema(schema) } },
      json: 'vendor',
    }
  },
  async ANTHROPIC(opened, name, { fetch }) {
    const { createAnthropic } = await import('@ai-sdk/anthropic')
    const baseURL = `${findBase(opened, 'https://api.anthropic.com')}/v1`
    return { model: createAnthropic({ apiKey, baseURL, fetch })(name), json: 'vendor' }
  },
  async GOOGLE_AI(opened, name, { fetch }) {
    const { createGoogle } = await import('@ai-sdk/google')
    demandName(name, PLAIN_NAME)
    const baseURL = `${findBase(opened, 'https://generativelanguage.googleapis.com')}/v1beta`
    return { model: createGoogle({ apiKey, baseURL, fetch })(name), json: 'vendor' }
  },
}

/** The versions that are no dates have one address for all deployments. */
const UNDATED = new Set(['v1', 'latest', 'preview'])

/** Parts with slashes between them, none of which leads up. */
const PLAIN_NAME = /^(?!\.{1,2}(?:\/|$))[\w.@:+~-]+(?:\/(?!\.{1,2}(?:\/|$))[\w.@:+~-]+)*$/

/** Google and Azure have the model's name in their addresses: it must not lead elsewhere there, with the key. */
function demandName(name: string, pattern: RegExp): void {
  if (pattern.test(name)) return
  throw new NodeFailure(`${quoteShort(name)} is no name of a model: it would lead to another address`, {
    type: 'ModelRefused',
  })
}

/** Where a deployment of Azure is called, without a slash at its end. */
function findAzureBase(opened: OpenedCredential, deployment: string): string {
  const base = `${findBase(opened, '', 'endpoint').replace(/\/openai(?:\/v1)?$/, '')}/openai`
  if (UNDATED.has(String(opened.data.apiVersion))) return `${base}/v1`
  // All else is encoded.
  demandName(deployment, /^(?!\.{0,2}$)/)
  return `${base}/deployments/${encodeURIComponent(deployment)}`
}

/** The credential's own version is added with its key. */
function withVersion(opened: OpenedCredential, fetch: ModelLine['fetch']): ModelLine['fetch'] {
  if (opened.data.apiVersion !== undefined) return fetch
  return (input, init) => fetch(`${String(input)}?api-version=${AZURE_VERSION}`, init)
}

/** Asks a vendor's model: the stream of its answer, in the form of the vendors' libraries. */
export async function startAnswer(
  opened: OpenedCredential,
  name: string,
  request: ModelRequest,
  line: ModelLine,
  signal: AbortSignal,
): Promise<ReadableStream> {
  const open = OPENERS[opened.type]
  if (!open)
    throw invalidConfig('credentialId', `names a credential of the type ${opened.type}, which has no models`)
  const { model, options, json } = await open(opened, name, line, request)
  const { schema, messages } = request
  const asked =
    schema && json === 'words' ? { ...request, messages: [...messages, putInWords(schema)] } : request
  const { stream } = await model.doStream({
    ...writePrompt(opened.type, asked),
    ...(schema && json === 'vendor' ? { responseFormat: { type: 'json', schema, name: 'answer' } } : {}),
    ...(options ? { providerOptions: options } : {}),
    abortSignal: signal,
  })
  return stream
}

/** Tells a model the schema of its answer, where nothing else makes it keep to it. */
function putInWords(schema: object): ModelMessage {
  const text = `Answer with JSON only: no other words, no Markdown. The JSON must be valid by this JSON Schema:\n${JSON.stringify(schema)}`
  return { role: 'system', content: text }
}

const MAX_SCHEMA_DEPTH = 20

/**
 * Whether a vendor that keeps strictly to JSON Schemas takes this one: each of its objects requires all of its
 * properties and allows no others. Others are kept to as well as the model can.
 */
function isStrictSchema(schema: unknown, depth = 0): boolean {
  if (!isObject(schema) || depth > MAX_SCHEMA_DEPTH) return false
  const { type, properties, required, additionalProperties, items, anyOf, enum: values, const: only } = schema
  if (Array.isArray(anyOf)) return depth > 0 && anyOf.every((one) => isStrictSchema(one, depth + 1))
  if (type === 'object') {
    if (!isObject(properties) || additionalProperties !== false || !Array.isArray(required)) return false
    return Object.entries(properties).every(
      ([name, one]) => required.includes(name) && isStrictSchema(one, depth + 1),
    )
  }
  if (depth === 0) return false
  if (type === 'array') return isStrictSchema(items, depth + 1)
  return typeof type === 'string' || Array.isArray(values) || only !== undefined
}
