import type { Schema } from '../schema.ts'

export type Special = 'code' | 'condition' | 'credential' | 'json' | 'sql' | 'timezone' | 'whole' | 'workflow'

/** What a field is beyond its schema. */
export function specialOf(path: string, schema: Schema): Special | undefined {
  const key = lastKey(path.replace(/\[\d+\]$/, ''))
  // Keys that users write may have the same names, but take any text.
  const isText = schema.type === 'string' && schema.minLength !== undefined
  if (schema.format === 'uuid' && key === 'credentialId') return 'credential'
  const ids = [schema, ...(schema.anyOf ?? [])].some(({ format, pattern }) => format === 'uuid' || pattern)
  if (key.endsWith('orkflowId') && ids) return 'workflow'
  if (key === 'timezone' && schema.type === 'string' && (isText || schema.maxLength)) return 'timezone'
  if (isText && key === 'code') return 'code'
  if (isText && key === 'query') return 'sql'
  if (isText && key === 'expression') return 'whole'
  // A JSON Schema is written as one.
  if (['schema', 'jsonSchema', 'parameters'].includes(key) && schema.type === 'object' && !schema.properties)
    return 'json'
  const isCondition = (schema.anyOf ?? []).map((one) => one.type).join() === 'boolean,string'
  return isCondition ? 'condition' : undefined
}

/** Keys that users write may be empty. */
function lastKey(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1)
}

/** How many lines a text is likely to have. */
export function linesFor(path: string): number {
  const key = lastKey(path)
  if (['prompt', 'instructions', 'system', 'html', 'text', 'message', 'body', 'source'].includes(key))
    return 4
  return key === 'expression' ? 3 : 1
}
