import {
  compileSchema,
  type Draft,
  draft04,
  draft06,
  draft07,
  draft2019,
  draft2020,
} from 'json-schema-library'
import { isObject } from '../json.ts'
import { joinPath, type Problem } from '../problem.ts'
import { findFormFaults, type SchemaPlace, writePlace } from './form.ts'
import { isLargeNumber, isLargeOf } from './largeinteger.ts'

/** The most characters of JSON that a schema may have, and how deep its values may lie. */
export const MAX_SCHEMA = 65_536
const MAX_SCHEMA_DEPTH = 100

/** The number of faults of a schema that are named. */
const MAX_NAMED = 20

/** Keywords whose values are references, and those whose values are data, in which a `$ref` is not a reference. */
const REFERENCES = new Set(['$ref', '$dynamicRef', '$recursiveRef'])
const DATA = new Set(['const', 'enum', 'default', 'examples'])
/** Keywords whose values are objects of schemas by names of the author. */
const NAMED = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'])

/** Keywords of which a number that is too large to be held has to fit all, too. */
const COMPARED = new Set(['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'])

/** The drafts, of which a schema names one by `$schema`: without it, it is of the last. */
const DRAFTS = [draft04, draft06, draft07, draft2019, draft2020].map(withOwnProperties).map(withLargeNumbers)

/** The draft, but for the library's fault that a value's `constructor` is a property of every schema. */
function withOwnProperties(draft: Draft): Draft {
  const keywords = draft.keywords.map((keyword) => {
    const { parse } = keyword
    if (keyword.keyword !== 'properties' || !parse) return keyword
    const parseOwn: typeof parse = (node) => {
      const errors = parse(node)
      if (node.properties) node.properties = Object.assign(Object.create(null), node.properties)
      return errors
    }
    return { ...keyword, parse: parseOwn }
  })
  return { ...draft, keywords }
}

/** The draft, but for numbers that came as texts of their digits: those fit where a number is wanted. */
function withLargeNumbers(draft: Draft): Draft {
  const keywords = draft.keywords.map((keyword) => {
    const { validate } = keyword
    const name = keyword.keyword
    if (!validate || (name !== 'type' && !COMPARED.has(name))) return keyword
    const validateLarge: typeof validate = (options) => {
      const { data, node } = options
      if (name !== 'type') return validate(isLargeNumber(data) ? { ...options, data: Number(data) } : options)
      const fits = [node.schema.type].flat().some((type) => isLargeOf(type, data))
      return fits ? undefined : validate(options)
    }
    return { ...keyword, validate: validateLarge }
  })
  return { ...draft, keywords }
}

/** Reads a schema for the library that interprets it: no code is compiled. It may throw for one not checked before. */
export function readJsonSchema(schema: Record<string, unknown>): ReturnType<typeof compileSchema> {
  return compileSchema(schema, { drafts: DRAFTS })
}

/**
 * The faults of a JSON Schema, each with its path in there; an empty list if it can be used. Without `$schema` it is
 * one of the draft 2020-12; drafts 4 to 2019-09 are known too. References may only lead into the schema itself. Faults
 * that only show when the library reads the schema are left to `demandSchema`, in an evaluator process.
 */
export function checkJsonSchema(schema: unknown): Problem[] {
  if (!isObject(schema)) return [{ path: '', message: 'must be a JSON Schema, which is an object' }]
  if (isDeeper(schema, MAX_SCHEMA_DEPTH))
    return [{ path: '', message: `must not have more than ${MAX_SCHEMA_DEPTH} levels` }]
  if (JSON.stringify(schema).length > MAX_SCHEMA)
    return [{ path: '', message: `must have at most ${MAX_SCHEMA} characters of JSON` }]
  const problems = findForeignReferences(schema)
  for (const fault of findFormFaults(schema))
    if (problems.every(({ path }) => path !== fault.path)) problems.push(fault)
  return problems.slice(0, MAX_NAMED)
}

/** Looks no deeper than that, so that it cannot overflow the stack itself. */
function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((child) => isDeeper(child, levels - 1))
}

function findForeignReferences(schema: unknown): Problem[] {
  const problems: Problem[] = []
  const visit = (value: unknown, place: SchemaPlace, named: boolean): void => {
    if (problems.length >= MAX_NAMED || typeof value !== 'object' || value === null) return
    if (Array.isArray(value)) {
      for (const [key, child] of value.entries()) visit(child, { up: place, key }, false)
      return
    }
    for (const [key, child] of Object.entries(value)) {
      if (named) visit(child, { up: place, key }, false)
      else if (DATA.has(key)) continue
      else if (REFERENCES.has(key) && typeof child === 'string' && !child.startsWith('#'))
        problems.push({
          path: writePlace({ up: place, key }),
          message: 'must begin with #: schemas from elsewhere are not loaded',
        })
      else visit(child, { up: place, key }, NAMED.has(key))
    }
  }
  visit(schema, undefined, false)
  return problems
}

/**
 * The path, as problems write it, to which a JSON pointer such as `#/items/0/name` leads within a value: the parts
 * that are indexes of arrays become `[0]`.
 */
export function findPath(value: unknown, pointer: string): string {
  let path = ''
  let at = value
  for (const part of pointer.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    // The library does not escape names: of one with a slash only its place is told, and no piece of it.
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) break
    path = joinPath(path, Array.isArray(at) ? Number(key) : key)
    at = (at as Record<string, unknown>)[key]
  }
  return path
}
