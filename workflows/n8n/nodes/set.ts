import { isObject, setOwn } from '../../json.ts'
import type { SourceNode } from '../document.ts'
import { castToString, type JsonataCode, quoteString, toPlainValue } from '../expressions/code.ts'
import type { MapperTools, NodeMapper } from '../mapper.ts'
import { createPart, type MappedNode, mapToNode } from '../parts.ts'
import { joinTemplateParts, type TemplatePart, writeTemplate } from '../templates.ts'

/** The Edit Fields node, which was named Set. */
export const SET_MAPPERS: Record<string, NodeMapper> = {
  set: { takes: 'item', map: mapSet },
}

type Parameters = Record<string, unknown>

/** A field that the node sets: its value as a template and, for when other fields are kept, as JSONata. */
type Field = { name: string; template: unknown; writeCode: () => string }

function mapSet(node: SourceNode, tools: MapperTools): MappedNode {
  const { parameters, version } = node
  if (parameters.mode === 'raw' || parameters.mode === 'json') return mapJson(node, tools)
  const hasPaths = Object(parameters.options).dotNotation !== false
  const fields = version < 3 ? readOldFields(parameters, tools) : readFields(parameters, tools)
  const kept = writeKeptFields(node, tools.inputCode)
  if (kept === undefined) {
    const values = fields.map(({ name, template }): [string, unknown] => [name, template])
    return mapToNode('SET', { values: nestFields(values, hasPaths) })
  }
  const codes = fields.map(({ name, writeCode }): [string, unknown] => [name, writeCode()])
  const expression = `$merge([${kept}, ${writeObject(nestFields(codes, hasPaths))}])`
  return mapToNode('TRANSFORM', { expression })
}

/** The mode in which the fields are given as one JSON object. */
function mapJson(node: SourceNode, tools: MapperTools): MappedNode {
  const given = node.parameters.jsonOutput ?? '{}'
  const read =
    typeof given === 'string' ? tools.reader.readJson(given, 'parameters.jsonOutput') : { value: given }
  if (!read) throw new Error('its JSON is not valid')
  const { value } = read
  const kept = writeKeptFields(node, tools.inputCode)
  if (isObject(value)) {
    if (kept === undefined) return mapToNode('SET', { values: value })
    const itemCode = `$nodes.${tools.id}__in${tools.input.path}`
    const expression = `$merge([${writeKeptFields(node, itemCode)}, $input])`
    return {
      parts: [
        createPart('NO_OP', {}, '__in'),
        createPart('SET', { values: value }),
        createPart('TRANSFORM', { expression }, '__all'),
      ],
    }
  }
  if (typeof value !== 'string') throw new Error('its JSON is not an object')
  // The JSON is one expression, which readJson has put into braces.
  const code = value.replace(/^\{\{|\}\}$/g, '').trim()
  return mapToNode('TRANSFORM', { expression: kept === undefined ? code : `$merge([${kept}, ${code}])` })
}

/** Before version 3, the fields are listed by type. */
function readOldFields({ values }: Parameters, tools: MapperTools): Field[] {
  return Object.entries(Object(values)).flatMap(([type, list]) =>
    (Array.isArray(list) ? list : []).map((entry, i) => {
      const { name = '', value } = Object(entry)
      const known = type === 'number' || type === 'boolean' ? type : 'string'
      return readField(String(name), value, known, `parameters.values.${type}[${i}]`, tools)
    }),
  )
}

/** One list of fields with their types. Versions before 3.3 have another form of it. */
function readFields({ assignments, fields }: Parameters, tools: MapperTools): Field[] {
  const list = Object(assignments).assignments
  if (Array.isArray(list)) {
    return list.map((entry, i) => {
      const { name = '', value, type = 'string' } = Object(entry)
      return readField(String(name), value, String(type), `parameters.assignments.assignments[${i}]`, tools)
    })
  }
  const older = Object(fields).values
  return (Array.isArray(older) ? older : []).map((entry, i) => {
    const { name = '', type: key = 'stringValue' } = Object(entry)
    const type = String(key).replace(/Value$/, '')
    return readField(String(name), Object(entry)[key], type, `parameters.fields.values[${i}]`, tools)
  })
}

