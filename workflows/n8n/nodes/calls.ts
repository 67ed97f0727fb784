import { isObject } from '../../inputs.ts'
import type { SourceNode } from '../document.ts'
import { quote } from '../javascript.ts'
import { type Mapper, part, type Tools } from '../mapper.ts'

const BODY = '$exists($input.status) ? $input.body : $input'

const http: Mapper = {
  takes: 'item',
  gives(node, { unwrap, lists }) {
    const isText = readTextName(node) !== undefined
    const path = unwrap || isFull(node) || isText || handlesErrors(node) ? '' : '.body'
    return lists && !isText ? { card: 'many', path } : { card: 'one', path }
  },
  map(node, tools) {
    const { parameters } = node
    const config: Record<string, unknown> = {
      url: tools.reader.template(parameters.url ?? '', 'parameters.url'),
      method: tools.reader.template(
        parameters.method ?? parameters.requestMethod ?? 'GET',
        'parameters.method',
      ),
    }
    const headers = readPairs(node, 'Headers', 'header', tools)
    const query = readPairs(node, 'Query', 'query', tools)
    if (Object.keys(headers).length > 0) config.headers = headers
    if (Object.keys(query).length > 0) config.query = query
    Object.assign(config, readBody(node, tools))
    const options = isObject(parameters.options) ? parameters.options : {}
    readOptions(options, config, tools)
    const { authentication = 'none' } = parameters
    if (authentication !== 'none') {
      complainAuthentication(node, tools)
    }
    const main = {
      ...part('HTTP_REQUEST', config),
      ...(node.raw.retryOnFail === true ? {} : { retry: { maxAttempts: 1 } }),
    }
    const text = readTextName(node)
    if (text !== undefined) config.responseType = 'text'
    const named = `${quote(text ?? 'body')}: $input.body`
    const shape = isFull(node)
      ? `$exists($input.status) ? {"statusCode": $input.status, "headers": $input.headers, ${named}} : $input`
      : text !== undefined
        ? `$exists($input.status) ? {${named}} : $input`
        : tools.unwrap || handlesErrors(node)
          ? BODY
          : undefined
    return { parts: shape ? [main, part('TRANSFORM', { expression: shape }, '__body')] : [main] }
  },
}

/** Whether what comes out may be an error, which has no body. */
function handlesErrors({ raw }: SourceNode): boolean {
  return raw.continueOnFail === true || (typeof raw.onError === 'string' && raw.onError !== 'stopWorkflow')
}

function complainAuthentication({ parameters }: SourceNode, { complain }: Tools): void {
  const kind = parameters.genericAuthType ?? parameters.nodeCredentialType ?? parameters.authentication
  complain('credential', 'parameters.authentication', 'It calls without credentials: set them here', kind)
}

/** Whether it is to give {statusCode, headers, body} instead of the body. */
function isFull({ parameters }: SourceNode): boolean {
  const options = Object(parameters.options)
  return options.response?.response?.fullResponse === true || options.fullResponse === true
}

/** The field that an answer stands in which is to be read as a text. */
function readTextName({ parameters, version }: SourceNode): string | undefined {
  const { responseFormat, outputPropertyName } = Object(Object(Object(parameters.options).response).response)
  if (responseFormat === 'text') return String(outputPropertyName ?? 'data')
  if (version >= 3 || parameters.responseFormat !== 'string') return undefined
  return String(parameters.dataPropertyName ?? 'data')
}

/** Headers or query: a list of pairs, JSON, or in old versions `headerParametersUi.parameter`. */
function readPairs(
  node: SourceNode,
  name: 'Headers' | 'Query',
  old: string,
  tools: Tools,
): Record<string, unknown> {
  const { parameters } = node
  const sends = parameters[`send${name}`] ?? node.version < 3
  if (!sends) return {}
  const key = name === 'Headers' ? 'headerParameters' : 'queryParameters'
  const json =
    parameters[`json${name}`] ?? (parameters.jsonParameters ? parameters[`${old}ParametersJson`] : undefined)
  if (parameters[`specify${name}`] === 'json' || (json !== undefined && parameters.jsonParameters)) {
    const read = tools.reader.json(String(json ?? '{}'), `parameters.json${name}`)
    return isObject(read?.value) ? read.value : {}
  }
  const listed = Object(parameters[key] ?? parameters[`${key}Ui`])
  const list = listed.parameters ?? listed.parameter
  return pairs(list, `parameters.${key}.parameters`, tools)
}

function pairs(list: unknown, path: string, { reader }: Tools): Record<string, unknown> {
  const entries = (Array.isArray(list) ? list : []).flatMap((entry, i) => {
    const { name, value = '' } = Object(entry)
    return typeof name === 'string' && name !== ''
      ? [[String(reader.template(name, `${path}[${i}].name`)), reader.template(value, `${path}[${i}].value`)]]
      : []
  })
  return Object.fromEntries(entries)
}

