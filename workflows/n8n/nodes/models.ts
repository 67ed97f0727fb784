import { isObject } from '../../json.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools, NodeMapper } from '../mapper.ts'
import { type MappedNode, mapEach } from '../parts.ts'
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

type Fields = Record<string, unknown>

/** Nodes of models: the vendors that a credential of Perdure can be for. */
const MODELS = new Set([
  ...['lmChatOpenAi', 'lmChatAnthropic', 'lmChatGoogleGemini', 'lmChatAzureOpenAi', 'lmChatOllama'],
  ...['lmChatMistralCloud', 'lmChatGroq', 'lmChatDeepSeek', 'lmChatOpenRouter', 'lmOpenAi', 'lmOllama'],
])

/** HTTP_REQUEST and the like retry by default; n8n's nodes retry only if that is set. */
const ask = (type: string, config: Fields): MappedNode => ({
  ...mapEach(type, config),
  retry: { maxAttempts: 1 },
})

const objectOf = (value: unknown): Fields => (isObject(value) ? value : {})

/** The credential and the name of the model that is attached to a node, and how it answers. */
function readModel(tools: MapperTools): { asked: Fields; temperature: Fields; maxTokens: Fields } {
  const [model, ...others] = tools.attached('ai_languageModel')
  if (!model) throw new Error('no model is attached to it')
  if (others.length > 0) throw new Error('several models are attached to it')
  if (!MODELS.has(model.type)) throw new Error(`Perdure has no models of "${model.fullType}"`)
  const { parameters } = model
  const options = objectOf(parameters.options)
  const { temperature, maxTokens, maxTokensToSample, maxOutputTokens, numPredict, ...rest } = options
  for (const [name, value] of Object.entries(rest))
    reportMissingOption(tools.report, `parameters.options.${name}`, value)
  const most = [maxTokens, maxTokensToSample, maxOutputTokens, numPredict].find((one) => Number(one) > 0)
  return {
    asked: { credentialId: findCredential(model, tools), model: readModelName(parameters) },
    temperature: temperature === undefined ? {} : { temperature: keepNumber(temperature, 0.7) },
    maxTokens: most === undefined ? {} : { maxTokens: keepNumber(most, 1_000) },
  }
}

