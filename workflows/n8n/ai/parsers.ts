import { isObject } from '../../json.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { isTemplate, plainText } from '../texts.ts'
import { type Fields, objectOf } from './asking.ts'

/** How n8n's node reads the answer of its model: by a schema, or as a list of lines; undefined as a text. */
export type ReadParser =
  | { schema: Fields; node: SourceNode }
  | { list: { instructions: string; separator: string; items: number | undefined }; node: SourceNode }
  | undefined

/** The output parser that is attached to a node. */
export function readParser(tools: MapperTools): ReadParser {
  const [parser] = tools.attached('ai_outputParser')
  return parser && readOne(parser, tools)
}

/** As readParser, for a node of which an answer by a schema is all that can be asked for. */
export function readSchemaParser(tools: MapperTools): Fields | undefined {
  const parser = readParser(tools)
  if (parser && 'list' in parser)
    throw new Error(`Perdure has no parser like "${parser.node.fullType}" for this node`)
  return parser?.schema
}

function readOne(parser: SourceNode, tools: MapperTools): ReadParser {
  const { parameters } = parser
  switch (parser.type) {
    case 'outputParserStructured':
      if (parameters.autoFix === true) reportFixing(parser, tools)
      tools.reportOf(parser)(
        'parameter',
        'parameters',
        'n8n tells the model the schema in its prompt. Perdure asks the vendor for JSON by the schema: the model may word ' +
          'its answer in another way.',
        parameters,
      )
      return { schema: readSchema(parameters, parameters.jsonSchema), node: parser }
    case 'outputParserAutofixing': {
      const [inner] = tools.attached('ai_outputParser', parser)
      if (!inner) throw new Error(`no parser is attached to its parser "${parser.name}"`)
      reportFixing(parser, tools)
      return readOne(inner, tools)
    }
    case 'outputParserItemList':
      return { list: readList(parameters), node: parser }
  }
  throw new Error(`Perdure has no parser like "${parser.fullType}"`)
}

function reportFixing(parser: SourceNode, tools: MapperTools): void {
  const message =
    'n8n has a second model mend an answer that does not fit. Perdure asks the model of the node once more, with what is ' +
    'wrong, and fails the attempt if that does not fit either.'
  const [model] = tools.attached('ai_languageModel', parser)
  tools.reportOf(parser)('parameter', 'ai_languageModel', message, model?.name ?? null)
}

const DEFAULT_ITEMS = 3

/** What n8n tells the model of the list that it expects, word by word. */
function readList(parameters: Fields): {
  instructions: string
  separator: string
  items: number | undefined
} {
  const { numberOfItems = DEFAULT_ITEMS, separator: given = '\n' } = objectOf(parameters.options)
  if (isTemplate(given) || isTemplate(numberOfItems))
    throw new Error('an expression says how its parser reads a list')
  const separator = String(given) === '\\n' ? '\n' : (plainText(given) ?? '')
  if (separator === '') throw new Error('its parser has no separator')
  const items = Number(numberOfItems) > 0 ? Math.floor(Number(numberOfItems)) : undefined
  const examples = Array.from({ length: Math.min(items ?? DEFAULT_ITEMS, 100) }, (_, at) => `item${at + 1}`)
  const instructions =
    `Your response should be a list of ${items === undefined ? '' : `${items} `}items separated by "${separator}" ` +
    `(for example: "${examples.join(separator)}")`
  return { instructions, separator, items }
}

/** Code that makes an item of each entry of a list that a model has answered with; failed items go on as they are. */
export function writeListCode({
  separator,
  items,
}: {
  separator: string
  items: number | undefined
}): string {
  return `const separator = ${JSON.stringify(separator)}
return $input.all().flatMap((item) => {
  if (item.json.error !== undefined || typeof item.json.text !== 'string') return [item]
  const list = item.json.text.split(separator).map((one) => one.trim()).filter((one) => one)
${
  items === undefined
    ? '  return list.map((text) => ({ json: { text } }))'
    : `  if (list.length < ${items}) throw new Error(\`Wrong number of items returned. Expected ${items} items but got \${list.length} items instead.\`)
  return list.slice(0, ${items}).map((text) => ({ json: { text } }))`
}
})`
}

/** A schema, or one that is made of an example as n8n makes it. */
export function readSchema(
  { schemaType, jsonSchemaExample, inputSchema }: Fields,
  old?: unknown,
): Record<string, unknown> {
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
  return schema
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
