import type { JsonError } from 'json-schema-library'
import { findPath, readJsonSchema } from '../../workflows/jsonschema/schema.ts'
import { nameType, quoteShort } from '../../workflows/problem.ts'

/** What a value lacks to fit a schema, each as `path: message`; or what is wrong with the schema itself. */
export type Fit = { problems: string[] } | { unusable: string }

/** So many problems are named: whoever mends them gets the others the next time. */
const MAX_NAMED = 20
const MAX_MESSAGE = 300

/**
 * Holds a value against a JSON Schema. Only for an evaluator process: a schema may have expressions and references that
 * take any time. The library interprets the schema, and compiles no code of it.
 */
export function validateJson(schema: unknown, value: unknown): Fit {
  try {
    const node = readJsonSchema(schema as Record<string, unknown>)
    const [fault] = node.schemaErrors ?? []
    if (fault) return { unusable: cut(fault.message) }
    const { errors } = node.validate(value)
    const unresolved = errors.find(({ code }) => code === 'ref-error')
    if (unresolved) return { unusable: cut(unresolved.message) }
    const named = errors.slice(0, MAX_NAMED).map((error) => {
      const path = findPath(value, String(error.data.pointer))
      return `${path === '' ? 'the value' : path}: ${cut(describe(error))}`
    })
    const more = errors.length - named.length
    return { problems: more > 0 ? [...named, `and ${more} more`] : named }
  } catch (error) {
    // A schema that refers to itself goes on until the stack is full.
    if (error instanceof RangeError && /call stack/.test(error.message))
      return { unusable: 'it is nested too deeply, or refers to itself without an end' }
    if (error instanceof RangeError) throw error
    return { unusable: cut(String(error)) }
  }
}

/** The library's messages name the place with a pointer, and quote whole values. */
function describe({ code, data, message }: JsonError): string {
  switch (code) {
    case 'type-error':
      return `must be ${[data.expected].flat().join(' or ')}, not ${nameType(data.value)}`
    case 'required-property-error':
      return `must have the property ${quoteShort(String(data.key))}`
    case 'no-additional-properties-error':
    case 'unevaluated-property-error':
      return 'is a property that the schema does not have'
    case 'enum-error':
      return `must be one of ${cut(JSON.stringify(data.values))}, not ${quote(data.value)}`
    case 'const-error':
      return `must be ${cut(JSON.stringify(data.expected))}, not ${quote(data.value)}`
    case 'pattern-error':
      return `must match the pattern ${quoteShort(String(data.description))}, which ${quote(data.value)} does not`
    case 'minimum-error':
      return `must be at least ${data.minimum}, not ${data.value}`
    case 'maximum-error':
      return `must be at most ${data.maximum}, not ${data.value}`
    case 'min-items-error':
    case 'min-items-one-error':
      return `must have at least ${data.minItems ?? 1} entries`
    case 'max-items-error':
      return `must have at most ${data.maximum ?? data.maxItems} entries`
    case 'any-of-error':
    case 'one-of-error':
      return `fits none of the schemas that it may have`
    case 'multiple-one-of-error':
      return 'fits more than one of the schemas of which it must fit one'
    default:
      return message
  }
}

function quote(value: unknown): string {
  return quoteShort(typeof value === 'string' ? value : JSON.stringify(value))
}

function cut(text: string): string {
  return text.length > MAX_MESSAGE ? `${text.slice(0, MAX_MESSAGE)}...` : text
}
