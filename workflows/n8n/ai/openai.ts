import { getOwn, isObject } from '../../json.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { fileOf } from '../nodes/fileparts.ts'
import type { MappedNode } from '../parts.ts'
import { reportMissingOption } from '../report.ts'
import { isTemplate, keepNumber, keepText, listObjects, writeCode } from '../texts.ts'
import { answer, ask, type Fields, findCredential, objectOf, readModelName, shapeEach } from './asking.ts'
import { reportMemory } from './memory.ts'
import { MEDIA_DOINGS } from './openaimedia.ts'

type Doing = (node: SourceNode, tools: MapperTools, key: string) => MappedNode

/** What OpenAI's nodes do, by the resource and the operation; the oldest node of all is `old`. */
const DOINGS: Record<string, Doing> = {
  ...MEDIA_DOINGS,
  'openAi text message': mapMessages,
  'openAi text response': mapResponse,
  'openAi image analyze': mapAnalysis,
  'old openAi chat complete': mapMessages,
  'old openAi text complete': mapCompletion,
}

/** The standard operations of the resources. */
const OPERATIONS: Record<string, string> = {
  text: 'message',
  image: 'generate',
  audio: 'generate',
  file: 'upload',
  assistant: 'message',
  conversation: 'create',
  video: 'generate',
}
const OLD_OPERATIONS: Record<string, string> = { chat: 'complete', text: 'complete', image: 'create' }

const GONE =
  'its vendor has switched the assistants off on 26 August 2026: make an AI_AGENT with the instructions and the tools of ' +
  'the assistant'

/** OpenAI's node of n8n, of any age. */
export function mapOpenAi(node: SourceNode, tools: MapperTools): MappedNode {
  const { parameters, version } = node
  const isOld = node.fullType.startsWith('n8n-nodes-base.')
  const { resource = 'text' } = parameters
  const standard = isOld ? OLD_OPERATIONS : { ...OPERATIONS, ...(version >= 2 ? { text: 'response' } : {}) }
  const { operation = getOwn(standard, String(resource)) } = parameters
  if (resource === 'assistant') throw new Error(GONE)
  const key = `${isOld ? 'old ' : ''}openAi ${resource} ${operation}`
  const map = getOwn(DOINGS, key)
  if (!map) throw new Error(`it does "${operation}" with "${resource}", for which Perdure has no node`)
  if (tools.attached('ai_tool').length > 0) throw new Error('it has tools: make an AI_AGENT with them')
  return map(node, tools, key)
}

/** What n8n tells the model first if it is to answer with JSON. */
const JSON_SYSTEM = 'You are a helpful assistant designed to output JSON.'

/** The credential, the model and how it answers. Options without a counterpart are reported. */
function readAsked(node: SourceNode, tools: MapperTools, key: string): Fields {
  const { temperature, maxTokens, n, ...rest } = objectOf(node.parameters.options)
  for (const [name, value] of Object.entries(n === undefined || n === 1 ? rest : { ...rest, n }))
    reportMissingOption(tools.report, `parameters.options.${name}`, value)
  return {
    credentialId: findCredential(node, tools),
    model: readModelName(node.parameters, { key, node, report: tools.report }),
    ...(temperature === undefined ? {} : { temperature: keepNumber(temperature, 1) }),
    ...(maxTokens === undefined ? {} : { maxTokens: keepNumber(maxTokens, 1_000) }),
  }
}

/** Messages to a model, which answers with {message: {content}}. */
function mapMessages(node: SourceNode, tools: MapperTools, key: string): MappedNode {
  const { parameters } = node
  const { simplify, simplifyOutput } = parameters
  const message = 'The output is {message: {content}} here, and nothing else of what n8n puts out.'
  tools.report('parameter', 'parameters.simplify', message, simplify ?? simplifyOutput ?? true)
  const old = objectOf(parameters.prompt).messages
  const given = listObjects(old ?? objectOf(parameters.messages).values)
  const isJson = parameters.jsonOutput === true
  const said = given.map(({ role = 'user', content }) => ({ role: String(role), content: keepText(content) }))
  reportMemory(tools)
  const config = {
    ...readAsked(node, tools, key),
    ...readSaid(isJson ? [{ role: 'system', content: JSON_SYSTEM }, ...said] : said, tools),
    ...(isJson ? { output: 'json' } : {}),
  }
  return answer('LLM', config, 'message.content', tools)
}

type Said = { role: string; content?: string; files?: string[] }

/** Messages as settings of an LLM: the last one is the prompt, if the user says it. */
function readSaid(given: Said[], { report }: MapperTools): Fields {
  const known = given.filter(({ content, files }) => files !== undefined || content !== '')
  if (!known.some(({ content }) => content)) throw new Error('it has no message to its model')
  const foreign = known.find(({ role }) => !['system', 'user', 'assistant'].includes(role))
  if (foreign) throw new Error(`it has a message of "${foreign.role}"`)
  const [first, ...others] = known
  const system = first!.role === 'system' ? { system: first!.content } : {}
  const rest = first!.role === 'system' ? others : known
  if (rest.some(({ role }) => role === 'system')) {
    const message =
      'n8n tells the model each message of the system at its place. Perdure tells it all of them at first.'
    report('parameter', 'parameters.messages', message, null)
  }
  const last = rest.at(-1)
  // Without a message of the user the vendor is asked with those of the system alone.
  if (last === undefined) return { prompt: first!.content }
  if (last.role !== 'user' || last.files) return { ...system, messages: rest }
  const before = rest.slice(0, -1)
  return { ...system, ...(before.length > 0 ? { messages: before } : {}), prompt: last.content }
}

