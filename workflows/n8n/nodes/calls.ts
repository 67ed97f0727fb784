import { isObject } from '../../json.ts'
import { findHeaderFault } from '../../nodes/webhooks.ts'
import type { SourceNode } from '../document.ts'
import { quoteString } from '../expressions/code.ts'
import type { ItemFlow, MapperTools, NodeMapper, OutputUse } from '../mapper.ts'
import { createPart, type MappedNode, mapToNode } from '../parts.ts'
import { reportMissingOption } from '../report.ts'

/** Nodes that call a service or another workflow, or answer a caller. */
export const CALL_MAPPERS: Record<string, NodeMapper> = {
  httpRequest: { takes: 'item', outputFlow: findHttpOutput, map: mapHttpRequest },
  respondToWebhook: { takes: 'any', passesInput: true, map: mapRespondToWebhook },
  executeWorkflow: { takes: 'item', map: mapExecuteWorkflow },
}

type Fields = Record<string, unknown>

function findHttpOutput(node: SourceNode, { plainOutput, feedsLists }: OutputUse): ItemFlow {
  const isText = findTextField(node) !== undefined
  const isReshaped = plainOutput || isFullResponse(node) || isText || continuesOnError(node)
  return { count: feedsLists && !isText ? 'many' : 'one', path: isReshaped ? '' : '.body' }
}

function mapHttpRequest(node: SourceNode, tools: MapperTools): MappedNode {
  const { parameters } = node
  const { reader } = tools
  const config: Fields = {
    url: reader.readTemplate(parameters.url ?? '', 'parameters.url'),
    method: reader.readTemplate(parameters.method ?? parameters.requestMethod ?? 'GET', 'parameters.method'),
  }
  const headers = readHeadersOrQuery(node, 'Headers', tools)
  const query = readHeadersOrQuery(node, 'Query', tools)
  if (Object.keys(headers).length > 0) config.headers = headers
  if (Object.keys(query).length > 0) config.query = query
  Object.assign(config, readBody(node, tools))
  readHttpOptions(isObject(parameters.options) ? parameters.options : {}, config, tools)
  if ((parameters.authentication ?? 'none') !== 'none') reportAuthentication(node, tools)
  if (findTextField(node) !== undefined) config.responseType = 'text'
  // HTTP_REQUEST retries by default. The n8n node retries only if that is set.
  const retry = node.raw.retryOnFail === true ? {} : { retry: { maxAttempts: 1 } }
  const call = { ...createPart('HTTP_REQUEST', config), ...retry }
  const shape = writeResponseShape(node, tools)
  return { parts: shape ? [call, createPart('TRANSFORM', { expression: shape }, '__body')] : [call] }
}

/**
 * JSONata that turns our response {status, headers, body} into what the n8n node outputs. An error, which has
 * no status, stays as it is. Undefined if later nodes can read the body out of our response themselves.
 */
function writeResponseShape(node: SourceNode, { plainOutput }: MapperTools): string | undefined {
  const textField = findTextField(node)
  const body = `${quoteString(textField ?? 'body')}: $input.body`
  const ifResponse = (shape: string) => `$exists($input.status) ? ${shape} : $input`
  if (isFullResponse(node))
    return ifResponse(`{"statusCode": $input.status, "headers": $input.headers, ${body}}`)
  if (textField !== undefined) return ifResponse(`{${body}}`)
  return plainOutput || continuesOnError(node) ? ifResponse('$input.body') : undefined
}

/** Whether the node may output an error, which has no body. */
function continuesOnError({ raw }: SourceNode): boolean {
  return raw.continueOnFail === true || (typeof raw.onError === 'string' && raw.onError !== 'stopWorkflow')
}

/** Whether the node outputs {statusCode, headers, body} instead of the body. */
function isFullResponse({ parameters }: SourceNode): boolean {
  const options = Object(parameters.options)
  return options.response?.response?.fullResponse === true || options.fullResponse === true
}

/** The field that gets the body if the response is read as text. Undefined if it is not. */
function findTextField({ parameters, version }: SourceNode): string | undefined {
  const { responseFormat, outputPropertyName } = Object(Object(Object(parameters.options).response).response)
  if (responseFormat === 'text') return String(outputPropertyName ?? 'data')
  if (version >= 3 || parameters.responseFormat !== 'string') return undefined
  return String(parameters.dataPropertyName ?? 'data')
}

