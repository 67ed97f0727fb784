import { isObject } from '../../json.ts'
import { mapHttpRequest } from '../nodes/http.ts'
import { isTemplate, keepTexts, listObjects, parseCode, plainText } from '../texts.ts'
import type { Fields } from './asking.ts'
import { type ArgumentList, schemaOf, type ToolGiven, writeArgument } from './fromai.ts'

/** The keys of an HTTP_REQUEST that a tool has too. */
const TAKEN = [
  ...(['url', 'method', 'headers', 'query', 'body', 'contentType', 'timeoutMs'] as const),
  ...(['credentialId', 'needsCredential'] as const),
]

/** The HTTP Request node as a tool. */
export function mapHttpRequestTool(given: ToolGiven): Fields {
  const { node, args } = given
  const { toolDescription: _, descriptionType: __, options, ...set } = node.parameters
  const { response, optimizeResponse: ___, ...more } = isObject(options) ? options : {}
  const own = splitOptimizing(node.parameters)
  for (const [name, value] of Object.entries(own))
    given.report('parameter', `parameters.${name}`, OPTIMIZED, value)
  const { fullResponse: ____, neverError: _____, ...format } = Object(Object(response).response)
  const read = args.read({
    ...Object.fromEntries(Object.entries(set).filter(([name]) => !Object.hasOwn(own, name))),
    options: { ...more, response: { response: format } },
  }) as Fields
  return sendBy(given, { ...read, ...readJsonText(read, args.isTyped), ...readJsonList(read) })
}

const OPTIMIZED =
  'n8n shortens the response before it tells the model of it. Perdure tells it the first 64 KB of the response as it is.'

const OPTIMIZING = new Set(['optimizeResponse', 'responseType', 'dataField', 'fieldsToInclude', 'fields'])
const OPTIMIZING_MORE = new Set([
  'cssSelector',
  'onlyContent',
  'elementsToOmit',
  'truncateResponse',
  'maxLength',
])

/** The settings that shorten a response, if it is shortened. */
function splitOptimizing(parameters: Fields): Fields {
  const all = Object.entries(parameters).filter(([name]) => OPTIMIZING.has(name) || OPTIMIZING_MORE.has(name))
  return parameters.optimizeResponse === true ? Object.fromEntries(all) : {}
}

/** The tool that sends what an HTTP Request node with these parameters sends. */
function sendBy({ node, tools, report }: ToolGiven, parameters: Fields): Fields {
  const { config } = mapHttpRequest({ ...node, version: 4.2, parameters }, { ...tools, report })
  const { bodyType, response } = config
  if (bodyType === 'jsonText') throw new Error(TEXTS)
  const format = Object(response).format
  if (typeof config.url === 'string' && /\$args\b/.test(config.url)) {
    const message =
      'An argument within the URL is percent-encoded here, with its slashes too. n8n puts it in as it is.'
    report('parameter', 'parameters.url', message, node.parameters.url)
  }
  return {
    type: 'HTTP',
    ...Object.fromEntries(TAKEN.flatMap((key) => (config[key] === undefined ? [] : [[key, config[key]]]))),
    ...(bodyType === undefined ? {} : { bodyType }),
    ...(format === 'text' || format === 'json' ? { responseType: format } : {}),
  }
}

const JSON_TEXTS = {
  jsonBody: 'specifyBody',
  jsonQuery: 'specifyQuery',
  jsonHeaders: 'specifyHeaders',
} as const

/** JSON in whose text expressions stand, as values: an argument cannot change its structure then. */
function readJsonText(parameters: Fields, isTyped: ArgumentList['isTyped']): Fields {
  const read = Object.entries(JSON_TEXTS).flatMap(([key, how]) => {
    const text = parameters[key]
    if (parameters[how] !== 'json' || !isTemplate(text) || isAlone(text)) return []
    return [[key, parseTemplate(text, isTyped)]]
  })
  return Object.fromEntries(read)
}

/** Lists of names and values of which a name is an expression have none. */
function readJsonList(parameters: Fields): Fields {
  return parameters.contentType === 'multipart-form-data'
    ? raise('it sends files, and Perdure has no tool that does')
    : {}
}

function raise(message: string): never {
  throw new Error(message)
}

const TEXTS = 'expressions make its JSON of texts and not of values'

const isAlone = (text: string) => /^=\s*\{\{(?:(?!\}\})[\s\S])*\}\}\s*$/.test(text)

const PIECE = /\{\{((?:(?!\}\})[\s\S])*)\}\}/g

/**
 * JSON with expressions in its text as a value with expressions in it. Outside of strings n8n puts the text of a value
 * into the JSON, so that it is read as such, unless it is `typed`.
 */
function parseTemplate(text: string, isTyped: (source: string) => boolean): unknown {
  const sources: string[] = []
  let isQuoted = false
  let from = 1
  let json = ''
  for (const { index, 0: whole, 1: source = '' } of text.matchAll(PIECE)) {
    const before = text.slice(from, index)
    json += before
    isQuoted = endsInText(before, isQuoted)
    const own = source.trim()
    if (isQuoted && own.includes('JSON.stringify')) throw new Error(TEXTS)
    const value = isQuoted || isTyped(own) ? own : parseCode(own, 'a value of the body')
    const mark = `@@${sources.push(value) - 1}@@`
    json += isQuoted ? mark : `"${mark}"`
    from = index + whole.length
  }
  json += text.slice(from)
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch {
    throw new Error(TEXTS)
  }
  return restore(value, sources)
}

