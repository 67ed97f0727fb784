import { isObject, setOwn } from '../../json.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { type MappedNode, mapEach } from '../parts.ts'
import { type ProblemReporter, reportMissingOption } from '../report.ts'
import { signRequest } from '../signins/requests.ts'
import { isTemplate, keepText, keepTexts, listObjects, plainText, splitNames } from '../texts.ts'
import { fileOf } from './fileparts.ts'
import { readPagination, shapePages } from './pages.ts'

type Fields = Record<string, unknown>

/** The HTTP Request node. */
export function mapHttpRequest(node: SourceNode, tools: MapperTools): MappedNode {
  const { report } = tools
  const { parameters } = node
  const config: Fields = {
    url: keepText(parameters.url ?? ''),
    method: keepText(parameters.method ?? parameters.requestMethod ?? 'GET'),
  }
  const headers = readHeadersOrQuery(node, 'Headers')
  const query = readHeadersOrQuery(node, 'Query')
  if (headers) config.headers = headers
  if (query) config.query = isObject(query) ? nameLists(query) : query
  Object.assign(config, readBody(node), readOptions(node, report))
  Object.assign(config, signRequest(node, tools, config))
  // HTTP_REQUEST retries by default. The n8n node retries only if that is set.
  return { ...mapEach('HTTP_REQUEST', config), retry: { maxAttempts: 1 } }
}

/** The headers or the query: a list of pairs, or JSON. */
function readHeadersOrQuery(node: SourceNode, which: 'Headers' | 'Query'): unknown {
  const { parameters } = node
  if (!(parameters[`send${which}`] ?? node.version < 3)) return undefined
  const name = which === 'Headers' ? 'header' : 'query'
  if (node.version < 3) {
    const json = parameters[`${name}ParametersJson`]
    if (parameters.jsonParameters === true)
      return json ? readJson(json, `parameters.${name}ParametersJson`) : undefined
    const pairs = readPairs(Object(parameters[`${name}ParametersUi`]).parameter)
    return Object.keys(pairs).length > 0 ? pairs : undefined
  }
  if (parameters[`specify${which}`] === 'json')
    return readJson(parameters[`json${which}`] ?? '{}', `parameters.json${which}`)
  const pairs = readPairs(Object(parameters[`${name}Parameters`]).parameters, node.version >= 4.3)
  return Object.keys(pairs).length > 0 ? pairs : undefined
}

/** JSON that is known now, or the template of its text. */
function readJson(value: unknown, path: string): unknown {
  if (isTemplate(value) || isObject(value)) return keepTexts(value)
  try {
    return keepTexts(JSON.parse(String(plainText(value))))
  } catch {
    throw new Error(`its parameter "${path.split('.').at(-1)}" is not valid JSON`)
  }
}

/** A list of pairs as an object: a name that is there several times gets a list. */
function readPairs(list: unknown, repeats = true): Fields {
  const pairs: Fields = {}
  for (const { name, value = '' } of listObjects(list)) {
    const key = plainText(name) ?? ''
    if (isTemplate(name)) throw new Error('an expression gives the name of a header or parameter')
    if (key === '') continue
    const before = pairs[key]
    pairs[key] = before === undefined || !repeats ? keepTexts(value) : [before, keepTexts(value)].flat()
  }
  return pairs
}

/** Lists in a query have brackets at their names. */
function nameLists(query: Fields): Fields {
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => [Array.isArray(value) ? `${name}[]` : name, value]),
  )
}

function readBody(node: SourceNode): Fields {
  const { parameters, version } = node
  const method = String(parameters.method ?? parameters.requestMethod ?? 'GET').toUpperCase()
  const sends = parameters.sendBody ?? (version < 3 && !['GET', 'HEAD'].includes(method))
  if (sends !== true) return {}
  const contentType = String(parameters.contentType ?? parameters.bodyContentType ?? 'json')
  if (version < 3 && parameters.sendBinaryData === true && contentType !== 'json')
    return readOldFiles(node, contentType)
  switch (contentType) {
    case 'json':
      return readJsonBody(node)
    case 'form-urlencoded': {
      const isString = parameters.specifyBody === 'string' || typeof parameters.body === 'string'
      const body = isString
        ? keepText(parameters.body ?? '')
        : readPairs(Object(parameters.bodyParameters).parameters)
      return { body, bodyType: 'form' }
    }
    case 'raw': {
      const { rawContentType } = parameters
      const type = rawContentType ? { contentType: keepText(rawContentType) } : {}
      return { body: keepText(parameters.body ?? ''), bodyType: 'text', ...type }
    }
  }
  if (contentType === 'multipart-form-data') return { body: readForm(node), bodyType: 'multipart' }
  if (contentType === 'binaryData' && version >= 3)
    return { body: fileOf(parameters.inputDataFieldName), bodyType: 'file' }
  throw new Error(
    `it sends a body of the type "${contentType}": send it as JSON, as a form, as text or as a file`,
  )
}