function reportAuthentication({ parameters }: SourceNode, { report }: MapperTools): void {
  const kind = parameters.genericAuthType ?? parameters.nodeCredentialType ?? parameters.authentication
  const message =
    `n8n calls with a credential of the type "${kind}". Credentials are not imported, and Perdure calls ` +
    'without one: set on the node what the service needs, for example a header.'
  report('credential', 'parameters.authentication', message, kind)
}

/** The headers or the query: a list of pairs, or JSON. */
function readHeadersOrQuery(node: SourceNode, which: 'Headers' | 'Query', tools: MapperTools): Fields {
  const { parameters } = node
  const sends = parameters[`send${which}`] ?? node.version < 3
  if (!sends) return {}
  const name = which === 'Headers' ? 'header' : 'query'
  const json =
    parameters[`json${which}`] ??
    (parameters.jsonParameters ? parameters[`${name}ParametersJson`] : undefined)
  if (parameters[`specify${which}`] === 'json' || (json !== undefined && parameters.jsonParameters)) {
    const read = tools.reader.readJson(String(json ?? '{}'), `parameters.json${which}`)
    return isObject(read?.value) ? read.value : {}
  }
  return readPairs(parameters, `${name}Parameters`, tools)
}

/** A list of pairs: `key.parameters`, or `keyUi.parameter` in old versions. */
function readPairs(parameters: Fields, key: string, tools: MapperTools): Fields {
  const listed = Object(parameters[key] ?? parameters[`${key}Ui`])
  return readPairList(listed.parameters ?? listed.parameter, `parameters.${key}.parameters`, tools)
}

function readPairList(list: unknown, path: string, { reader }: MapperTools): Fields {
  const entries = (Array.isArray(list) ? list : []).flatMap((entry, i) => {
    const { name, value = '' } = Object(entry)
    if (typeof name !== 'string' || name === '') return []
    const key = String(reader.readTemplate(name, `${path}[${i}].name`))
    return [[key, reader.readTemplate(value, `${path}[${i}].value`)]]
  })
  return Object.fromEntries(entries)
}

function readBody(node: SourceNode, tools: MapperTools): Fields {
  const { parameters } = node
  const { report, reader } = tools
  const method = String(parameters.method ?? parameters.requestMethod ?? 'GET').toUpperCase()
  const sends = parameters.sendBody ?? (node.version < 3 && !['GET', 'HEAD'].includes(method))
  if (!sends) return {}
  const contentType = String(parameters.contentType ?? parameters.bodyContentType ?? 'json')
  switch (contentType) {
    case 'json':
      return readJsonBody(node, tools)
    case 'form-urlencoded': {
      const isString = parameters.specifyBody === 'string' || typeof parameters.body === 'string'
      const body = isString
        ? reader.readTemplate(parameters.body ?? '', 'parameters.body')
        : readPairs(parameters, 'bodyParameters', tools)
      return { body, bodyType: 'form' }
    }
    case 'raw': {
      const { rawContentType } = parameters
      if (rawContentType && rawContentType !== 'text/plain') {
        const message =
          `n8n sends the body as ${rawContentType}. Perdure sends it as text/plain: set the header ` +
          'content-type on the node.'
        report('parameter', 'parameters.rawContentType', message, rawContentType)
      }
      return { body: reader.readTemplate(parameters.body ?? '', 'parameters.body'), bodyType: 'text' }
    }
  }
  const message =
    `n8n sends a body of the type "${contentType}". Perdure cannot, and calls without a body: send it as ` +
    'JSON, as a form or as text.'
  report('parameter', 'parameters.contentType', message, parameters.contentType)
  return {}
}

function readJsonBody(node: SourceNode, tools: MapperTools): Fields {
  const { parameters, version } = node
  const text = parameters.jsonBody ?? (parameters.jsonParameters ? parameters.bodyParametersJson : undefined)
  if (parameters.specifyBody === 'json' || (text !== undefined && version < 3)) {
    const read = tools.reader.readJson(String(text ?? ''), 'parameters.jsonBody')
    return read ? { body: read.value } : {}
  }
  const body = readPairs(parameters, 'bodyParameters', tools)
  return version < 3 && Object.keys(body).length === 0 ? {} : { body }
}

const FILE_RESPONSE =
  'n8n keeps the response as a file. Perdure keeps no files, and reads the response as JSON or as text: ' +
  'check the nodes that use the file.'
const ERROR_RESPONSE =
  'n8n continues with a response that has an error status. In Perdure a status of 400 or more fails the ' +
  'node: set its onError to CONTINUE or BRANCH.'

