import { toJsonSchema } from '@valibot/to-json-schema'
import type * as v from 'valibot'
import { EXAMPLE_ID } from './answers.ts'

export type JsonSchema = { [key: string]: unknown }

/** A document's own name for its components. */
const REF = '#/components/schemas/'

/**
 * Converts Valibot schemas to JSON Schema 2020-12, as what a client sends. What has a title becomes a component
 * and is referred to. `shown` metadata stands in for what it is on. Throws where two components share a name.
 */
export function createConverter() {
  const components: Record<string, JsonSchema> = {}

  function convert(schema: v.GenericSchema): JsonSchema {
    return polish(translate(schema)) as JsonSchema
  }

  function polish(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(polish)
    if (typeof value !== 'object' || value === null) return value
    const { shown, ...rest } = value as JsonSchema
    if (shown) {
      const { default: preset, description, examples } = rest
      const given = { default: readPreset(shown as JsonSchema, preset), description, examples }
      return polish({ ...(shown as JsonSchema), ...dropUndefined(given) })
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
      throw new Error(`two different schemas are called ${title}`)
    }
    components[title] = schema
    return { $ref: REF + title }
  }

  return { convert, components }
}

/** Plain JSON Schema of what a client sends. Checks by a function have none: saying what matters of them is `shown`'s. */
export function translate(schema: v.GenericSchema): JsonSchema {
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

/** The schema itself, behind a reference. */
export function resolve(schema: JsonSchema, components: Record<string, JsonSchema>): JsonSchema {
  const { $ref } = schema
  return typeof $ref === 'string' ? components[$ref.slice(REF.length)]! : schema
}

/** One value that fits the schema: its example, else its default, else the plainest. */
export function sample(given: JsonSchema, components: Record<string, JsonSchema>, name = ''): unknown {
  const schema = resolve(given, components)
  if (Array.isArray(schema.examples)) return schema.examples[0]
  if (schema.default !== undefined) return schema.default
  if ('const' in schema) return schema.const
  if (Array.isArray(schema.enum)) return schema.enum.includes('SUCCESS') ? 'SUCCESS' : schema.enum[0]
  const [choice] = (schema.anyOf ?? schema.oneOf ?? []) as JsonSchema[]
  if (choice && schema.properties === undefined) return sample(choice, components, name)
  if (schema.type === 'object') {
    const properties = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>)
    return Object.fromEntries(properties.map(([key, item]) => [key, sample(item, components, key)]))
  }
  if (schema.type === 'array')
    return schema.items ? [sample(schema.items as JsonSchema, components, name)] : []
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

/** Values of the user's, not schemas. */
const KEPT = new Set(['examples', 'default', 'const', 'enum', 'required'])

// A query's default is the text of what the document shows.
function readPreset(shown: JsonSchema, preset: unknown): unknown {
  return shown.type === 'integer' && typeof preset === 'string' ? Number(preset) : preset
}

function dropUndefined(fields: JsonSchema): JsonSchema {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}