function readField(givenName: string, value: unknown, type: string, path: string, tools: MapperTools): Field {
  const { reader, report } = tools
  const name = givenName.replace(/^=/, '')
  if (givenName.startsWith('=') && givenName.includes('{{')) {
    const message =
      "n8n computes this field's name. Perdure cannot, and takes the expression itself as the name: give " +
      'the field a fixed name.'
    report('expression', `${path}.name`, message, givenName)
  }
  const valuePath = `${path}.value`
  const keepFixed = (fixed: unknown): Field => ({
    name,
    template: reader.readTemplate(fixed, valuePath),
    writeCode: () => reader.readCode(fixed, valuePath).text,
  })
  if (typeof value !== 'string' || !value.startsWith('=')) return keepFixed(convertFixed(value, type))
  const parts = reader.readParts(value, valuePath)
  if (parts.every((part) => typeof part === 'string')) {
    const fixed = convertFixed(parts.join(''), type)
    if (typeof fixed !== 'string') return keepFixed(fixed)
  }
  return { name, ...readComputed(parts, value, type, valuePath, tools) }
}

/** The value of a field, if it begins with = and has expressions or text that stays a string. */
function readComputed(
  parts: TemplatePart[],
  value: string,
  type: string,
  path: string,
  { reader, report }: MapperTools,
): Omit<Field, 'name'> {
  const [only] = parts
  const hasCode = parts.some((part) => typeof part === 'object')
  if (hasCode && parts.length > 1 && (type === 'array' || type === 'object')) {
    const read = reader.readJson(value, path)
    const writeCode = () => {
      const message =
        'n8n reads this string as JSON when its expressions are filled in. Perdure leaves it a string, ' +
        'because other fields of the item are kept: write the value as one expression.'
      report('expression', path, message, value)
      return joinTemplateParts(parts).text
    }
    if (read) return { template: read.value, writeCode }
  }
  if (parts.length === 1 && typeof only === 'object') {
    const { text } = castToType(only, type)
    return { template: `{{ ${text} }}`, writeCode: () => text }
  }
  const joined = joinTemplateParts(parts).text
  if (hasCode && type === 'number') {
    const text = `$number(${joined})`
    return { template: `{{ ${text} }}`, writeCode: () => text }
  }
  return { template: writeTemplate(parts), writeCode: () => joined }
}

/** A value without expressions, converted to the type of its field as n8n does. */
function convertFixed(value: unknown, type: string): unknown {
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

function castToType(code: JsonataCode, type: string): JsonataCode {
  if (type === 'string') return castToString(toPlainValue(code))
  if (type === 'number' && code.hint !== 'number') return { text: `$number(${code.text})`, hint: 'number' }
  return toPlainValue(code)
}

/** JSONata for the fields of the item that are kept beside the new ones. Undefined if none are. */
function writeKeptFields({ parameters, version }: SourceNode, inputCode: string): string | undefined {
  if (version < 3) return parameters.keepOnlySet === true ? undefined : inputCode
  const keepsOthers =
    version < 3.3 ? (parameters.include ?? 'all') !== 'none' : parameters.includeOtherFields === true
  if (!keepsOthers) return undefined
  const list = (key: string) =>
    JSON.stringify(
      String(parameters[key] ?? '')
        .split(',')
        .map((name) => name.trim()),
    )
  if (parameters.include === 'selected')
    return `$sift(${inputCode}, function($v, $k){$k in ${list('includeFields')}})`
  if (parameters.include === 'except')
    return `$sift(${inputCode}, function($v, $k){$not($k in ${list('excludeFields')})})`
  return inputCode
}

/** One object with all fields. With `hasPaths`, the dots in a name lead into inner objects. */
function nestFields(fields: [name: string, value: unknown][], hasPaths: boolean): Parameters {
  const tree: Parameters = {}
  for (const [name, value] of fields) {
    const keys = hasPaths ? name.split('.') : [name]
    let at = tree
    for (const key of keys.slice(0, -1)) {
      if (!isObject(at[key])) setOwn(at, key, {})
      at = at[key] as Parameters
    }
    setOwn(at, keys.at(-1)!, value)
  }
  return tree
}

/** JSONata for an object. The leaves of the tree are JSONata already. */
function writeObject(tree: unknown): string {
  if (typeof tree === 'string') return tree
  const fields = Object.entries(tree as object).map(
    ([key, value]) => `${quoteString(key)}: ${writeObject(value)}`,
  )
  return `{${fields.join(', ')}}`
}
