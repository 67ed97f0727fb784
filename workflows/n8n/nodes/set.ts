import { isObject, setOwn } from '../../inputs.ts'
import { type Code, quote } from '../javascript.ts'
import { type Mapped, type Mapper, part, type Tools } from '../mapper.ts'
import { asText } from '../values.ts'

/** One field: its value as a template, and as JSONata, which is asked for where other fields stay. */
type Field = { name: string; template: unknown; code: () => string }

/** SET, Edit Fields: what it says alone, or with the fields of the item. */
export const set: Mapper = {
  takes: 'item',
  map(node, tools) {
    const { parameters, version } = node
    if (parameters.mode === 'raw' || parameters.mode === 'json') return setRaw(parameters, version, tools)
    const dots = Object(parameters.options).dotNotation !== false
    const fields = version < 3 ? readOld(parameters, tools) : readNew(parameters, tools)
    const kept = findKept(parameters, version, tools)
    if (kept === undefined) return { parts: [part('SET', { values: nest(fields, dots) })] }
    const tree = nest(
      fields.map((field) => ({ ...field, template: CODE + field.code() })),
      dots,
    )
    return { parts: [part('TRANSFORM', { expression: `$merge([${kept}, ${write(tree)}])` })] }
  },
}

/** Marks JSONata where a value stands: no value begins with it. */
const CODE = '\0'

function setRaw(parameters: Record<string, unknown>, version: number, tools: Tools): Mapped {
  const given = parameters.jsonOutput ?? '{}'
  const read =
    typeof given === 'string' ? tools.reader.json(given, 'parameters.jsonOutput') : { value: given }
  if (!read) throw new Error('its JSON cannot be read')
  const { value } = read
  const kept = findKept(parameters, version, tools)
  if (kept !== undefined && isObject(value)) {
    const before = { ...tools, source: `$nodes.${tools.id}__in${tools.input.path}` }
    const expression = `$merge([${findKept(parameters, version, before)}, $input])`
    return {
      parts: [
        part('NO_OP', {}, '__in'),
        part('SET', { values: value }),
        part('TRANSFORM', { expression }, '__all'),
      ],
    }
  }
  if (isObject(value)) return { parts: [part('SET', { values: value })] }
  if (typeof value !== 'string') throw new Error('its JSON is no object')
  const expression = value.replace(/^\{\{|\}\}$/g, '').trim()
  return {
    parts: [
      part('TRANSFORM', { expression: kept === undefined ? expression : `$merge([${kept}, ${expression}])` }),
    ],
  }
}

function readOld({ values }: Record<string, unknown>, tools: Tools): Field[] {
  const kinds: Record<string, string> = { string: 'string', number: 'number', boolean: 'boolean' }
  return Object.entries(Object(values)).flatMap(([kind, list]) =>
    (Array.isArray(list) ? list : []).map((entry, i) => {
      const { name = '', value } = Object(entry)
      return readField(String(name), value, kinds[kind] ?? 'string', `parameters.values.${kind}[${i}]`, tools)
    }),
  )
}

function readNew({ assignments, fields }: Record<string, unknown>, tools: Tools): Field[] {
  const list = Object(assignments).assignments
  if (Array.isArray(list)) {
    return list.map((entry, i) => {
      const { name = '', value, type = 'string' } = Object(entry)
      return readField(String(name), value, String(type), `parameters.assignments.assignments[${i}]`, tools)
    })
  }
  const older = Object(fields).values
  return (Array.isArray(older) ? older : []).map((entry, i) => {
    const { name = '', type = 'stringValue' } = Object(entry)
    const value = Object(entry)[type]
    return readField(
      String(name),
      value,
      String(type).replace(/Value$/, ''),
      `parameters.fields.values[${i}]`,
      tools,
    )
  })
}

