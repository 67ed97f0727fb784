import { isObject, setOwn } from '../../workflows/json.ts'

const MAX_DEPTH = 20
const MAX_VALUES = 2_000
const MAX_TEXT = 60

type Maker = { root: Record<string, unknown>; text: string; left: number; numbers: number[] }

/**
 * A value that fits a JSON Schema, out of what a text says: `city: Paris` for a property `city`, the choice of an enum
 * that the text has, its numbers in their order; otherwise the beginning of the text, and the least that is allowed.
 * It does not look at `pattern` and `not`.
 */
export function makeDemoValue(schema: Record<string, unknown>, text: string): unknown {
  const numbers = [...text.matchAll(/-?\d{1,15}(?:\.\d{1,6})?/g)]
    .slice(0, 100)
    .map(([found]) => Number(found))
  return make({ root: schema, text, left: MAX_VALUES, numbers }, schema, '', 0)
}

function make(maker: Maker, given: unknown, name: string, depth: number): unknown {
  if (depth > MAX_DEPTH || maker.left-- <= 0) return null
  const schema = follow(maker, given)
  const { default: usual, examples, const: only, enum: choices } = schema
  if (only !== undefined) return only
  if (Array.isArray(choices)) return choose(choices, maker.text)
  if (usual !== undefined) return usual
  const said = findSaid(maker.text, name)
  const type = findType(schema)
  if (type === 'string' && said === undefined && Array.isArray(examples) && examples.length > 0)
    return examples[0]
  switch (type) {
    case 'object':
      return makeFields(maker, schema, depth)
    case 'array':
      return makeList(maker, schema, name, depth)
    case 'integer':
    case 'number':
      return makeNumber(maker, schema, said, type === 'integer')
    case 'boolean':
      return said === undefined || !/^(?:no|false)\b/i.test(said)
    case 'null':
      return null
    default:
      return makeText(schema, said ?? maker.text)
  }
}

/** The schema itself, behind references within it, and the first of several that would do. */
function follow(maker: Maker, given: unknown): Record<string, unknown> {
  let schema = given
  for (let hops = 0; hops < MAX_DEPTH && isObject(schema); hops++) {
    const { $ref, anyOf, oneOf, allOf } = schema
    const first: unknown = Array.isArray(anyOf) ? anyOf[0] : Array.isArray(oneOf) ? oneOf[0] : undefined
    if (typeof $ref === 'string') schema = find(maker.root, $ref)
    else if (isObject(first)) {
      const { anyOf: _, oneOf: __, ...rest } = schema
      schema = join(rest, first)
    } else if (Array.isArray(allOf)) {
      const { allOf: _, ...rest } = schema
      schema = allOf.slice(0, 20).reduce<Record<string, unknown>>((sum, one) => join(sum, one), rest)
    } else return schema
  }
  return isObject(schema) ? schema : {}
}

function join(left: Record<string, unknown>, right: unknown): Record<string, unknown> {
  if (!isObject(right)) return left
  const properties = { ...(left.properties as object), ...(right.properties as object) }
  const required = [left.required, right.required].flatMap((names) => (Array.isArray(names) ? names : []))
  return {
    ...left,
    ...right,
    ...(Object.keys(properties).length > 0 ? { properties } : {}),
    ...(required.length > 0 ? { required } : {}),
  }
}

function find(root: Record<string, unknown>, ref: string): unknown {
  if (!ref.startsWith('#')) return {}
  let value: unknown = root
  for (const part of ref.slice(1).split('/').slice(1, MAX_DEPTH)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    value = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
  }
  return value
}

function findType({ type, properties, items }: Record<string, unknown>): unknown {
  if (Array.isArray(type)) return type.find((one) => one !== 'null')
  if (type !== undefined) return type
  return isObject(properties) ? 'object' : items === undefined ? 'string' : 'array'
}

