import { getOwn } from '../../json.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import type { MappedNode } from '../parts.ts'
import { reportMissingOption } from '../report.ts'
import { keepText } from '../texts.ts'
import { answer, ask, type Fields, objectOf, readModel, readPrompt } from './asking.ts'
import { mapMemory } from './memory.ts'
import { readSchemaParser } from './parsers.ts'
import { mapTools } from './tools.ts'

const SYSTEM = 'You are a helpful assistant'
const MAX_STEPS = 500
const DEFAULT_ITERATIONS = 10

/** Kinds of agents of older versions: what they do in another way than an AI_AGENT, if they do. */
const KINDS: Record<string, string> = {
  toolsAgent: '',
  openAiFunctionsAgent: '',
  conversationalAgent:
    'n8n describes the tools to the model in words, and reads from its words which one it wants. An AI_AGENT has the ' +
    'vendor call the tools.',
  reActAgent:
    'n8n describes the tools to the model in words, has it write down its thoughts, and reads from its words which tool ' +
    'it wants. An AI_AGENT has the vendor call the tools.',
  planAndExecuteAgent:
    'n8n has the model make a plan, and then asks it anew for each step of that. An AI_AGENT is told to make a plan, and ' +
    'does all steps in one conversation.',
}

const SQL_AGENT =
  'it is an agent that writes SQL of its own, which Perdure lets no model do: make an AI_AGENT with a tool of the kind ' +
  'DATABASE_QUERY for each statement that it needs'

/** What the older kinds tell the model of themselves. */
const REACT = 'Answer the following questions as best you can.'
const PLAN =
  'Make a plan for what you are asked first. Then carry it out step by step, and answer when all is done.'

/** Options that make no difference here. */
const QUIET = [
  'passthroughBinaryImages',
  'passthroughBinaryPdfs',
  'enableStreaming',
  'autoSaveHighlightedData',
]

/** An agent. One without tools asks its model once: an LLM. */
export function mapAgent(node: SourceNode, tools: MapperTools): MappedNode {
  const { parameters, version } = node
  const { agent: kind = version <= 1.5 ? 'conversationalAgent' : 'toolsAgent' } = parameters
  if (kind === 'sqlAgent') throw new Error(SQL_AGENT)
  const difference = getOwn(KINDS, String(kind))
  if (difference === undefined)
    throw new Error(`it is an agent of the kind "${String(kind)}", and Perdure has agents with tools`)
  if (difference !== '') tools.report('parameter', 'parameters.agent', difference, kind)
  const { asked, temperature, maxTokens, fallbacks } = readModel(tools, node)
  const {
    systemMessage: told,
    prefix,
    maxIterations,
    returnIntermediateSteps,
    batching,
    ...rest
  } = objectOf(parameters.options)
  const missing = Object.entries(rest).filter(([name]) => !QUIET.includes(name))
  if (returnIntermediateSteps === true) missing.push(['returnIntermediateSteps', true])
  if (Number(Object(batching).delayBetweenBatches) > 0) missing.push(['batching', batching])
  for (const [name, value] of missing) reportMissingOption(tools.report, `parameters.options.${name}`, value)
  const schema = readSchemaParser(tools)
  const memory = mapMemory(tools)
  const own = kind === 'reActAgent' ? (prefix ?? REACT) : kind === 'planAndExecuteAgent' ? PLAN : told
  // From version 2 on n8n says nothing of the system unless it is set.
  const system = keepText(own ?? (version < 2 ? SYSTEM : ''))
  const how = { ...asked, ...temperature, ...memory }
  const prompt = readPrompt(node)
  const attached = tools.attached('ai_tool')
  if (attached.length === 0) {
    const config = { ...how, ...fallbacks, ...maxTokens, ...(system === '' ? {} : { system }), prompt }
    return answer('LLM', schema ? { ...config, output: 'json', schema } : config, 'output', tools)
  }
  if (system === '') {
    const message = `n8n gives its model no message of the system. An AI_AGENT needs instructions: they are "${SYSTEM}".`
    tools.report('parameter', 'parameters.options.systemMessage', message, told ?? null)
  }
  if (fallbacks.fallbacks !== undefined) {
    const message =
      'n8n asks another model if this one fails. An AI_AGENT has one model: it retries, and then fails.'
    tools.report('parameter', 'parameters.needsFallback', message, true)
  }
  if (maxTokens.maxTokens !== undefined)
    reportMissingOption(tools.report, 'ai_languageModel.options.maxTokens', maxTokens.maxTokens)
  const config = {
    ...how,
    instructions: system === '' ? SYSTEM : system,
    prompt,
    tools: mapTools(attached, tools, version >= 3),
    maxSteps: readSteps(maxIterations, tools),
  }
  if (!schema) return answer('AI_AGENT', config, 'output', tools)
  return withSchema(config, { ...asked, schema }, tools)
}

/** n8n counts calls to the model, Perdure those of tools too. */
function readSteps(given: unknown, { report }: MapperTools): number {
  const iterations = Number.isInteger(given) && Number(given) > 0 ? Number(given) : DEFAULT_ITERATIONS
  if (given !== undefined && given !== DEFAULT_ITERATIONS) {
    const message =
      'n8n counts calls to the model. maxSteps of Perdure counts those of tools too, so it was set to twice as many; an ' +
      'agent that is not done then fails.'
    report('parameter', 'parameters.options.maxIterations', message, given)
  }
  return Math.min(MAX_STEPS, 2 * iterations)
}

/** An agent whose answer fits a schema: what it says is brought into that form by a node behind it. */
function withSchema(config: Fields, extract: Fields, tools: MapperTools): MappedNode {
  const message =
    'The agent of n8n answers in the form of its parser by itself. In Perdure an EXTRACT behind the agent asks the model ' +
    'once more, to bring what the agent said into that form.'
  tools.report('parameter', 'ai_outputParser', message, extract.schema)
  const more =
    '\n\nGive in your last answer a value for each field of this JSON Schema:\n' +
    JSON.stringify(extract.schema).replaceAll('{{', '{ {').replaceAll('}}', '} }')
  const { instructions } = config
  const shaped = { ...extract, input: '={{ $json.output }}', into: { field: 'output', keep: false } }
  return {
    ...ask('AI_AGENT', {
      ...config,
      instructions: `${String(instructions)}${more}`,
      into: { field: 'output', keep: false },
    }),
    shaper: { type: 'EXTRACT', config: shaped, perItem: true },
  }
}
