import { mapAgent } from '../ai/agent.ts'
import { ask, type Fields, objectOf, readModel, readPlainModel, reportWording } from '../ai/asking.ts'
import { mapChain } from '../ai/chain.ts'
import { mapOpenAi } from '../ai/openai.ts'
import { readSchema } from '../ai/parsers.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools, NodeMapper } from '../mapper.ts'
import type { MappedNode } from '../parts.ts'
import { reportMissingOption } from '../report.ts'
import { isTemplate, keepText, listObjects, plainText, splitNames } from '../texts.ts'
import { fileOf } from './fileparts.ts'

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
  const { operationMode = node.version < 2 ? 'documentLoader' : 'nodeInputJson', options } = node.parameters
  for (const [name, value] of Object.entries(objectOf(options)))
    if (name !== 'binaryDataKey') reportMissingOption(tools.report, `parameters.options.${name}`, value)
  reportWording(tools, node)
  const field = node.version >= 2.1 ? 'output.text' : 'response.text'
  const into = { field, keep: false, dots: true }
  const source = readSource(node, String(operationMode), tools)
  if ('input' in source) return ask('SUMMARIZE', { ...asked, ...maxTokens, input: source.input, into })
  const config = { ...asked, ...maxTokens, input: '={{ $json.text ?? JSON.stringify($json) }}', into }
  if (source.format === 'auto') {
    const message =
      'Perdure reads the file by its type. Of a table it summarizes each row by itself, where n8n makes one summary of all.'
    tools.report('parameter', 'parameters.operationMode', message, operationMode)
  }
  return {
    ...ask('EXTRACT_FROM_FILE', {
      file: fileOf(source.file),
      item: { field: 'text' },
      format: source.format,
    }),
    shaper: { type: 'SUMMARIZE', config, perItem: true },
  }
}

/** The source of a summary: a text by an expression, or a file of the item. */
function readSource(
  node: SourceNode,
  mode: string,
  tools: MapperTools,
): { input: string } | { file: unknown; format: string } {
  const whole = { input: '={{ JSON.stringify($json) }}' }
  if (mode === 'nodeInputJson') return whole
  if (mode === 'nodeInputBinary')
    return { file: objectOf(node.parameters.options).binaryDataKey, format: 'auto' }
  const [loader] = tools.attached('ai_document')
  if (!loader) throw new Error('no loader of documents is attached to it')
  const { dataType = 'json', jsonMode, jsonData, loader: kind = 'auto', binaryDataKey } = loader.parameters
  if (loader.type !== 'documentDefaultDataLoader')
    throw new Error(`its documents come from "${loader.fullType}", which Perdure has not`)
  if (dataType !== 'binary') return jsonMode === 'expressionData' ? { input: keepText(jsonData) } : whole
  const format = LOADED[String(kind)]
  if (format === undefined) throw new Error(`its documents are files of the kind "${String(kind)}"`)
  return { file: binaryDataKey, format }
}

const LOADED: Record<string, string> = { auto: 'auto', textLoader: 'text', pdfLoader: 'pdf' }