/** What a text says a property is: `name: value`, `name = value` or `name is value`. */
function findSaid(text: string, name: string): string | undefined {
  if (name === '' || name.length > 100) return undefined
  const at = text
    .toLowerCase()
    .search(new RegExp(`(?<![\\p{L}\\d])${quotePattern(name.toLowerCase())}(?![\\p{L}\\d])`, 'u'))
  if (at < 0) return undefined
  const rest = text.slice(at + name.length, at + name.length + 300)
  return /^["']?\s{0,3}(?:[:=]|is\b)\s{0,3}([^\n.,;]{1,200})/i.exec(rest)?.[1]?.trim()
}

const quotePattern = (text: string) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')

function choose(choices: unknown[], text: string): unknown {
  const lower = text.toLowerCase()
  const found = choices.find(
    (one) => typeof one === 'string' && one !== '' && lower.includes(one.toLowerCase()),
  )
  return found ?? choices[0] ?? null
}

function makeFields(maker: Maker, { properties, required }: Record<string, unknown>, depth: number): unknown {
  const made: Record<string, unknown> = {}
  const names = Object.keys(isObject(properties) ? properties : {})
  const needed = Array.isArray(required)
    ? required.filter((one): one is string => typeof one === 'string')
    : []
  for (const name of new Set([...names, ...needed.slice(0, MAX_VALUES)])) {
    // What need not be there is left out before it gets endless.
    if (depth > 4 && !needed.includes(name)) continue
    setOwn(
      made,
      name,
      make(maker, (properties as Record<string, unknown> | undefined)?.[name] ?? {}, name, depth + 1),
    )
  }
  return made
}

function makeList(maker: Maker, schema: Record<string, unknown>, name: string, depth: number): unknown[] {
  const { items, prefixItems, minItems = 1, maxItems = 100 } = schema
  const firsts = Array.isArray(prefixItems) ? prefixItems : []
  const count = Math.min(Math.max(Number(minItems) || 0, firsts.length, 1), Number(maxItems) || 0, 100)
  const rest = isObject(items) ? items : {}
  return Array.from({ length: count }, (_, i) => make(maker, firsts[i] ?? rest, name, depth + 1))
}

function makeNumber(
  { numbers }: Maker,
  { minimum, exclusiveMinimum, maximum, exclusiveMaximum, multipleOf }: Record<string, unknown>,
  said: string | undefined,
  whole: boolean,
): number {
  const fits = (n: number) =>
    Number.isFinite(n) &&
    (!whole || Number.isInteger(n)) &&
    !(typeof minimum === 'number' && n < minimum) &&
    !(typeof maximum === 'number' && n > maximum) &&
    !(typeof exclusiveMinimum === 'number' && n <= exclusiveMinimum) &&
    !(typeof exclusiveMaximum === 'number' && n >= exclusiveMaximum) &&
    !(typeof multipleOf === 'number' && n % multipleOf !== 0)
  const told = Number.parseFloat(said ?? '')
  if (fits(told)) return told
  const next = numbers.findIndex(fits)
  if (next >= 0) return numbers.splice(next, 1)[0]!
  const low =
    typeof minimum === 'number' ? minimum : typeof exclusiveMinimum === 'number' ? exclusiveMinimum : 0
  const step = typeof multipleOf === 'number' && multipleOf > 0 ? multipleOf : 1
  const first = Math.ceil(low / step) * step
  const high = typeof maximum === 'number' ? maximum : Number(exclusiveMaximum)
  const tries = [first, first + step, high, high - step, low, (low + high) / 2]
  return tries.find(fits) ?? first
}

const FORMATS: Record<string, string> = {
  'date-time': '2026-01-01T12:00:00Z',
  date: '2026-01-01',
  time: '12:00:00Z',
  duration: 'PT1H',
  email: 'demo@example.com',
  'idn-email': 'demo@example.com',
  hostname: 'example.com',
  'idn-hostname': 'example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uri: 'https://example.com/',
  iri: 'https://example.com/',
  'uri-reference': '/demo',
  uuid: '00000000-0000-4000-8000-000000000000',
}

function makeText({ format, minLength, maxLength }: Record<string, unknown>, said: string): string {
  if (typeof format === 'string' && Object.hasOwn(FORMATS, format)) return FORMATS[format]!
  const most = typeof maxLength === 'number' ? maxLength : Math.max(MAX_TEXT, Number(minLength) || 0)
  const points = [...said.trim().replace(/\s+/g, ' ').slice(0, MAX_TEXT).toWellFormed()]
  const text = points.slice(0, Math.max(0, most)).join('')
  const least = Math.min(typeof minLength === 'number' ? minLength : 0, 10_000)
  return points.length < least ? text.padEnd(text.length + least - points.length, '-') : text
}