function readBody(node: SourceNode, tools: Tools): Record<string, unknown> {
  const { parameters } = node
  const { complain, reader } = tools
  const method = String(parameters.method ?? parameters.requestMethod ?? 'GET').toUpperCase()
  const sends = parameters.sendBody ?? (node.version < 3 && !['GET', 'HEAD'].includes(method))
  if (!sends) return {}
  const kind = String(parameters.contentType ?? parameters.bodyContentType ?? 'json')
  if (kind === 'json') {
    const text =
      parameters.jsonBody ?? (parameters.jsonParameters ? parameters.bodyParametersJson : undefined)
    if (parameters.specifyBody === 'json' || (text !== undefined && node.version < 3)) {
      const read = reader.json(String(text ?? ''), 'parameters.jsonBody')
      return read ? { body: read.value } : {}
    }
    const listed = Object(parameters.bodyParameters ?? parameters.bodyParametersUi)
    const body = pairs(listed.parameters ?? listed.parameter, 'parameters.bodyParameters.parameters', tools)
    return node.version < 3 && Object.keys(body).length === 0 ? {} : { body }
  }
  if (kind === 'form-urlencoded') {
    if (parameters.specifyBody === 'string' || typeof parameters.body === 'string') {
      return { body: reader.template(parameters.body ?? '', 'parameters.body'), bodyType: 'form' }
    }
    const listed = Object(parameters.bodyParameters ?? parameters.bodyParametersUi)
    return {
      body: pairs(listed.parameters ?? listed.parameter, 'parameters.bodyParameters.parameters', tools),
      bodyType: 'form',
    }
  }
  if (kind === 'raw') {
    if (parameters.rawContentType && parameters.rawContentType !== 'text/plain') {
      complain(
        'parameter',
        'parameters.rawContentType',
        'Set the header content-type here',
        parameters.rawContentType,
      )
    }
    return { body: reader.template(parameters.body ?? '', 'parameters.body'), bodyType: 'text' }
  }
  complain(
    'parameter',
    'parameters.contentType',
    `A body of the kind ${kind} cannot be sent: it calls without one`,
    parameters.contentType,
  )
  return {}
}

function readOptions(options: Record<string, unknown>, config: Record<string, unknown>, tools: Tools): void {
  for (const [key, value] of Object.entries(options)) {
    if (key === 'timeout') config.timeoutMs = tools.reader.template(value, 'parameters.options.timeout')
    else if (key === 'response' || key === 'fullResponse') {
      const { responseFormat, neverError } = Object(Object(value).response ?? {})
      if (responseFormat === 'json') config.responseType = 'json'
      else if (responseFormat === 'file')
        tools.complain('parameter', `parameters.options.${key}`, 'Files are not kept', value)
      if (neverError)
        tools.complain(
          'parameter',
          `parameters.options.${key}`,
          'An answer of 400 or more fails the node',
          value,
        )
    } else tools.complain('parameter', `parameters.options.${key}`, 'There is no such option', value)
  }
}

const respond: Mapper = {
  takes: 'any',
  same: true,
  map({ parameters }, tools) {
    const { reader, complain } = tools
    const { respondWith = 'firstIncomingItem', responseBody = '', options = {} } = parameters
    const { responseCode, responseHeaders, ...rest } = Object(options)
    const config: Record<string, unknown> = {}
    if (responseCode !== undefined)
      config.status = reader.template(responseCode, 'parameters.options.responseCode')
    const headers = pairs(
      Object(responseHeaders).entries,
      'parameters.options.responseHeaders.entries',
      tools,
    )
    for (const [key, value] of Object.entries(rest)) {
      complain('parameter', `parameters.options.${key}`, 'There is no such option', value)
    }
    switch (respondWith) {
      case 'json': {
        const text = typeof responseBody === 'string' ? responseBody : JSON.stringify(responseBody)
        const read = reader.json(text, 'parameters.responseBody')
        if (read) config.body = read.value
        break
      }
      case 'text':
        config.body = reader.template(responseBody, 'parameters.responseBody')
        break
      case 'firstIncomingItem':
        config.body = `{{ ${tools.input.card === 'many' ? `(${tools.source})[0]` : tools.source} }}`
        break
      case 'allIncomingItems':
        config.body = `{{ [${tools.source}] }}`
        break
      case 'noData':
        break
      case 'redirect':
        config.status ??= 302
        headers.location = reader.template(parameters.redirectURL ?? '', 'parameters.redirectURL')
        break
      default:
        throw new Error(`it cannot answer with ${respondWith}`)
    }
    if (Object.keys(headers).length > 0) config.headers = headers
    const main = part('RESPOND_TO_WEBHOOK', config)
    if (tools.outputs === 0) return { parts: [main] }
    // Ours puts out its answer, theirs what it was given.
    return {
      parts: [
        part('NO_OP', {}, '__in'),
        main,
        part('TRANSFORM', { expression: `$nodes.${tools.id}__in` }, '__out'),
      ],
    }
  },
}

const executeWorkflow: Mapper = {
  takes: 'item',
  map({ parameters }, tools) {
    const { source = 'database', workflowId, mode = 'once', options = {} } = parameters
    if (source !== 'database') throw new Error(`it runs a workflow from ${source}`)
    const given = String(isObject(workflowId) ? workflowId.value : (workflowId ?? ''))
    const found = tools.findWorkflow(given)
    if (!found) throw new Error(`name in "workflows" which workflow here stands for its workflow ${given}`)
    const mapping = Object(parameters.workflowInputs)
    const defined =
      mapping.mappingMode === 'defineBelow' &&
      isObject(mapping.value) &&
      Object.keys(mapping.value).length > 0
    const input = defined
      ? tools.reader.template(mapping.value, 'parameters.workflowInputs.value')
      : `{{ ${tools.source} }}`
    if (mode === 'once' && tools.input.card === 'many') {
      tools.complain('items', 'parameters.mode', 'It runs once for each item, not once for all of them', mode)
    }
    const wait = Object(options).waitForSubWorkflow !== false
    return { parts: [part('SUB_WORKFLOW', { workflowId: found, input, wait })] }
  },
}

export const CALLS: Record<string, Mapper> = {
  httpRequest: http,
  respondToWebhook: respond,
  executeWorkflow,
}
