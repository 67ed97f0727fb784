import { mapAgent } from '../ai/agent.ts'
import {
  answer,
  ask,
  type Fields,
  findCredential,
  objectOf,
  readModel,
  readModelName,
  readParser,
  readPlainModel,
  readPrompt,
  readSchema,
  reportMemory,
  reportWording,
} from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools, NodeMapper } from '../mapper.ts'
import type { MappedNode } from '../parts.ts'
import { reportMissingOption } from '../report.ts'
import { isTemplate, keepNumber, keepText, listObjects, plainText, splitNames } from '../texts.ts'

/** Nodes that ask a model, which n8n attaches to them as a node of its own. */
export const MODEL_MAPPERS: Record<string, NodeMapper> = {
  chainLlm: mapChain,
  agent: mapAgent,
  openAi: mapOpenAi,
  textClassifier: mapClassifier,
  sentimentAnalysis: mapSentiment,
  informationExtractor: mapExtractor,
  chainSummarization: mapSummarization,
}

const OUTPUT = { field: 'output', keep: false }

function mapChain(node: SourceNode, tools: MapperTools): MappedNode {
  const { asked, temperature, maxTokens } = readModel(tools)
  const values = listObjects(objectOf(node.parameters.messages).messageValues)
  const system = values.map(({ type, message }) => {
    if (type !== undefined && type !== 'SystemMessagePromptTemplate')
      throw new Error('it has messages besides those of the system and of the user')
    return keepText(message)
  })
  if (system.length > 1) throw new Error('it has several messages of the system')
  if (Number(Object(node.parameters.batching).delayBetweenBatches) > 0)
    reportMissingOption(tools.report, 'parameters.batching', node.parameters.batching)
  const schema = readParser(tools)
  reportMemory(tools)
  const config = {
    ...asked,
    ...temperature,
    ...maxTokens,
    prompt: readPrompt(node),
    ...(system[0] ? { system: system[0] } : {}),
  }
  if (!schema) return answer('LLM', config, 'text', tools)
  return ask('LLM', { ...config, output: 'json', schema, into: OUTPUT })
}

/** OpenAI's node, for the operation that sends messages to a model. */
function mapOpenAi(node: SourceNode, tools: MapperTools): MappedNode {
  const { parameters, version } = node
  const { resource = 'text', operation = version >= 2 ? 'response' : 'message', simplify = true } = parameters
  if (resource !== 'text' || !['message', 'response'].includes(String(operation)))
    throw new Error(`it does "${operation}" with "${resource}", and Perdure has only messages to a model`)
  if (tools.attached('ai_tool').length > 0) throw new Error('it has tools: make an AI_AGENT with them')
  const message =
    'The output is {message: {content}} here, and nothing else of what n8n puts out. The message of the system comes first.'
  tools.report('parameter', 'parameters.simplify', message, simplify)
  const given = listObjects(objectOf(parameters.messages ?? parameters.responses).values)
  const of = (role: string) => given.filter((one) => (one.role ?? 'user') === role)
  const [user, ...more] = of('user')
  const [system, ...others] = of('system')
  if (!user || more.length > 0 || others.length > 0 || of('assistant').length > 0)
    throw new Error('it has other messages than one of the user and one of the system')
  const { temperature, maxTokens, ...rest } = objectOf(parameters.options)
  for (const [name, value] of Object.entries(rest))
    reportMissingOption(tools.report, `parameters.options.${name}`, value)
  reportMemory(tools)
  const config = {
    credentialId: findCredential(node, tools),
    model: readModelName(parameters, { key: `openAi ${resource} ${operation}`, node, report: tools.report }),
    prompt: keepText(user.content),
    ...(system ? { system: keepText(system.content) } : {}),
    ...(temperature === undefined ? {} : { temperature: keepNumber(temperature, 1) }),
    ...(maxTokens === undefined ? {} : { maxTokens: keepNumber(maxTokens, 1_000) }),
    ...(parameters.jsonOutput === true ? { output: 'json' } : {}),
  }
  return answer('LLM', config, 'message.content', tools)
}

