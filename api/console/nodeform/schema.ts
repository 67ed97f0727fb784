import { nameKey } from '../kit/names.ts'

/** The part of JSON Schema that the configs of nodes are described by. */
export type Schema = {
  type?: string
  title?: string
  description?: string
  default?: unknown
  const?: unknown
  enum?: readonly (string | number | boolean)[]
  anyOf?: readonly Schema[]
  oneOf?: readonly Schema[]
  properties?: Record<string, Schema>
  required?: readonly string[]
  additionalProperties?: Schema | boolean
  items?: Schema
  pattern?: string
  format?: string
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
}

/** The parts of the JSON Schema of a node that are the same for all types. */
export type NodeSchema = Record<string, Schema>

export type Kind =
  | 'any'
  | 'choice'
  | 'constant'
  | 'expression'
  | 'flag'
  | 'json'
  | 'list'
  | 'map'
  | 'number'
  | 'object'
  | 'text'
  | 'variants'

/** The control that edits a value of this schema. A schema that is not known here is edited as JSON. */
export function kindOfSchema(schema: Schema): Kind {
  const { type, properties, additionalProperties, items } = schema
  if (schema.const !== undefined) return 'constant'
  if (schema.enum) return 'choice'
  if (schema.anyOf || schema.oneOf) return 'variants'
  if (type === 'boolean') return 'flag'
  if (type === 'number' || type === 'integer') return 'number'
  // Names and ids are read before anything is computed.
  if (type === 'string') return schema.pattern || schema.format ? 'text' : 'expression'
  if (type === 'array') return items && Object.keys(items).length > 0 ? 'list' : 'json'
  if (type === 'object' && properties) return 'object'
  if (type === 'object') return additionalProperties === false ? 'json' : 'map'
  return Object.keys(schema).some((key) => !['title', 'description', 'default'].includes(key))
    ? 'json'
    : 'any'
}

/** Whether the control of a schema can show a value. What it cannot show is shown as JSON, and kept. */
export function canShow(schema: Schema, value: unknown): boolean {
  switch (kindOfSchema(schema)) {
    case 'choice':
      return schema.enum!.includes(value as string)
    case 'constant':
      return value === schema.const
    case 'flag':
      return typeof value === 'boolean'
    case 'number':
      return typeof value === 'number'
    case 'text':
    case 'expression':
      return typeof value === 'string'
    case 'list':
      return Array.isArray(value)
    case 'map':
    case 'object':
      return isRecord(value)
    default:
      return true
  }
}

/** The schema of a whole config; of one that has several forms, all that any of them has. */
export function flattenConfig(schema: Schema): Schema {
  if (schema.properties || !schema.anyOf) return schema
  const forms = schema.anyOf.map(flattenConfig)
  const due = forms.map(({ required = [] }) => required)
  return {
    type: 'object',
    properties: Object.assign({}, ...forms.map(({ properties }) => properties).reverse()),
    required: due[0]!.filter((key) => due.every((keys) => keys.includes(key))),
  }
}

/** The schemas that are offered where any value may be. */
const ANYTHING: readonly Schema[] = [
  { type: 'string' },
  { type: 'object' },
  { type: 'array', items: { anyOf: [{ type: 'string' }, {}] } },
  { type: 'number' },
  { type: 'boolean' },
  { title: 'JSON', type: 'json' },
]

/** The ways to give a value, of which one is chosen: flat, and with one text at most. */
export function listVariants(schema: Schema): readonly Schema[] {
  if (kindOfSchema(schema) === 'any') return ANYTHING
  // Null is the same as nothing: the field is empty then.
  const flat = (schema.anyOf ?? schema.oneOf ?? [schema]).flatMap((one) =>
    one.type === 'null' ? [] : one.anyOf ? listVariants(one) : [one],
  )
  const texts = flat.filter((one) => one.type === 'string' && !one.enum)
  const loosest = texts.find((one) => kindOfSchema(one) === 'expression') ?? texts[0]
  return flat.filter(
    (one, at) =>
      (!texts.includes(one) || one === loosest) &&
      flat.findIndex((other) => JSON.stringify(other) === JSON.stringify(one)) === at,
  )
}

