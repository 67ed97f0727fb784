import { isObject } from '../json.ts'
import { joinPath, type Problem } from '../problem.ts'
import { decodeUriPart } from '../texts.ts'

/** The most faults of a schema that are named. */
const MAX_NAMED = 20

const TYPES = new Set(['null', 'boolean', 'number', 'integer', 'string', 'array', 'object'])

/**
 * The form that the value of a keyword must have. The drafts differ in some: a value that one of them allows is
 * allowed.
 */
const NUMBERS = ['minimum', 'maximum', 'multipleOf']
const LIMITS = ['exclusiveMinimum', 'exclusiveMaximum']
const COUNTS = ['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties']
const BOUNDS = ['minContains', 'maxContains']
const TEXTS = ['$ref', '$dynamicRef', '$recursiveRef', '$id', '$anchor', '$schema', 'format', 'pattern']
const ONE = [
  'not',
  'if',
  'then',
  'else',
  'contains',
  'propertyNames',
  'additionalProperties',
  'additionalItems',
]
const ONE_LATER = ['unevaluatedItems', 'unevaluatedProperties']
const LISTS = ['allOf', 'anyOf', 'oneOf', 'prefixItems']
const NAMED = ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']

type Check = (value: unknown, visit: Visit) => string | undefined
/** Looks at a schema within the value of a keyword, there at `key`. */
type Visit = (schema: unknown, key?: string | number) => void

/** Where something is in a schema: written only if something is wrong there. */
export type SchemaPlace = { up: SchemaPlace; key: string | number } | undefined

export function writePlace(place: SchemaPlace): string {
  const keys: (string | number)[] = []
  for (let at = place; at; at = at.up) keys.unshift(at.key)
  return keys.reduce<string>(joinPath, '')
}

const isTexts = (value: unknown) => Array.isArray(value) && value.every((one) => typeof one === 'string')
const isSchema = (value: unknown) => typeof value === 'boolean' || isObject(value)

const CHECKS = new Map<string, Check>([
  ...entries(NUMBERS, (value) => (typeof value === 'number' ? undefined : 'must be a number')),
  ...entries(LIMITS, (value) =>
    typeof value === 'number' || typeof value === 'boolean' ? undefined : 'must be a number',
  ),
  ...entries([...COUNTS, ...BOUNDS], (value) =>
    Number.isInteger(value) && Number(value) >= 0 ? undefined : 'must be a whole number of at least 0',
  ),
  ...entries(TEXTS, (value) => (typeof value === 'string' ? undefined : 'must be a string')),
  ...entries(['uniqueItems'], (value) => (typeof value === 'boolean' ? undefined : 'must be true or false')),
  ...entries(['enum'], (value) => (Array.isArray(value) ? undefined : 'must be an array')),
  ...entries(['type'], checkType),
  ...entries(['required'], (value) => (isTexts(value) ? undefined : 'must be an array of strings')),
  ...entries([...ONE, ...ONE_LATER], (value, visit) => void visit(value)),
  ...entries(['items'], (value, visit) => {
    if (Array.isArray(value)) value.forEach((one, at) => void visit(one, at))
    else visit(value)
    return undefined
  }),
  ...entries(LISTS, (value, visit) => {
    if (!Array.isArray(value)) return 'must be an array of schemas'
    value.forEach((one, at) => void visit(one, at))
    return undefined
  }),
  ...entries(NAMED, (value, visit) => {
    if (!isObject(value)) return 'must be an object of schemas'
    for (const [name, one] of Object.entries(value)) visit(one, name)
    return undefined
  }),
  ...entries(['dependentRequired'], (value) =>
    isObject(value) && Object.values(value).every(isTexts)
      ? undefined
      : 'must be an object of arrays of strings',
  ),
  ...entries(['dependencies'], (value, visit) => {
    if (!isObject(value)) return 'must be an object of schemas and arrays of strings'
    for (const [name, one] of Object.entries(value)) if (!isTexts(one)) visit(one, name)
    return undefined
  }),
])

function entries(names: string[], check: Check): [string, Check][] {
  return names.map((name) => [name, check])
}

function checkType(value: unknown): string | undefined {
  const names = Array.isArray(value) ? value : [value]
  const fits = names.every((name) => typeof name === 'string' && TYPES.has(name))
  return fits ? undefined : `must be one of ${[...TYPES].join(', ')}, or an array of those`
}

/**
 * The parts of a JSON Schema that do not have the form of one, each with its path, at most 20. It takes a time that
 * grows with the length of the schema only, and less than the library that interprets it by far: that runs in evaluator
 * processes.
 */
export function findFormFaults(schema: Record<string, unknown>): Problem[] {
  const problems: Problem[] = []
  const fault = (place: SchemaPlace, message: string) => {
    problems.push({ path: writePlace(place), message: `is no JSON Schema: ${message}` })
  }
  // References lead from the nearest schema around them that has an id.
  const visit = (given: unknown, place: SchemaPlace, around: Record<string, unknown>): void => {
    if (problems.length >= MAX_NAMED) return
    if (!isSchema(given)) fault(place, 'must be an object, or true or false')
    if (!isObject(given)) return
    const base = typeof given.$id === 'string' ? given : around
    for (const [key, value] of Object.entries(given)) {
      const check = CHECKS.get(key)
      if (!check) continue
      const at: SchemaPlace = { up: place, key }
      const message = check(value, (one, within) =>
        visit(one, within === undefined ? at : { up: at, key: within }, base),
      )
      if (message) fault(at, message)
      else if (key === 'pattern') checkPattern(value as string, at)
      else if (key === 'patternProperties')
        for (const name of Object.keys(value as object)) checkPattern(name, { up: at, key: name })
      else if (key === '$ref' && !leadsSomewhere(base, value as string))
        fault(at, 'leads to nothing in the schema')
    }
  }
  const checkPattern = (pattern: string, at: SchemaPlace): void => {
    if (problems.length >= MAX_NAMED) return
    try {
      new RegExp(pattern, 'u')
    } catch (error) {
      fault(at, (error as Error).message.slice(0, 300))
    }
  }
  visit(schema, undefined, schema)
  return problems
}

/** Whether a reference by a pointer, such as `#/$defs/line`, leads to a value. Others are found when it is used. */
function leadsSomewhere(schema: unknown, reference: string): boolean {
  if (!reference.startsWith('#/')) return true
  let at = schema
  for (const part of reference.slice(2).split('/')) {
    const key = decodeUriPart(part).replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return false
    at = (at as Record<string, unknown>)[key]
  }
  return true
}