/** The vendor's newer protocol. n8n puts out the messages of the answer, each with its parts. */
function mapResponse(node: SourceNode, tools: MapperTools, key: string): MappedNode {
  const { parameters } = node
  if (Object.keys(objectOf(parameters.builtInTools)).length > 0)
    throw new Error('it has tools of its vendor, which Perdure does not ask for')
  const { instructions, textFormat, store, ...options } = objectOf(parameters.options)
  const message =
    'The output is {output: [{type, role, content: [{type, text}]}]} here, and nothing else of what n8n puts out. The ' +
    'vendor is asked not to store the answer.'
  tools.report('parameter', 'parameters.simplify', message, parameters.simplify ?? true)
  const format = objectOf(objectOf(textFormat).textOptions)
  const isJson = format.type === 'json_object' || format.type === 'json_schema'
  const said = listObjects(objectOf(parameters.responses).values).map(readPart)
  const before = [
    ...(format.type === 'json_object' ? [{ role: 'system', content: JSON_SYSTEM }] : []),
    ...(instructions ? [{ role: 'system', content: keepText(instructions) }] : []),
  ]
  reportMemory(tools)
  const asked = readAsked({ ...node, parameters: { ...parameters, options } }, tools, key)
  const config = {
    ...asked,
    ...readSaid([...before, ...said], tools),
    ...(isJson ? { output: 'json' } : {}),
    ...(format.type === 'json_schema' ? { schema: readKnown(format.schema) } : {}),
  }
  if (tools.repliesInChat) return answer('LLM', config, 'output', tools)
  const mapped = ask('LLM', { ...config, into: { field: 'said', keep: false } })
  const content = '[{"type": "output_text", "text": $item.said}]'
  const shape = `{"output": [{"type": "message", "role": "assistant", "content": ${content}}]}`
  return { ...mapped, shaper: shapeEach(shape) }
}

function readKnown(given: unknown): Fields {
  if (isTemplate(given)) throw new Error('an expression gives its JSON Schema')
  try {
    const schema = typeof given === 'string' ? JSON.parse(given) : given
    if (isObject(schema)) return schema
  } catch {
    // Told below.
  }
  throw new Error('its JSON Schema is not valid JSON')
}

function readPart(one: Fields): Said {
  const { type = 'text', role = 'user', content } = one
  if (type === 'text') return { role: String(role), content: keepText(content) }
  const from = type === 'image' ? one.imageType : one.fileType
  const url = type === 'image' ? one.imageUrl : one.fileUrl
  if (from === 'url') return { role: String(role), files: [keepText(url)] }
  if (from === 'base64') return { role: String(role), files: [fileOf(one.binaryPropertyName)] }
  throw new Error('it shows the model a file that its vendor stores: give the file itself')
}

/** Images for the model. */
function mapAnalysis(node: SourceNode, tools: MapperTools, key: string): MappedNode {
  const { parameters, version } = node
  const { text = DEFAULT_QUESTION, inputType = 'url', simplify } = parameters
  const { detail, maxTokens, ...options } = objectOf(parameters.options)
  if (detail !== undefined && detail !== 'auto')
    reportMissingOption(tools.report, 'parameters.options.detail', detail)
  const message =
    `The output is ${version >= 2 ? '[{content: [{text}]}]' : '{content}'} here, and nothing else of what n8n puts out. ` +
    'The model is shown the images before it is asked.'
  tools.report('parameter', 'parameters.simplify', message, simplify ?? true)
  const named = version < 1.4 ? { ...parameters, modelId: OLD_SEER } : parameters
  // n8n asks for at most 300 tokens if nothing is said.
  const asked = { ...named, options: { ...options, maxTokens: maxTokens || 300 } }
  const config = {
    ...readAsked({ ...node, parameters: asked }, tools, key),
    prompt: keepText(text),
    files:
      inputType === 'url' ? listAddresses(parameters.imageUrls) : listNames(parameters.binaryPropertyName),
  }
  if (version < 2 || tools.repliesInChat) return answer('LLM', config, 'content', tools)
  const mapped = ask('LLM', { ...config, into: { field: 'said', keep: false } })
  const content = '[{"type": "output_text", "text": $item.said}]'
  // n8n's item is a list: its entries are read by their numbers.
  const shape = `{"0": {"type": "message", "role": "assistant", "content": ${content}}}`
  return { ...mapped, shaper: shapeEach(shape) }
}

const DEFAULT_QUESTION = "What's in this image?"

/** Addresses with commas between them. */
function listAddresses(given: unknown): string[] {
  if (!isTemplate(given))
    return String(given ?? '')
      .split(',')
      .map((one) => keepText(one.trim()))
  return [`={{ String(${writeCode(given)}).split(",").map((one) => one.trim()) }}`]
}

function listNames(given: unknown): string[] {
  if (isTemplate(given)) return [fileOf(given)]
  return String(given || 'data')
    .split(',')
    .map((one) => fileOf(one.trim()))
}

/** The model that versions of the node before 1.4 always ask. */
const OLD_SEER = 'gpt-4-vision-preview'

/** The vendor's oldest protocol, in which a model went on with a text. */
function mapCompletion(node: SourceNode, tools: MapperTools, key: string): MappedNode {
  const { parameters } = node
  const message =
    'n8n has the model go on with a text, by a protocol for models that its vendor has switched off. Perdure asks the ' +
    'model to answer: choose one that there is. The output is {text} here, and nothing else of what n8n puts out.'
  tools.report('parameter', 'parameters.operation', message, parameters.prompt ?? null)
  const config = {
    ...readAsked(node, tools, key),
    ...readSaid([{ role: 'user', content: keepText(parameters.prompt) }], tools),
  }
  return answer('LLM', config, 'text', tools)
}
