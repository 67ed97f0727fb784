import { toJsonSchema } from '@valibot/to-json-schema'
import type * as v from 'valibot'
import { EXAMPLE_ID } from '../http/responses.ts'

export type JsonSchema = { [key: string]: unknown }

/** The beginning of every reference to a component of the document. */
const REF = '#/components/schemas/'

/**
 * Converts Valibot schemas to JSON Schema 2020-12, as seen by a client: of a schema's input, not its parsed
 * output. A schema with a title becomes a component, and a reference takes its place. Metadata from
 * `documentAs` replaces its schema. `convert` throws if two different schemas have the same title.
 */
export function createSchemaConverter() {
  const components: Record<string, JsonSchema> = {}

  function convert(schema: v.GenericSchema): JsonSchema {
    return polish(translateSchema(schema)) as JsonSchema
  }

  function polish(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(polish)
    if (typeof value !== 'object' || value === null) return value
    const { documentAs, ...rest } = value as JsonSchema
    if (documentAs) {
      const { default: byDefault, description, examples } = rest
      const replacement = documentAs as JsonSchema
      const kept = { default: readDefault(replacement, byDefault), description, examples }
      return polish({ ...replacement, ...dropUndefined(kept) })
    }
    const { title, ...polished } = Object.fromEntries(
      Object.entries(rest).map(([key, item]) => [key, KEPT.has(key) ? item : polish(item)]),
    )
    if (Array.isArray(polished.required) && polished.required.length === 0) delete polished.required
    if (typeof title !== 'string') return title === undefined ? polished : { title, ...polished }
    return refer(title, polished)
  }

  function refer(title: string, schema: JsonSchema): JsonSchema {
    const known = components[title]
    if (known && JSON.stringify(known) !== JSON.stringify(schema)) {
      throw new Error(`Two different schemas have the title ${title}`)
    }
    components[title] = schema
    return { $ref: REF + title }
  }

  return { convert, components }
}

export type SchemaConverter = ReturnType<typeof createSchemaConverter>

/** The JSON Schema of a schema's input, without components. `documentAs` describes what functions check. */
export function translateSchema(schema: v.GenericSchema): JsonSchema {
  const { $schema: _, ...json } = toJsonSchema(schema, {
    target: 'draft-2020-12',
    typeMode: 'input',
    errorMode: 'ignore',
    overrideSchema: ({ valibotSchema, jsonSchema }) => {
      if (valibotSchema.type === 'custom') return { type: 'object' }
      return valibotSchema.type === 'loose_object' ? { ...jsonSchema, additionalProperties: true } : undefined
    },
  })
  return json
}

/** The schema itself, or the component that it refers to. */
export function resolveSchema(schema: JsonSchema, components: Record<string, JsonSchema>): JsonSchema {
  const { $ref } = schema
  return typeof $ref === 'string' ? components[$ref.slice(REF.length)]! : schema
}

/** A value that matches the schema: its example, else its default, else a simple value of its type. */
export function makeSample(given: JsonSchema, components: Record<string, JsonSchema>, name = ''): unknown {
  const schema = resolveSchema(given, components)
  if (Array.isArray(schema.examples)) return schema.examples[0]
  if (schema.default !== undefined) return schema.default
  if ('const' in schema) return schema.const
  if (Array.isArray(schema.enum)) return schema.enum.includes('SUCCESS') ? 'SUCCESS' : schema.enum[0]
  const [choice] = (schema.anyOf ?? schema.oneOf ?? []) as JsonSchema[]
  if (choice && schema.properties === undefined) return makeSample(choice, components, name)
  if (schema.type === 'object') {
    const properties = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>)
    return Object.fromEntries(properties.map(([key, item]) => [key, makeSample(item, components, key)]))
  }
  if (schema.type === 'array')
    return schema.items ? [makeSample(schema.items as JsonSchema, components, name)] : []
  if (schema.type === 'integer' || schema.type === 'number') return schema.minimum ?? 1
  if (schema.type === 'boolean') return true
  if (schema.type !== 'string') return null
  return SAMPLES[schema.format as string] ?? (name || 'text')
}

const SAMPLES: Record<string, string> = {
  uuid: EXAMPLE_ID,
  'date-time': '2026-11-21T09:30:00.000Z',
  email: 'ada@example.com',
}

/** Keys of a JSON Schema whose values are data, not schemas. */
const KEPT = new Set(['examples', 'default', 'const', 'enum', 'required'])

// Valibot has the default of a query parameter as a string, even if the document shows an integer.
function readDefault(schema: JsonSchema, value: unknown): unknown {
  return schema.type === 'integer' && typeof value === 'string' ? Number(value) : value
}

function dropUndefined(fields: JsonSchema): JsonSchema {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}
