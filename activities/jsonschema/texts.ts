import { removeUriSchemePlugin } from '@hyperjump/browser'
import { registerSchema, unregisterSchema, validate } from '@hyperjump/json-schema/draft-2020-12'
import { decodeUriPart } from '../../workflows/texts.ts'
import '@hyperjump/json-schema/draft-2019-09'
import '@hyperjump/json-schema/draft-07'
import * as Instance from '@hyperjump/json-schema/instance/experimental'
import { bringsVocabulary } from '../../workflows/jsonschema/textschema.ts'
import { useLargeNumbers } from './largenumbers.ts'
import { useExactMultiples } from './multiples.ts'
import { useLinearPatterns } from './patterns.ts'
import { cutShort, describeMisfit } from './words.ts'

/** A place where a text does not fit a schema: its path as a JSON pointer, and where it is in the text, in UTF-16 units. */
type Misfit = { path: string; keyword: string; message: string; start: number; end: number }

/** Where a text does not fit a schema; or why the text is no JSON, or the schema none that can be used. */
export type TextFit =
  | { unusable: string }
  | { notJson: { message: string; position: number } }
  | { misfits: Misfit[]; more: number }

/** The most misfits that are named. */
const MAX_TOLD = 100
const MAX_LEVELS = 500

const DRAFT = 'https://json-schema.org/draft/2020-12/schema'
/** The schema's own address, which nothing can refer to that was not made here. */
const ADDRESS = 'https://schema.invalid/'

useLinearPatterns()
useExactMultiples()
useLargeNumbers()
// Nothing is ever fetched: a reference to what is not in the schema, nor a draft's own, makes it unusable.
for (const scheme of ['http', 'https', 'file']) removeUriSchemePlugin(scheme)

let counter = 0

/** What the bench gives besides: schemas that references may lead to, by their address. */
export type KnownSchemas = Record<string, unknown>

/**
 * Holds a text, which must be JSON, against a JSON Schema; without `$schema` it is one of the draft 2020-12. Only for an
 * evaluator process: a schema may have expressions and references that take any time. The library interprets the schema,
 * and compiles no code of it. The schema must have been looked at by `checkTextSchema` before.
 */
export async function fitText(schema: unknown, text: string, known: KnownSchemas = {}): Promise<TextFit> {
  const address = `${ADDRESS}${counter++}`
  const others = Object.keys(known)
  if (bringsVocabulary(schema) || Object.hasOwn(Object(schema), '$vocabulary'))
    return { unusable: 'it brings a vocabulary of its own' }
  // biome-ignore lint/suspicious/noExplicitAny: the library's type of a schema
  const register = (one: unknown, url: string) => registerSchema(moveFiles(one) as any, url, DRAFT)
  try {
    for (const url of others) register(known[url], url)
    register(schema, address)
    const holds = await validate(address)
    const read = readText(text)
    if ('notJson' in read) return read
    const output = holds(read.value as never, 'DETAILED') as unknown as { valid: boolean; errors?: Unit[] }
    if (output.valid) return { misfits: [], more: 0 }
    const resources = listResources(moveFiles(schema), address)
    const units = collectUnits(output.errors ?? [])
    return {
      misfits: units.slice(0, MAX_TOLD).map((unit) => describeUnit(unit, resources, read.root)),
      more: Math.max(0, units.length - MAX_TOLD),
    }
  } catch (error) {
    if (error instanceof RangeError && /call stack/.test(error.message))
      return { unusable: 'it is nested too deeply, or refers to itself without an end' }
    if (error instanceof RangeError) throw error
    return { unusable: describeFault(error) }
  } finally {
    for (const url of [address, ...others]) unregisterSchema(url)
  }
}

function describeFault(error: unknown): string {
  const { name, message } = error instanceof Error ? error : new Error(String(error))
  if (name === 'InvalidSchemaError') return 'it does not fit the rules of its draft'
  const resource = /^Unable to load resource '([^']*)'/.exec(message)?.[1]
  if (resource !== undefined)
    return `it refers to ${cutShort(resource)}, which is not in it: nothing is fetched from elsewhere`
  return cutShort(message.replaceAll(/https:\/\/schema\.invalid\/\d+/g, ''))
}

/** The library refuses addresses of files, because it might read them; here they are names like any other. */
function moveFiles(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(moveFiles)
  if (typeof schema !== 'object' || schema === null) return schema
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => {
      const isAddress = (key === '$id' || key === '$ref') && typeof value === 'string'
      return [key, isAddress ? value.replace(/^file:\/\//i, 'https://files.invalid') : moveFiles(value)]
    }),
  )
}