/** Whether a place after this part of a JSON text is within a string. */
function endsInText(part: string, within: boolean): boolean {
  let isWithin = within
  for (let i = 0; i < part.length; i++) {
    if (isWithin && part[i] === '\\') i++
    else if (part[i] === '"') isWithin = !isWithin
  }
  return isWithin
}

const MARK = /@@(\d+)@@/g

function restore(value: unknown, sources: string[]): unknown {
  if (Array.isArray(value)) return value.map((entry) => restore(entry, sources))
  if (isObject(value))
    return Object.fromEntries(
      Object.entries(value).map(([key, entry]) => {
        if (key.search(MARK) >= 0) throw new Error('an expression gives the name of a field of its JSON')
        return [key, restore(entry, sources)]
      }),
    )
  if (typeof value !== 'string' || value.search(MARK) < 0) return value
  return `=${value.replace(MARK, (_, at) => `{{ ${sources[Number(at)]} }}`)}`
}

const PARTS = { Query: 'qs', Headers: 'headers', Body: 'body' } as const
const DESCRIPTIONS = {
  qs: 'Query parameters for request as key value pairs',
  headers: 'Headers parameters for request as key value pairs',
  body: 'Body parameters for request as key value pairs',
}

type Placeholders = Map<string, Fields>

/** The older HTTP Request Tool: the model fills in placeholders, or gives parameters of their names. */
export function mapHttpTool(given: ToolGiven): Fields {
  const { node, args, report } = given
  const { parameters } = node
  const list = listObjects(Object(parameters.placeholderDefinitions).values)
  const placeholders: Placeholders = new Map(
    list.map((one) => [String(one.name ?? '').replace(/^\{(.*)\}$/, '$1'), one]),
  )
  const set: Fields = {
    url: fillIn(parameters.url ?? '', placeholders, args),
    method: parameters.method ?? 'GET',
    ...pickAuthentication(parameters),
  }
  for (const which of ['Query', 'Headers', 'Body'] as const) {
    if (parameters[`send${which}`] !== true) continue
    Object.assign(set, readPart(which, parameters, placeholders, args))
  }
  for (const [name, value] of Object.entries(splitOptimizing(parameters)))
    report('parameter', `parameters.${name}`, OPTIMIZED, value)
  return sendBy(given, set)
}

const pickAuthentication = ({ authentication, genericAuthType, nodeCredentialType }: Fields): Fields => ({
  ...{ authentication, genericAuthType, nodeCredentialType },
})

function readPart(
  which: keyof typeof PARTS,
  parameters: Fields,
  placeholders: Placeholders,
  args: ArgumentList,
): Fields {
  const name = PARTS[which]
  const how = parameters[`specify${which}`] ?? 'keypair'
  const base = { [`send${which}`]: true, [`specify${which}`]: how === 'keypair' ? 'keypair' : 'json' }
  if (how === 'model') {
    args.add({ name, description: DESCRIPTIONS[name], schema: { type: 'object' } })
    return { ...base, [`json${which}`]: `={{ ${writeArgument(name)} }}` }
  }
  if (how === 'json') {
    const text = fillIn(parameters[`json${which}`] ?? '', placeholders, args)
    const value =
      typeof text === 'string' && isTemplate(text) && !isAlone(text) ? parseTemplate(text, () => true) : text
    return { ...base, [`json${which}`]: value }
  }
  const pairs = listObjects(Object(parameters[`parameters${which}`]).values).flatMap((one) => {
    const key = plainText(one.name) ?? ''
    const { valueProvider = 'modelRequired', value = '' } = one
    if (key === '') return []
    if (valueProvider === 'fieldValue')
      return value === '' ? [] : [{ name: key, value: fillIn(value, placeholders, args) }]
    const optional = valueProvider !== 'modelRequired'
    addPlaceholder(key, placeholders, args, optional)
    return [{ name: key, value: `={{ ${writeArgument(key)} }}` }]
  })
  if (name === 'body') return { ...base, specifyBody: 'json', jsonBody: toObject(pairs) }
  return { ...base, [`${which === 'Query' ? 'query' : 'header'}Parameters`]: { parameters: pairs } }
}

const toObject = (pairs: { name: string; value: unknown }[]) =>
  keepTexts(Object.fromEntries(pairs.map(({ name, value }) => [name, value])))

function addPlaceholder(name: string, placeholders: Placeholders, args: ArgumentList, optional = false) {
  const { type, description } = placeholders.get(name) ?? {}
  const schema = type === 'json' ? { type: 'object' } : schemaOf(type === 'not specified' ? 'string' : type)
  args.add({
    name,
    schema,
    ...(description ? { description: String(description) } : {}),
    ...(optional ? { optional } : {}),
  })
}

/** A text with the model's arguments for its placeholders, `{name}`. */
function fillIn(value: unknown, placeholders: Placeholders, args: ArgumentList): unknown {
  if (typeof value !== 'string') return value
  const found = /(?<!\{)\{([A-Za-z0-9_-]{1,64})\}(?!\})/g
  if (value.search(found) < 0) return value
  const text = value.startsWith('=') ? value : `=${value}`
  return text.replace(found, (_, name: string) => {
    addPlaceholder(name, placeholders, args)
    return `{{ ${writeArgument(name)} }}`
  })
}