function readHttpOptions(options: Fields, config: Fields, { reader, report }: MapperTools): void {
  for (const [key, value] of Object.entries(options)) {
    const path = `parameters.options.${key}`
    if (key === 'timeout') config.timeoutMs = reader.readTemplate(value, path)
    else if (key === 'response' || key === 'fullResponse') {
      const { responseFormat, neverError } = Object(Object(value).response ?? {})
      if (responseFormat === 'json') config.responseType = 'json'
      else if (responseFormat === 'file') report('parameter', path, FILE_RESPONSE, value)
      if (neverError) report('parameter', path, ERROR_RESPONSE, value)
    } else reportMissingOption(report, path, value)
  }
}

function mapRespondToWebhook({ parameters }: SourceNode, tools: MapperTools): MappedNode {
  const { reader, report } = tools
  const { responseCode, responseHeaders, ...rest } = Object(parameters.options ?? {})
  const config: Fields = {}
  if (responseCode !== undefined)
    config.status = reader.readTemplate(responseCode, 'parameters.options.responseCode')
  const headersPath = 'parameters.options.responseHeaders.entries'
  const headers = readPairList(Object(responseHeaders).entries, headersPath, tools)
  for (const [name, value] of Object.entries(headers)) {
    const fault = findHeaderFault(name, String(value))
    if (!fault) continue
    delete headers[name]
    report('parameter', headersPath, `The header "${name}" was left out: it ${fault}.`, value)
  }
  for (const [key, value] of Object.entries(rest)) {
    reportMissingOption(report, `parameters.options.${key}`, value)
  }
  readResponse(parameters, config, headers, tools)
  if (Object.keys(headers).length > 0) config.headers = headers
  const response = createPart('RESPOND_TO_WEBHOOK', config)
  if (tools.connectedOutputs === 0) return { parts: [response] }
  // Our node outputs the response. The n8n node outputs its input.
  const output = createPart('TRANSFORM', { expression: `$nodes.${tools.id}__in` }, '__out')
  return { parts: [createPart('NO_OP', {}, '__in'), response, output] }
}

/** Adds what the node responds with to the config and the headers. */
function readResponse(parameters: Fields, config: Fields, headers: Fields, tools: MapperTools): void {
  const { reader, input, inputCode } = tools
  const { respondWith = 'firstIncomingItem', responseBody = '' } = parameters
  switch (respondWith) {
    case 'json': {
      const text = typeof responseBody === 'string' ? responseBody : JSON.stringify(responseBody)
      const read = reader.readJson(text, 'parameters.responseBody')
      if (read) config.body = read.value
      return
    }
    case 'text':
      config.body = reader.readTemplate(responseBody, 'parameters.responseBody')
      return
    case 'firstIncomingItem':
      config.body = `{{ ${input.count === 'many' ? `(${inputCode})[0]` : inputCode} }}`
      return
    case 'allIncomingItems':
      config.body = `{{ [${inputCode}] }}`
      return
    case 'noData':
      return
    case 'redirect':
      config.status ??= 302
      headers.location = reader.readTemplate(parameters.redirectURL ?? '', 'parameters.redirectURL')
      return
  }
  throw new Error(`it responds with "${respondWith}", which Perdure cannot`)
}

function mapExecuteWorkflow({ parameters }: SourceNode, tools: MapperTools): MappedNode {
  const { source = 'database', workflowId, mode = 'once', options = {} } = parameters
  if (source !== 'database') throw new Error(`it takes the workflow that it executes from "${source}"`)
  const theirs = String(isObject(workflowId) ? workflowId.value : (workflowId ?? ''))
  const ours = tools.findWorkflow(theirs)
  if (!ours) {
    throw new Error(
      `it executes the n8n workflow "${theirs}", and "workflows" does not say which workflow replaces it`,
    )
  }
  const { mappingMode, value } = Object(parameters.workflowInputs)
  const definesInput = mappingMode === 'defineBelow' && isObject(value) && Object.keys(value).length > 0
  const input = definesInput
    ? tools.reader.readTemplate(value, 'parameters.workflowInputs.value')
    : `{{ ${tools.inputCode} }}`
  if (mode === 'once' && tools.input.count === 'many') {
    const message =
      'n8n executes the other workflow once, with all items. Perdure executes it once for each item: if it ' +
      'needs all of them, collect them in front of this node.'
    tools.report('items', 'parameters.mode', message, mode)
  }
  const wait = Object(options).waitForSubWorkflow !== false
  return mapToNode('SUB_WORKFLOW', { workflowId: ours, input, wait })
}