type Node = ReturnType<typeof Instance.fromJson>
type Unit = { keyword: string; absoluteKeywordLocation: string; instanceLocation: string; errors?: Unit[] }

function readText(
  text: string,
): { value: unknown; root: Node } | { notJson: { message: string; position: number } } {
  const position = findTooDeep(text)
  if (position >= 0) return { notJson: { message: `has more than ${MAX_LEVELS} levels`, position } }
  try {
    return { value: JSON.parse(text), root: Instance.fromJson(text) }
  } catch (error) {
    // The library's message names the character and its place; only the place is told.
    const found = / at offset (\d+)$/.exec(readMessage(text, error))
    const at = Number(found?.[1] ?? 0)
    const what =
      text.trim() === '' ? 'is empty' : at >= text.trimEnd().length ? 'ends too early' : 'is not JSON'
    return { notJson: { message: what, position: at } }
  }
}

function readMessage(text: string, error: unknown): string {
  try {
    Instance.fromJson(text)
  } catch (other) {
    return String(other)
  }
  return String(error)
}

/** The place where the text has too many levels of brackets, outside of strings; -1 if it has not. */
function findTooDeep(text: string): number {
  let levels = 0
  let quoted = false
  for (let at = 0; at < text.length; at++) {
    const char = text[at]
    if (quoted) {
      if (char === '\\') at++
      else if (char === '"') quoted = false
    } else if (char === '"') quoted = true
    else if (char === '[' || char === '{') {
      if (++levels > MAX_LEVELS) return at
    } else if (char === ']' || char === '}') levels--
  }
  return -1
}

/** Alternatives are told as one: what is wrong with each of them would not help. */
const WHOLE = new Set(['anyOf', 'oneOf', 'not', 'contains', 'if'])

function collectUnits(units: Unit[], collected: Unit[] = []): Unit[] {
  for (const unit of units) {
    if (unit.errors && !WHOLE.has(nameKeyword(unit))) collectUnits(unit.errors, collected)
    else collected.push(unit)
  }
  return collected
}

/** Keywords that a schema `false` can stand under by itself; under others it has a name or a number. */
const FORBIDS =
  /(?<!\/(?:properties|patternProperties|\$defs|definitions|dependentSchemas))\/(additionalProperties|additionalItems|unevaluatedProperties|unevaluatedItems|items|propertyNames)$/

/**
 * The keyword that a value does not fit. If a schema `false` forbids the value, it is the keyword whose value that
 * schema is, or `false`.
 */
function nameKeyword({ keyword, absoluteKeywordLocation }: Unit): string {
  const name = keyword.slice(keyword.lastIndexOf('/') + 1)
  return name === 'validate' ? (FORBIDS.exec(absoluteKeywordLocation)?.[1] ?? 'false') : name
}

function describeUnit(unit: Unit, resources: Map<string, unknown>, root: Node): Misfit {
  const keyword = nameKeyword(unit)
  const path = unit.instanceLocation.slice(unit.instanceLocation.indexOf('#') + 1)
  const node = findNode(root, path)
  const [base = '', pointer = ''] = unit.absoluteKeywordLocation.split('#')
  const expected = readAt(resources.get(base), pointer)
  const { offset = 0, length = 0 } = node ?? {}
  const value = node && Instance.value(node)
  return {
    path: decodeUriPart(path),
    keyword,
    message: describeMisfit(keyword, expected, value),
    start: offset,
    end: offset + length,
  }
}

/** The schema, and those within it that have an address of their own. */
function listResources(schema: unknown, address: string): Map<string, unknown> {
  const resources = new Map([[address, schema]])
  const visit = (at: unknown, base: string): void => {
    if (typeof at !== 'object' || at === null) return
    const id = (at as { $id?: unknown }).$id
    const own =
      typeof id === 'string' && URL.canParse(id, base) ? new URL(id, base).href.replace(/#.*$/, '') : base
    if (own !== base) resources.set(own, at)
    for (const child of Object.values(at)) visit(child, own)
  }
  visit(schema, address)
  return resources
}

const split = (pointer: string) =>
  pointer
    .split('/')
    .slice(1)
    .map((part) => decodeUriPart(part).replaceAll('~1', '/').replaceAll('~0', '~'))

function findNode(root: Node, pointer: string): Node | undefined {
  return split(pointer).reduce<Node | undefined>(
    (node, key) => (node ? Instance.step(key, node) : node),
    root,
  )
}

function readAt(schema: unknown, pointer: string): unknown {
  return split(pointer).reduce<unknown>((at, key) => {
    const holder = Object(at)
    return Object.hasOwn(holder, key) ? holder[key] : undefined
  }, schema)
}