function mapClassifier(node: SourceNode, tools: MapperTools): MappedNode {
  const asked = readPlainModel(tools)
  reportWording(tools, node)
  const { inputText, categories: given, options } = node.parameters
  const { multiClass, fallback = 'discard', enableAutoFixing: _, ...rest } = objectOf(options)
  for (const [name, value] of Object.entries(rest))
    reportMissingOption(tools.report, `parameters.options.${name}`, value)
  const categories = listObjects(objectOf(given).categories).map(({ category, description }) => {
    if (isTemplate(category)) throw new Error('an expression gives the name of a category')
    return {
      name: (plainText(category) ?? '').trim(),
      ...(description ? { description: keepText(description) } : {}),
    }
  })
  const names = categories.map(({ name }) => name)
  return {
    ...ask('CLASSIFY', {
      ...asked,
      input: keepText(inputText),
      categories,
      ...(multiClass === true ? { multiple: true } : {}),
    }),
    handles: fallback === 'other' ? [...names, 'other'] : names,
  }
}

function mapSentiment(node: SourceNode, tools: MapperTools): MappedNode {
  const asked = readPlainModel(tools)
  reportWording(tools, node)
  const { inputText, options } = node.parameters
  const {
    categories: given = 'Positive, Neutral, Negative',
    enableAutoFixing: _,
    ...rest
  } = objectOf(options)
  for (const [name, value] of Object.entries(rest))
    reportMissingOption(tools.report, `parameters.options.${name}`, value)
  const names = splitNames(given)
  return {
    ...ask('CLASSIFY', {
      ...asked,
      input: keepText(inputText),
      categories: names.map((name) => ({ name })),
      instructions: 'The categories are sentiments: choose that of the text.',
      fallback: false,
      into: { field: 'sentimentAnalysis.category', dots: true },
    }),
    handles: names,
  }
}

const ATTRIBUTE_TYPES: Record<string, string> = { number: 'number', boolean: 'boolean' }

function mapExtractor(node: SourceNode, tools: MapperTools): MappedNode {
  const asked = readPlainModel(tools)
  reportWording(tools, node)
  const { parameters } = node
  const { schemaType = 'fromAttributes', attributes, options } = parameters
  const { systemPromptTemplate, ...rest } = objectOf(options)
  for (const [name, value] of Object.entries(rest))
    reportMissingOption(tools.report, `parameters.options.${name}`, value)
  const list = listObjects(objectOf(attributes).attributes)
  const schema =
    schemaType === 'fromAttributes'
      ? {
          type: 'object',
          properties: Object.fromEntries(list.map((one) => [String(one.name), describeAttribute(one)])),
          required: list.filter(({ required }) => required === true).map(({ name }) => String(name)),
        }
      : readSchema({ ...parameters, schemaType: schemaType === 'fromJson' ? 'fromJson' : 'manual' })
  return ask('EXTRACT', {
    ...asked,
    input: keepText(parameters.text),
    schema,
    ...(systemPromptTemplate ? { instructions: keepText(systemPromptTemplate) } : {}),
    into: OUTPUT,
  })
}

function describeAttribute({ type, description }: Fields): Fields {
  return {
    type: ATTRIBUTE_TYPES[String(type)] ?? 'string',
    ...(type === 'date' ? { format: 'date' } : {}),
    ...(description ? { description: keepText(description) } : {}),
  }
}

function mapSummarization(node: SourceNode, tools: MapperTools): MappedNode {
  const { asked, temperature, maxTokens } = readModel(tools)
  for (const [name, value] of Object.entries(temperature))
    reportMissingOption(tools.report, `ai_languageModel.options.${name}`, value)
  const { operationMode = 'nodeInputJson', options, type } = node.parameters
  if (operationMode !== 'nodeInputJson' || type !== undefined)
    throw new Error('it summarizes files or documents, and Perdure texts')
  for (const [name, value] of Object.entries(objectOf(options)))
    reportMissingOption(tools.report, `parameters.options.${name}`, value)
  reportWording(tools, node)
  const field = node.version >= 2.1 ? 'output.text' : 'response.text'
  const into = { field, keep: false, dots: true }
  return ask('SUMMARIZE', { ...asked, ...maxTokens, input: '={{ JSON.stringify($json) }}', into })
}
