import { getOwn, isObject } from '../../json.ts'
import { SERVICE_TOOLS } from '../connectors/tools.ts'
import { mapDatabaseTool } from '../databases/tools.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { findCalled } from '../nodes/calls.ts'
import { mapTableTool } from '../nodes/tables.ts'
import type { ProblemReporter } from '../report.ts'
import { signRequest } from '../signins/requests.ts'
import { isTemplate, keepTexts, listObjects, plainText, splitNames } from '../texts.ts'
import { type Fields, objectOf } from './asking.ts'
import { type ArgumentList, createArguments, type ToolGiven, writeArgument } from './fromai.ts'
import { mapHttpRequestTool, mapHttpTool } from './httptools.ts'
import { readSchema } from './parsers.ts'
import { mapCalculator, mapSerpApi, mapWikipedia } from './smalltools.ts'

/** The fields of our tool besides its name, its description and its parameters; or a name or parameters of its own. */
type ToolMapper = (given: ToolGiven) => Fields

const TOOL_MAPPERS: Record<string, ToolMapper> = {
  toolHttpRequest: mapHttpTool,
  httpRequestTool: mapHttpRequestTool,
  toolWorkflow: mapWorkflowTool,
  toolCode: mapCodeTool,
  toolThink: mapThinkTool,
  postgresTool: mapDatabaseTool,
  mySqlTool: mapDatabaseTool,
  dataTableTool: mapTableTool,
  mcpClientTool: mapMcpTool,
  toolCalculator: mapCalculator,
  toolWikipedia: mapWikipedia,
  toolSerpApi: mapSerpApi,
  ...SERVICE_TOOLS,
}

/**
 * The tools of an agent; n8n answers in a list for those of a `wrapping` one. Throws an Error that names all that have
 * no counterpart, each with its reason.
 */
export function mapTools(nodes: SourceNode[], tools: MapperTools, wrapping: boolean): Fields[] {
  const mapped: Fields[] = []
  const faults: string[] = []
  for (const node of nodes) {
    try {
      mapped.push(mapTool(node, tools))
    } catch (error) {
      faults.push(`"${node.name}" (${node.fullType}): ${(error as Error).message}`)
    }
  }
  if (faults.length > 0) throw new Error(`it has tools that are not imported: ${faults.join('; ')}`)
  const differing = mapped.filter(({ type }) => wrapping || type !== 'CODE')
  if (differing.length > 0) {
    const message =
      'What its tools answer is told to the model in another form than by n8n: of a request {status, body}, of a database ' +
      '{rows, rowCount, columns}, of a data table {rows, count}, of a service what that answers, of a workflow its output, of code what it returns, of a failure {error}. Check that its instructions do not rely on the form.'
    tools.report(
      'parameter',
      'ai_tool',
      message,
      nodes.map(({ name }) => name),
    )
  }
  return mapped
}

function mapTool(node: SourceNode, tools: MapperTools): Fields {
  const mapper = getOwn(TOOL_MAPPERS, node.type)
  if (!mapper) throw new Error('Perdure has no such tool')
  const args = createArguments()
  const report = tools.reportOf(node)
  const own = mapper({ node, tools, args, report })
  reportNodeSettings(node, report)
  if (own.type === 'MCP') return { name: nameTool(node), ...own }
  if (own.description !== undefined) return { name: nameTool(node), parameters: args.describe(), ...own }
  return { name: nameTool(node), description: describeTool(node), parameters: args.describe(), ...own }
}

const MAX_NAME = 64

/** The name by which n8n tells the model of a tool. */
function nameTool({ name, type, version, parameters }: SourceNode): string {
  const hasOwn = (type === 'toolCode' && version <= 1.1) || (type === 'toolWorkflow' && version < 2.2)
  const given = hasOwn && parameters.name ? plainText(parameters.name) : name
  if (given === undefined) throw new Error('an expression gives its name')
  return given
    .replace(/[^a-zA-Z0-9_-]+/g, '_')
    .slice(0, MAX_NAME)
    .replace(given.length > MAX_NAME ? /[_-]+$/ : /$^/, '')
}

const MAX_DESCRIPTION = 4_000

const THINK =
  'Use the tool to think about something. It will not obtain new information or change the database, but just append ' +
  'the thought to the log. Use it when complex reasoning or some cache memory is needed.'

function describeTool({ type, parameters }: SourceNode): string {
  const { toolDescription, description, descriptionType } = parameters
  const given = toolDescription ?? description ?? (type === 'toolThink' ? THINK : '')
  if (isTemplate(given)) throw new Error('an expression gives its description')
  const text = (plainText(given) ?? '').replaceAll('{{', '{ {').trim()
  if (text.length > MAX_DESCRIPTION)
    throw new Error(`its description has more than ${MAX_DESCRIPTION} characters`)
  if (text !== '' && descriptionType !== 'auto') return text
  return describeByItself(type, parameters)
}

/** n8n's description of a node that is a tool without a description of its own. */
function describeByItself(type: string, { resource, operation, method, url }: Fields): string {
  if (type === 'httpRequestTool')
    return `Makes an HTTP request (${String(method ?? 'GET')} ${String(url).slice(0, 200)}) and returns the response data`
      .replaceAll('{{', '{ {')
      .replaceAll('}}', '} }')
  const what = [operation, resource].filter((one) => typeof one === 'string' && one !== '').join(' ')
  if (what === '') throw new Error('it has no description')
  return `${type.replace(/Tool$/, '')}: ${what}`
}

function reportNodeSettings({ raw }: SourceNode, report: ProblemReporter): void {
  if (raw.retryOnFail !== true) return
  const message =
    'n8n retries this tool when it fails. Perdure retries only what can be repeated without harm, as often as the ' +
    "agent's retry says."
  report('parameter', 'retryOnFail', message, true)
}