/** The fields of a form with files: a field is a text, or names a file of the item. */
function readForm({ parameters, version }: SourceNode): Fields {
  const list =
    version < 3 ? Object(parameters.bodyParametersUi).parameter : Object(parameters.bodyParameters).parameters
  const body: Fields = {}
  for (const { name, value = '', parameterType, inputDataFieldName } of listObjects(list)) {
    if (isTemplate(name)) throw new Error('an expression gives the name of a field of its form')
    const key = plainText(name) ?? ''
    const isFile = parameterType === 'formBinaryData'
    if (key === '' || (isFile && !inputDataFieldName)) continue
    const given = isFile ? fileOf(inputDataFieldName) : keepTexts(value)
    const before = body[key]
    setOwn(body, key, before === undefined || isFile || version < 4.3 ? given : [before, given].flat())
  }
  return body
}

/** Before version 3: the whole body is a file, or a form has files as `name:file` with commas between. */
function readOldFiles(node: SourceNode, contentType: string): Fields {
  const { binaryPropertyName = 'data' } = node.parameters
  if (contentType !== 'multipart-form-data')
    return contentType === 'json' ? {} : { body: fileOf(binaryPropertyName), bodyType: 'file' }
  if (isTemplate(binaryPropertyName)) throw new Error('an expression gives the names of its files')
  const files: Fields = {}
  for (const entry of splitNames(binaryPropertyName)) {
    const [first = '', second] = entry.split(':')
    setOwn(files, second === undefined ? 'file' : first, fileOf(second ?? first))
  }
  return { body: { ...readForm(node), ...files }, bodyType: 'multipart' }
}

function readJsonBody({ parameters, version }: SourceNode): Fields {
  const text = parameters.jsonBody ?? (parameters.jsonParameters ? parameters.bodyParametersJson : undefined)
  if (parameters.specifyBody === 'json' || (text !== undefined && version < 3)) {
    if (text === undefined || text === '') return {}
    return isTemplate(text)
      ? { body: text, bodyType: 'jsonText' }
      : { body: readJson(text, 'parameters.jsonBody') }
  }
  const list =
    version < 3 ? Object(parameters.bodyParametersUi).parameter : Object(parameters.bodyParameters).parameters
  const pairs = readPairs(list, version >= 4.3)
  const body = version >= 4 ? nestNames(pairs) : pairs
  return version < 3 && Object.keys(body).length === 0 ? {} : { body }
}

/** The fields of a body: a dot in a name leads into an object. */
function nestNames(pairs: Fields): Fields {
  const body: Fields = {}
  for (const [name, value] of Object.entries(pairs)) {
    const keys = name.split('.')
    let at = body
    for (const key of keys.slice(0, -1)) {
      const inner = Object.hasOwn(at, key) && isObject(at[key]) ? at[key] : {}
      setOwn(at, key, inner)
      at = inner
    }
    setOwn(at, keys.at(-1)!, value)
  }
  return body
}

/** How the response becomes items, and what else the node's options say. */
function readOptions({ parameters, version }: SourceNode, report: ProblemReporter): Fields {
  const options = isObject(parameters.options) ? parameters.options : {}
  const { response, timeout, pagination, batching, redirect, queryParameterArrays, ...rest } = options
  const { fullResponse, neverError, responseFormat, outputPropertyName } = {
    fullResponse: options.fullResponse,
    neverError: options.ignoreResponseCode,
    responseFormat: version < 3 ? parameters.responseFormat : undefined,
    outputPropertyName: version < 3 ? parameters.dataPropertyName : undefined,
    ...Object(Object(response).response),
  }
  const pages = readPagination(pagination, neverError, report)
  for (const [key, value] of Object.entries(rest)) {
    if (!QUIET.has(key)) reportMissingOption(report, `parameters.options.${key}`, value)
  }
  if (Object(Object(batching).batch).batchInterval > 0)
    reportMissingOption(report, 'parameters.options.batching', batching)
  if (redirect !== undefined) reportRedirect(redirect, report)
  const format =
    responseFormat === 'json' || responseFormat === 'file'
      ? responseFormat
      : /^(text|string)$/.test(String(responseFormat))
        ? 'text'
        : 'auto'
  const repeats = { repeat: 'brackets', indices: 'indices' }[String(queryParameterArrays)]
  if (repeats) reportMissingOption(report, 'parameters.options.queryParameterArrays', queryParameterArrays)
  const shape = {
    format: version < 3 && responseFormat === undefined ? 'json' : format,
    ...(fullResponse === true ? { full: true } : {}),
    ...(neverError === true ? { neverError: true } : {}),
    ...(outputPropertyName ? { field: String(plainText(outputPropertyName)) } : {}),
  }
  return {
    response: pages ? shapePages(shape) : shape,
    ...(pages ? { pagination: pages } : {}),
    ...(timeout === undefined
      ? {}
      : { timeoutMs: isTemplate(timeout) ? timeout : Number(plainText(timeout)) || 10_000 }),
  }
}

/** Options that make no difference here. */
const QUIET = new Set([
  'fullResponse',
  'ignoreResponseCode',
  'lowercaseHeaders',
  'sendCredentialsOnCrossOriginRedirect',
  'allowUnauthorizedCerts',
  'useStream',
])

function reportRedirect(redirect: unknown, report: ProblemReporter): void {
  if (Object(Object(redirect).redirect).followRedirects !== false) return
  const message = 'n8n does not follow redirects here. Perdure follows them: check that the node may do so.'
  report('parameter', 'parameters.options.redirect', message, redirect)
}
