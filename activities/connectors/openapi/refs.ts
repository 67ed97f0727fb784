import type { ActionSchema } from '../../../workflows/connectors/connector.ts'
import { isObject, setOwn } from '../../../workflows/json.ts'

export type Doc = Record<string, unknown>

/** The most characters of a schema with all that it refers to. Beyond that it takes any value. */
const MAX_SCHEMA = 65_536

/** How many references may follow each other. */
const MAX_CHAIN = 50

/** What a reference within the document leads to; undefined for one that leads nowhere. */
function follow(doc: Doc, ref: string): unknown {
  if (!ref.startsWith('#/')) return undefined
  let value: unknown = doc
  for (const part of ref.slice(2).split('/')) {
    const key = decode(part).replaceAll('~1', '/').replaceAll('~0', '~')
    const isOwn = typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    if (!isOwn) return undefined
    value = (value as Doc)[key]
  }
  return value
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** A value, or what its references lead to at last; undefined if that is nothing. */
export function resolve(doc: Doc, value: unknown): Doc | undefined {
  let found = value
  for (let count = 0; count < MAX_CHAIN; count++) {
    if (!isObject(found)) return undefined
    if (typeof found.$ref !== 'string') return found
    found = follow(doc, found.$ref)
  }
  return undefined
}

/**
 * A schema that needs nothing of its document: what it refers to is in its `$defs`, each once, so that schemas that
 * refer to themselves stay what they are.
 */
export function detach(doc: Doc, schema: unknown): ActionSchema {
  const defs: Record<string, unknown> = {}
  const names = new Map<string, string>()
  const waiting: string[] = []
  let chars = 0

  function nameOf(ref: string): string {
    const known = names.get(ref)
    if (known !== undefined) return known
    const wanted = (ref.split('/').at(-1) ?? '').replace(/[^\w.-]/g, '_') || 'schema'
    let name = wanted
    for (let count = 2; Object.hasOwn(defs, name); count++) name = `${wanted}_${count}`
    setOwn(defs, name, {})
    names.set(ref, name)
    waiting.push(ref)
    return name
  }

  function copy(value: unknown, depth: number): unknown {
    if (chars > MAX_SCHEMA || depth > MAX_CHAIN) return {}
    if (Array.isArray(value)) return value.map((one) => copy(one, depth + 1))
    if (!isObject(value)) {
      chars += typeof value === 'string' ? value.length + 2 : 6
      return value
    }
    if (typeof value.$ref === 'string') {
      chars += value.$ref.length
      return { $ref: `#/$defs/${nameOf(value.$ref)}` }
    }
    const made: Doc = {}
    for (const [key, one] of Object.entries(value)) {
      if (key === 'pattern' && !isPattern(one)) continue
      if (LEFT_OUT.has(key) || (key.startsWith('x-') && !isObject(one) && depth === 0)) continue
      chars += key.length + 3
      setOwn(made, key, copy(one, depth + 1))
    }
    return made
  }

  const own = copy(schema, 0) as ActionSchema
  for (let ref = waiting.shift(); ref !== undefined; ref = waiting.shift())
    setOwn(defs, names.get(ref)!, copy(follow(doc, ref) ?? {}, 0))
  return Object.keys(defs).length > 0 ? { ...own, $defs: defs } : own
}

/** Whether a pattern is one of JSON Schema, whose patterns are Unicode's: others would make the whole schema unusable. */
function isPattern(text: unknown): boolean {
  try {
    new RegExp(String(text), 'u')
    return true
  } catch {
    return false
  }
}

/** What a schema of OpenAPI has that neither checks a value nor helps to write one. */
const LEFT_OUT = new Set([
  'example',
  'examples',
  'xml',
  'externalDocs',
  'discriminator',
  '$schema',
  '$id',
  '$anchor',
])