/** The argument of a tool that takes a text. Models may leave it out, as in n8n. */
const addText = (args: ArgumentList) =>
  args.add({ name: 'input', schema: { type: 'string' }, optional: true })

const MAX_LEVELS = 50

/** The schema with objects that have no properties besides those that it names, as n8n reads it. */
function closeObjects(schema: unknown, level = 0): unknown {
  if (!isObject(schema) || level > MAX_LEVELS) return schema
  const { properties, items, additionalProperties, ...rest } = schema
  if (!isObject(properties))
    return items === undefined ? schema : { ...schema, items: closeObjects(items, level + 1) }
  const inner = Object.entries(properties).map(([key, one]) => [key, closeObjects(one, level + 1)])
  return {
    ...rest,
    properties: Object.fromEntries(inner),
    additionalProperties: additionalProperties ?? false,
  }
}

/** The parameters of a tool whose argument is a text, or fits a schema. `input` is an expression for that argument. */
function readInput({ node: { parameters, version }, args }: ToolGiven): {
  input: string
  parameters: Fields
} {
  if (parameters.specifyInputSchema === true) {
    const { schemaType = 'fromJson' } = parameters
    const schema = readSchema({ ...parameters, schemaType })
    const isNew = schemaType !== 'fromJson' || version >= 1.3
    if (schema.type !== 'object') throw new Error('its JSON Schema is for no object')
    const closed = closeObjects(schema) as Fields
    return { input: '$args', parameters: isNew ? closed : { ...closed, required: [] } }
  }
  addText(args)
  return { input: writeArgument('input'), parameters: args.describe() }
}

function mapCodeTool(given: ToolGiven): Fields {
  const { parameters: set } = given.node
  const { language = 'javaScript', jsCode } = set
  if (language !== 'javaScript')
    throw new Error(`its code is in ${language}, and Perdure runs only JavaScript`)
  const text = String(jsCode ?? '')
  if (text.trim() === '') throw new Error('it has no code')
  const outside = /\b(require|process|fetch)\b|\bthis\.helpers\b|\$helpers\b/.exec(text)
  if (outside) throw new Error(`its code uses ${outside[0]}, which there is not here`)
  const { input, parameters } = readInput(given)
  const code =
    `const answer = await (async (query) => { ${text}\n})(${input})\n` +
    "if (typeof answer === 'number') return String(answer)\n" +
    "if (typeof answer !== 'string') throw new Error('The response property should be a string, but it is an ' + typeof answer)\n" +
    'return answer'
  return { type: 'CODE', code, parameters }
}

function mapThinkTool({ args }: ToolGiven): Fields {
  addText(args)
  return {
    type: 'CODE',
    code: `return ${writeArgument('input')} ?? ''`,
  }
}

function mapWorkflowTool(given: ToolGiven): Fields {
  const { node, tools, args, report } = given
  const { parameters, version } = node
  const { source = 'database', workflowId } = parameters
  if (source !== 'database') throw new Error(`it takes the workflow that it executes from "${source}"`)
  const ours = findCalled(workflowId, tools)
  if (parameters.responsePropertyName && parameters.responsePropertyName !== 'response') {
    const message = 'n8n tells the model one field of what the workflow outputs. Perdure tells it all.'
    report('parameter', 'parameters.responsePropertyName', message, parameters.responsePropertyName)
  }
  const { schema, value } = objectOf(parameters.workflowInputs)
  if (version >= 2 && Array.isArray(schema) && schema.length > 0) {
    const input = keepTexts(args.read(objectOf(value)))
    if (!args.isEmpty()) return { type: 'SUB_WORKFLOW', workflowId: ours, input }
    addText(args)
    return { type: 'SUB_WORKFLOW', workflowId: ours, input }
  }
  const { input, parameters: own } = readInput(given)
  const query = `={{ ${input} }}`
  const fields = Object.fromEntries(
    listObjects(objectOf(parameters.fields).values).map(({ name, type = 'stringValue', ...one }) => [
      String(plainText(name) ?? ''),
      keepTexts(args.read(one[String(type)])),
    ]),
  )
  const spread = parameters.specifyInputSchema === true && Object.keys(fields).length === 0
  if (parameters.specifyInputSchema === true && !spread)
    throw new Error('it adds fields to arguments that have a JSON Schema')
  return {
    ...{ type: 'SUB_WORKFLOW', workflowId: ours, parameters: own },
    input: spread ? '={{ $args }}' : { query, ...fields },
  }
}

function mapMcpTool({ node, tools, report }: ToolGiven): Fields {
  const { parameters, version } = node
  const transport =
    version < 1.1 ? 'sse' : (parameters.serverTransport ?? (version < 1.2 ? 'sse' : 'httpStreamable'))
  if (transport !== 'httpStreamable')
    throw new Error('its server speaks the older protocol over SSE, and Perdure streamable HTTP')
  const url = plainText(parameters.endpointUrl)
  if (url === undefined) throw new Error('an expression gives the address of its server')
  const { include = 'all', includeTools, options } = parameters
  if (include === 'except')
    throw new Error('it leaves some tools of its server out, and Perdure can only choose some')
  const { timeout, ...rest } = objectOf(options)
  for (const [name, value] of Object.entries(rest))
    report(
      'parameter',
      `parameters.options.${name}`,
      `Perdure has no option like n8n's "${name}" for this tool.`,
      value,
    )
  return {
    type: 'MCP',
    url,
    ...signRequest(node, tools),
    ...(include === 'selected' ? { include: splitNames(includeTools) } : {}),
    ...(timeout === undefined ? {} : { timeoutMs: Number(timeout) }),
  }
}
