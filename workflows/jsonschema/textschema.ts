import type { Problem } from '../problem.ts'
import { findFormFaults, type SchemaPlace, writePlace } from './form.ts'
import { MAX_SCHEMA } from './schema.ts'

const MAX_NAMED = 20
/**
 * The kinds of values in a schema: schemas, schemas by names of the author, values to be equal to, values without
 * meaning.
 */
type KeywordHolds = 'schema' | 'names' | 'values' | 'notes'
const WITHIN = new Map<string, KeywordHolds>([
  ...['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'].map(
    (key): [string, KeywordHolds] => [key, 'names'],
  ),
  ['const', 'values'],
  ['enum', 'values'],
  ['default', 'notes'],
  ['examples', 'notes'],
])
/** The keywords that the library takes out of data, too: values would be compared with the rest. */
const RESERVED = new Set(['$id', '$anchor', '$dynamicAnchor'])
const DRAFTS = /^https?:\/\/json-schema\.org\/(?:draft\/(?:2020-12|2019-09)|draft-07)\/schema#?$/

/**
 * The faults of a JSON Schema for texts, each with its path in there; an empty list if none is seen. It is of the draft
 * that `$schema` names, 2020-12, 2019-09 or 07. Faults that only show when it is read, such as a reference that leads
 * nowhere or a pattern that RE2 does not know, are left to `fitText`.
 */
export function checkTextSchema(schema: Record<string, unknown>): Problem[] {
  if (JSON.stringify(schema).length > MAX_SCHEMA)
    return [{ path: '', message: `must have at most ${MAX_SCHEMA} characters of JSON` }]
  const problems: Problem[] = []
  // The library reads data as a schema, too: keywords that it would obey there are refused.
  const visit = (value: unknown, place: SchemaPlace, what: KeywordHolds): void => {
    if (typeof value !== 'object' || value === null) return
    for (const [key, child] of Object.entries(value)) {
      if (problems.length >= MAX_NAMED) return
      const at = { up: place, key: Array.isArray(value) ? Number(key) : key }
      const fault = what === 'names' ? undefined : judgeKey(key, child, value, what)
      if (fault) problems.push({ path: writePlace(at), message: fault })
      else
        visit(child, at, what === 'schema' ? (WITHIN.get(key) ?? what) : what === 'names' ? 'schema' : what)
    }
  }
  visit(schema, undefined, 'schema')
  for (const fault of findFormFaults(schema))
    if (problems.every(({ path }) => path !== fault.path)) problems.push(fault)
  return problems.slice(0, MAX_NAMED)
}

function judgeKey(key: string, child: unknown, holder: object, what: KeywordHolds): string | undefined {
  if (key === '$schema' && typeof child === 'string' && !DRAFTS.test(child))
    return 'must be the draft 2020-12, 2019-09 or 07'
  if (key === '$vocabulary' && (what === 'schema' ? typeof child === 'object' : bringsVocabulary(holder)))
    return 'must be left out: only the vocabularies of the drafts are known'
  if (what === 'values' && RESERVED.has(key) && typeof child === 'string')
    return "must not stand in a value: it would be read as the schema's own"
  return undefined
}

/**
 * Whether something in a schema says which vocabularies a dialect of that address has: the library would then read all
 * schemas of the address so, also those of other teams.
 */
export function bringsVocabulary(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null) return false
  if (Object.hasOwn(schema, '$id') && Object.hasOwn(schema, '$vocabulary')) return true
  return Object.values(schema).some(bringsVocabulary)
}