function readField(
  given: string,
  value: unknown,
  type: string,
  path: string,
  { reader, complain }: Tools,
): Field {
  const name = given.replace(/^=/, '')
  if (given.startsWith('=') && given.includes('{{'))
    complain('expression', `${path}.name`, 'A computed name is not taken over', given)
  const at = `${path}.value`
  const keep = (fixed: unknown): Field => ({
    name,
    template: reader.template(fixed, at),
    code: () => reader.code(fixed, at).text,
  })
  if (typeof value !== 'string' || !value.startsWith('=')) return keep(fix(value, type))
  const parts = reader.parts(value, at)
  const [only] = parts
  const plain = parts.every((part) => typeof part === 'string')
  const fixed = plain ? fix(parts.join(''), type) : undefined
  if (plain && typeof fixed !== 'string') return keep(fixed)
  if (!plain && parts.length > 1 && (type === 'array' || type === 'object')) {
    const read = reader.json(value, at)
    const code = () => {
      complain('expression', at, 'JSON with expressions in it stays a text beside other fields', value)
      return reader.join(parts).text
    }
    if (read) return { name, template: read.value, code }
  }
  if (parts.length === 1 && typeof only === 'object') {
    const { text } = cast(only, type)
    return { name, template: `{{ ${text} }}`, code: () => text }
  }
  const whole = reader.join(parts)
  if (!plain && type === 'number') {
    const text = `$number(${whole.text})`
    return { name, template: `{{ ${text} }}`, code: () => text }
  }
  return { name, template: reader.write(parts), code: () => whole.text }
}

/** A value that is no expression, as what n8n makes of it. */
function fix(value: unknown, type: string): unknown {
  if (typeof value !== 'string')
    return type === 'string' && value !== undefined && value !== null ? String(value) : (value ?? null)
  if (type === 'number') return value.trim() !== '' && Number.isFinite(Number(value)) ? Number(value) : null
  if (type === 'boolean') return value === 'true'
  if (type !== 'array' && type !== 'object') return value
  try {
    return JSON.parse(value)
  } catch {
    return value
  }
}

function cast(code: Code, type: string): Code {
  if (type === 'string') {
    const settled = code.hint === 'time' ? { text: `$fromMillis(${code.text})`, hint: 'text' as const } : code
    return asText(settled)
  }
  if (type === 'number' && code.hint !== 'number') return { text: `$number(${code.text})`, hint: 'number' }
  return code.hint === 'time' ? { text: `$fromMillis(${code.text})`, hint: 'text' } : code
}

/** The fields of the item that stay beside the new ones, as JSONata; undefined where none do. */
function findKept(
  parameters: Record<string, unknown>,
  version: number,
  { source }: Tools,
): string | undefined {
  if (version < 3) return parameters.keepOnlySet === true ? undefined : source
  const others =
    version < 3.3 ? (parameters.include ?? 'all') !== 'none' : parameters.includeOtherFields === true
  if (!others) return undefined
  const list = (key: string) =>
    JSON.stringify(
      String(parameters[key] ?? '')
        .split(',')
        .map((name) => name.trim()),
    )
  if (parameters.include === 'selected')
    return `$sift(${source}, function($v, $k){$k in ${list('includeFields')}})`
  if (parameters.include === 'except')
    return `$sift(${source}, function($v, $k){$not($k in ${list('excludeFields')})})`
  return source
}

function nest(fields: Field[], dots: boolean): Record<string, unknown> {
  const tree: Record<string, unknown> = {}
  for (const { name, template } of fields) {
    const keys = dots ? name.split('.') : [name]
    let at = tree
    for (const key of keys.slice(0, -1)) {
      if (!isObject(at[key])) setOwn(at, key, {})
      at = at[key] as Record<string, unknown>
    }
    setOwn(at, keys.at(-1)!, template)
  }
  return tree
}

function write(value: unknown): string {
  if (typeof value === 'string') return value.slice(CODE.length)
  const fields = Object.entries(value as object).map(([key, entry]) => `${quote(key)}: ${write(entry)}`)
  return `{${fields.join(', ')}}`
}