function readModelName({ model, modelName, modelId }: Fields): string {
  const given = model ?? modelName ?? modelId
  const name = isObject(given) ? given.value : given
  const text = keepText(name)
  if (text === '') throw new Error('its model has no name')
  return text.replace(/^models\//, '')
}

/** The id of our credential for that with which n8n asks a model. Throws if nobody has said which one that is. */
function findCredential({ raw, name }: SourceNode, { findCredential: find }: MapperTools): string {
  const [theirs] = Object.values(objectOf(raw.credentials)).filter(isObject)
  const keys = [theirs?.id, theirs?.name, name].filter((key): key is string => typeof key === 'string')
  const found = keys.map(find).find((id) => id !== undefined)
  if (found !== undefined) return found
  throw new Error(
    `choose a credential for its model: n8n's are not imported. Make one for language models, and import again ` +
      `with it in "credentials", as {${JSON.stringify(keys[0] ?? name)}: its id}`,
  )
}

/** What is asked: a text, or what a chat's trigger brings. */
function readPrompt({ parameters, version }: SourceNode): string {
  const { promptType, text, prompt } = parameters
  if (promptType === 'define' || (promptType === undefined && text !== undefined)) return keepText(text)
  if (version < 1.4 && prompt !== undefined) return keepText(prompt)
  return '={{ $json.chatInput }}'
}

/** The schema that an output parser holds an answer against; undefined without one. */
function readParser(tools: MapperTools): Fields | undefined {
  const [parser] = tools.attached('ai_outputParser')
  if (!parser) return undefined
  if (parser.type !== 'outputParserStructured')
    throw new Error(`Perdure has no parser like "${parser.fullType}"`)
  return readSchema(parser.parameters, parser.parameters.jsonSchema)
}

/** A schema, or one that is made of an example as n8n makes it. */
function readSchema({ schemaType, jsonSchemaExample, inputSchema }: Fields, old?: unknown): Fields {
  const isExample = jsonSchemaExample !== undefined && schemaType !== 'manual'
  const given = isExample ? jsonSchemaExample : (inputSchema ?? old)
  if (isTemplate(given)) throw new Error('an expression gives its JSON Schema')
  let value: unknown
  try {
    value = JSON.parse(plainText(given) ?? '')
  } catch {
    throw new Error('its JSON Schema is not valid JSON')
  }
  const schema = isExample ? describeExample(value) : value
  if (!isObject(schema)) throw new Error('its JSON Schema is no object')
  return schema.type === 'array' ? arrayAnswer() : schema
}

function arrayAnswer(): never {
  throw new Error('its answer is a list, and models answer with objects')
}

const MAX_LEVELS = 50

function describeExample(value: unknown, level = 0): Fields {
  if (level > MAX_LEVELS) throw new Error('its example is nested too deeply')
  if (value === null) return {}
  if (Array.isArray(value))
    return { type: 'array', ...(value.length > 0 ? { items: describeExample(value[0], level + 1) } : {}) }
  if (!isObject(value)) return { type: typeof value }
  const properties = Object.fromEntries(
    Object.entries(value).map(([key, entry]) => [key, describeExample(entry, level + 1)]),
  )
  return { type: 'object', properties, required: Object.keys(value) }
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
  const schema = readParser(tools)
  return ask('LLM', {
    ...asked,
    ...temperature,
    ...maxTokens,
    prompt: readPrompt(node),
    ...(system[0] ? { system: system[0] } : {}),
    ...(schema ? { output: 'json', schema, into: OUTPUT } : {}),
  })
}

/** An agent without tools asks its model once. */
function mapAgent(node: SourceNode, tools: MapperTools): MappedNode {
  const names = tools.attached('ai_tool').map(({ name }) => name)
  if (names.length > 0) {
    const list = names.map((name) => `"${name}"`).join(', ')
    throw new Error(`its tools are not imported (${list}): make an AI_AGENT with them`)
  }
  const { asked, temperature, maxTokens } = readModel(tools)
  const { systemMessage, maxIterations: _, ...rest } = objectOf(node.parameters.options)
  for (const [name, value] of Object.entries(rest))
    reportMissingOption(tools.report, `parameters.options.${name}`, value)
  const schema = readParser(tools)
  return ask('LLM', {
    ...asked,
    ...temperature,
    ...maxTokens,
    system: keepText(systemMessage ?? 'You are a helpful assistant'),
    prompt: readPrompt(node),
    ...(schema ? { output: 'json', schema } : {}),
    into: OUTPUT,
  })
}

/** OpenAI's node, for the operation that sends messages to a model. */
function mapOpenAi(node: SourceNode, tools: MapperTools): MappedNode {
  const { parameters, version } = node
  const { resource = 'text', operation = version >= 2 ? 'response' : 'message', simplify = true } = parameters
  if (resource !== 'text' || !['message', 'response'].includes(String(operation)))
    throw new Error(`it does "${operation}" with "${resource}", and Perdure has only messages to a model`)
  if (tools.attached('ai_tool').length > 0) throw new Error('it has tools: make an AI_AGENT with them')
  if (version >= 2 || simplify !== true) {
    const message =
      "n8n's output has the text deep inside of it. Here the output is {message: {content}}: read that."
    tools.report('parameter', 'parameters.simplify', message, simplify)
  }
  const given = listObjects(objectOf(parameters.messages ?? parameters.responses).values)
  const of = (role: string) => given.filter((one) => (one.role ?? 'user') === role)
  const [user, ...more] = of('user')
  const [system, ...others] = of('system')
  if (!user || more.length > 0 || others.length > 0 || of('assistant').length > 0)
    throw new Error('it has other messages than one of the user and one of the system')
  const { temperature, maxTokens, ...rest } = objectOf(parameters.options)
  for (const [name, value] of Object.entries(rest))
    reportMissingOption(tools.report, `parameters.options.${name}`, value)
  return ask('LLM', {
    credentialId: findCredential(node, tools),
    model: readModelName(parameters),
    prompt: keepText(user.content),
    ...(system ? { system: keepText(system.content) } : {}),
    ...(temperature === undefined ? {} : { temperature: keepNumber(temperature, 1) }),
    ...(maxTokens === undefined ? {} : { maxTokens: keepNumber(maxTokens, 1_000) }),
    ...(parameters.jsonOutput === true ? { output: 'json' } : {}),
    into: { field: 'message.content', keep: false, dots: true },
  })
}

function mapClassifier(node: SourceNode, tools: MapperTools): MappedNode {
  const { asked } = readModel(tools)
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
  const { asked } = readModel(tools)
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
  const { asked } = readModel(tools)
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
  const { asked, maxTokens } = readModel(tools)
  const { operationMode = 'nodeInputJson', options, type } = node.parameters
  if (operationMode !== 'nodeInputJson' || type !== undefined)
    throw new Error('it summarizes files or documents, and Perdure texts')
  for (const [name, value] of Object.entries(objectOf(options)))
    reportMissingOption(tools.report, `parameters.options.${name}`, value)
  const message = "n8n's output is {output: {text}} or {response: {text}}. Here it is {text}: read that."
  tools.report('parameter', 'parameters', message, node.parameters)
  return ask('SUMMARIZE', { ...asked, ...maxTokens, input: '={{ JSON.stringify($json) }}' })
}
