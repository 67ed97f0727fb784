import type {
  ActionSchema,
  ConnectorAction,
  ConnectorStep,
  Parameter,
} from '../../../workflows/connectors/connector.ts'
import { isReading } from '../../../workflows/connectors/connector.ts'
import { isObject, setOwn } from '../../../workflows/json.ts'
import { placeBody } from './body.ts'
import { cut, fillServer, type InputPart, isJsonMedia, type OpenApiOptions, textOf } from './parts.ts'
import { type Doc, detach, resolve } from './refs.ts'

/** An operation of a document, with its path item. */
export type ApiOperation = { path: string; method: string; item: Doc; own: Doc }

const MAX_TEXT = 1_000

/** The action that an operation is. Throws an Error that says why it cannot be one. */
export function readOperation(
  doc: Doc,
  operation: ApiOperation,
  options: OpenApiOptions,
): { id: string; action: ConnectorAction } {
  const { path, method, item, own } = operation
  const id = nameAction(operation)
  const verb = method.toUpperCase() as ConnectorStep['method']
  const parameters = readParameters(doc, operation)
  const input: InputPart = { properties: {}, required: [] }
  for (const { property, schema, required } of parameters) {
    setOwn(input.properties, property, schema)
    if (required) input.required.push(property)
  }
  const body = placeBody(doc, own.requestBody, input)
  const answers = readAnswers(doc, own.responses)
  const server = [own.servers, item.servers]
    .map((one) => (Array.isArray(one) && isObject(one[0]) ? fillServer(one[0]) : undefined))
    .find((one) => one !== undefined)
  const isRepeatable = isReading(verb) || (options.repeatable ?? []).includes(id)
  const isPaged = options.paging === 'link' && verb === 'GET' && answers.isList
  if (isPaged)
    setOwn(input.properties, ALL_PAGES, {
      type: 'boolean',
      title: 'All pages',
      description: 'Reads all pages.',
    })
  const step: ConnectorStep = {
    name: 'answer',
    method: verb,
    path: (server ?? '') + path,
    ...(parameters.length > 0
      ? { parameters: parameters.map(({ schema: _, required: __, ...one }) => one) }
      : {}),
    ...body,
    ...(answers.isFile ? { answer: 'file' as const } : {}),
    ...(isPaged ? { pages: { next: 'link' as const, when: `$input.${ALL_PAGES}` } } : {}),
  }
  const schema = { type: 'object', ...input, additionalProperties: false }
  return {
    id,
    action: {
      name: cut(textOf(own.summary) ?? `${verb} ${path}`, 200),
      summary: cut(textOf(own.description) ?? textOf(own.summary) ?? `${verb} ${path}`, MAX_TEXT),
      input: detach(doc, schema),
      ...(answers.schema ? { output: detach(doc, answers.schema) } : {}),
      safety: isRepeatable ? 'REPEATABLE' : 'ONCE',
      steps: [step],
    },
  }
}

const ALL_PAGES = 'allPages'

function nameAction({ path, method, own }: ApiOperation): string {
  const given = textOf(own.operationId) ?? `${method}_${path}`
  return (
    given
      .replace(/[^A-Za-z0-9-]+/g, '_')
      .replace(/^_+|_+$/g, '')
      .slice(0, 100) || method
  )
}

/** Headers that are not a person's to set: what is sent and taken says the request itself, who asks the credential. */
const OWN_HEADERS = new Set(['accept', 'content-type', 'authorization'])

type Read = Parameter & { schema: ActionSchema; required: boolean }

function readParameters(doc: Doc, { item, own }: ApiOperation): Read[] {
  const found = new Map<string, Read>()
  for (const given of [item.parameters, own.parameters].flatMap((list) =>
    Array.isArray(list) ? list : [],
  )) {
    const one = resolve(doc, given)
    if (!one) throw new Error('has a parameter that refers to something that the document does not have')
    const read = readParameter(one)
    // Those of the operation replace those of its path.
    if (read) found.set(`${read.in} ${read.name}`, read)
  }
  const list = [...found.values()]
  for (const one of list) {
    const others = list.filter((other) => other.name === one.name)
    if (others.length > 1) one.property = `${one.name}_${one.in}`
  }
  return list
}

const PLACES = ['path', 'query', 'header', 'cookie']
const STYLES = { path: 'simple', query: 'form', header: 'simple', cookie: 'form' } as const
const KNOWN_STYLES = ['simple', 'label', 'matrix', 'form', 'spaceDelimited', 'pipeDelimited', 'deepObject']

function readParameter(one: Doc): Read | undefined {
  const place = one.in as Parameter['in']
  const name = textOf(one.name)
  if (!name || !PLACES.includes(place))
    throw new Error('has a parameter without a name, or in an unknown place')
  if (place === 'header' && OWN_HEADERS.has(name.toLowerCase())) return undefined
  const style = (KNOWN_STYLES.includes(String(one.style)) ? one.style : STYLES[place]) as Parameter['style']
  const content = isObject(one.content) ? Object.values(one.content)[0] : undefined
  const schema = isObject(content) ? content.schema : one.schema
  const told = textOf(one.description)
  const own = isObject(schema) ? schema : {}
  return {
    ...{ property: name, name, in: place, style },
    explode: typeof one.explode === 'boolean' ? one.explode : style === 'form',
    ...(isObject(content) ? { json: true as const } : {}),
    schema: {
      ...(own.$ref === undefined ? own : { allOf: [own] }),
      title: name,
      ...(told ? { description: cut(told, MAX_TEXT) } : {}),
    },
    required: place === 'path' || one.required === true,
  }
}

/** What an operation answers if all is well: a schema where it is JSON, a list of it, or a file. */
function readAnswers(doc: Doc, responses: unknown): { schema?: unknown; isList: boolean; isFile: boolean } {
  const good = Object.entries(isObject(responses) ? responses : {}).find(([status]) => /^2/.test(status))
  const content = good && resolve(doc, good[1])?.content
  if (!isObject(content)) return { isList: false, isFile: false }
  const types = Object.keys(content)
  const json = types.find(isJsonMedia)
  if (json === undefined) {
    const isFile = types.length > 0 && types.every((type) => !/^text\/|xml|\*\/\*/i.test(type))
    return { isList: false, isFile }
  }
  const { schema } = isObject(content[json]) ? content[json] : {}
  return { schema, isList: resolve(doc, schema)?.type === 'array', isFile: false }
}