/** Whether a value looks like one of this schema: enough to choose among variants. */
export function fits(schema: Schema, value: unknown): boolean {
  if (schema.const !== undefined) return value === schema.const
  if (schema.enum) return schema.enum.includes(value as string)
  if (schema.anyOf || schema.oneOf) return listVariants(schema).some((one) => fits(one, value))
  switch (schema.type) {
    case 'string':
      return typeof value === 'string'
    case 'boolean':
      return typeof value === 'boolean'
    case 'number':
    case 'integer':
      return typeof value === 'number'
    case 'array':
      return Array.isArray(value) && (!schema.items || value.every((one) => fits(schema.items!, one)))
    case 'object':
      return isRecord(value) && fitsObject(schema, value)
    default:
      return true
  }
}

function fitsObject({ properties, required = [] }: Schema, value: Record<string, unknown>): boolean {
  if (!properties) return true
  return Object.entries(properties).every(([key, inner]) =>
    // What names the kind decides; the rest may be half written.
    inner.const !== undefined ? value[key] === inner.const || !required.includes(key) : true,
  )
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The initial choice among variants: the one that the value has, else the usual one. */
export function chooseVariant(variants: readonly Schema[], value: unknown): number {
  if (value === undefined) {
    // Choices, numbers and tables have controls of their own; lists are usually computed.
    const own = variants.findIndex((one) =>
      ['choice', 'number', 'flag', 'map', 'object'].includes(kindOfSchema(one)),
    )
    const text = variants.findIndex((one) => kindOfSchema(one) === 'expression')
    return variants.length === 2 && own >= 0 && (text <= 0 || own === 0) ? own : Math.max(text, 0)
  }
  const named = variants.findIndex((one) => one.enum && fits(one, value))
  const found = named >= 0 ? named : variants.findIndex((one) => fits(one, value))
  return found >= 0 ? found : variants.length - 1
}

const SIMPLE = new Set<Kind>(['choice', 'number', 'flag', 'json', 'constant'])

/** What a variant is called in the choice; a text beside one control only is there for its expression. */
export function nameVariant(schema: Schema, all: readonly Schema[]): string {
  if (schema.title) return schema.title
  const named = Object.values(schema.properties ?? {}).find((inner) => typeof inner.const === 'string')
  if (named) return nameKey(String(named.const).toLowerCase())
  switch (kindOfSchema(schema)) {
    case 'constant':
      return nameKey(String(schema.const))
    case 'choice':
      return 'Choice'
    case 'expression':
    case 'text':
      return all.length === 2 && all.some((one) => SIMPLE.has(kindOfSchema(one))) ? 'Expression' : 'Text'
    case 'number':
      return 'Number'
    case 'flag':
      return 'Yes or no'
    case 'list':
      return 'List'
    case 'map':
      return 'Keys and values'
    case 'object':
      return 'Fields'
    default:
      return 'JSON'
  }
}

/** What a new value of the schema holds: as little as it may. */
export function startValue(schema: Schema): unknown {
  if (schema.const !== undefined) return schema.const
  switch (kindOfSchema(schema)) {
    case 'choice':
      return schema.default ?? schema.enum![0]
    case 'flag':
      return schema.default ?? false
    case 'number':
      return schema.default ?? schema.minimum ?? 0
    case 'list':
      return []
    case 'json':
      return schema.type === 'array' ? [] : {}
    case 'map':
      return {}
    case 'object': {
      const due = Object.entries(schema.properties!).filter(
        ([key, inner]) => schema.required?.includes(key) && kindOfSchema(inner) !== 'any',
      )
      return Object.fromEntries(due.map(([key, inner]) => [key, startValue(inner)]))
    }
    case 'variants':
      return startValue(listVariants(schema)[0]!)
    default:
      return ''
  }
}
