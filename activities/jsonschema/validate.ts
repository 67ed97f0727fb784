import type { JsonError } from 'json-schema-library'
import { findPath, readJsonSchema } from '../../workflows/jsonschema/schema.ts'
import { nameType, quoteShort } from '../../workflows/problem.ts'

/** What a value lacks to fit a schema, each as `path: message`; or what is wrong with the schema itself. */
export type Fit = { problems: string[] } | { unusable: string }

/** The number of problems that are named: the others are named once these are mended. */
const MAX_NAMED = 20
const MAX_MESSAGE = 300
const MAX_QUOTED = 100
const MAX_PATH = 500

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
      const place = path === '' ? 'the value' : path.length > MAX_PATH ? 'a place with a long name' : path
      return `${place}: ${describe(error)}`
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

/**
 * The problem at a place. The library's messages quote whole values; these quote only values of a few characters, and
 * cut none off: a secret in one could not be recognised by its beginning.
 */
function describe({ code, data }: JsonError): string {
  const limit = Object.entries(LIMITS).find(([name]) => name === code)?.[1]
  if (limit) return limit(data)
  const format = /^format-(.+)-error$/.exec(String(code))?.[1]
  if (format) return `must be a valid ${format}${but(data.value)}`
  const keyword = String(code)
    .replace(/-error$/, '')
    .replaceAll('-', ' ')
  return `does not fit the schema (${keyword})`
}

type Data = JsonError['data']

const LIMITS: Record<string, (data: Data) => string> = {
  'type-error': ({ expected, value }) => `must be ${[expected].flat().join(' or ')}, not ${nameType(value)}`,
  'required-property-error': ({ key }) => `must have the property ${quoteShort(String(key))}`,
  'missing-dependency-error': ({ missingProperty }) =>
    `must have the property ${quoteShort(String(missingProperty))}`,
  'no-additional-properties-error': () => 'is a property that the schema does not have',
  'unevaluated-property-error': () => 'is a property that the schema does not have',
  'unevaluated-items-error': () => 'is an entry that the schema does not have',
  'enum-error': ({ values, value }) => `must be one of ${cut(JSON.stringify(values))}${but(value)}`,
  'const-error': ({ expected, value }) => `must be ${cut(JSON.stringify(expected))}${but(value)}`,
  'pattern-error': ({ description }) => `must match the pattern ${quoteShort(String(description))}`,
  'minimum-error': ({ minimum, value }) => `must be at least ${minimum}${but(value)}`,
  'maximum-error': ({ maximum, value }) => `must be at most ${maximum}${but(value)}`,
  'exclusive-minimum-error': ({ minimum, value }) => `must be more than ${minimum}${but(value)}`,
  'exclusive-maximum-error': ({ maximum, value }) => `must be less than ${maximum}${but(value)}`,
  'multiple-of-error': ({ multipleOf, value }) => `must be a multiple of ${multipleOf}${but(value)}`,
  'min-length-error': ({ schema }) => `must have at least ${schema.minLength} characters`,
  'min-length-one-error': () => 'must not be empty',
  'max-length-error': ({ schema }) => `must have at most ${schema.maxLength} characters`,
  'min-items-error': ({ schema }) => `must have at least ${schema.minItems} entries`,
  'min-items-one-error': () => 'must have at least one entry',
  'max-items-error': ({ schema }) => `must have at most ${schema.maxItems} entries`,
  'unique-items-error': () => 'repeats another entry',
  'any-of-error': () => 'fits none of the schemas that it may have',
  'one-of-error': () => 'fits none of the schemas of which it must fit one',
  'multiple-one-of-error': () => 'fits more than one of the schemas of which it must fit one',
  'not-error': () => 'fits a schema that it must not fit',
}

/** The value that was found instead, if it is short enough to be quoted whole. */
function but(value: unknown): string {
  const text = JSON.stringify(value) ?? ''
  return text.length > MAX_QUOTED ? '' : `, not ${text}`
}

/** For what is the schema's own. */
function cut(text: string): string {
  return text.length > MAX_MESSAGE ? `${text.slice(0, MAX_MESSAGE)}...` : text
}
