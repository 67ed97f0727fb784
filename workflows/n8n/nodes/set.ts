import { getOwn, isObject } from '../../json.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { type MappedNode, mapEach } from '../parts.ts'
import { reportMissingOption } from '../report.ts'
import { isTemplate, keepText, keepTexts, listObjects, splitNames, splitPieces } from '../texts.ts'

const TYPES = new Set(['string', 'number', 'boolean', 'array', 'object', 'dateTime'])

/** The Edit Fields node, which was named Set. */
export function mapSet(node: SourceNode, tools: MapperTools): MappedNode {
  const { parameters, version } = node
  const options = isObject(parameters.options) ? parameters.options : {}
  const plain = options.dotNotation === false ? { dots: false } : {}
  if (version < 3) {
    const include = parameters.keepOnlySet === true ? 'none' : 'all'
    return mapEach('SET', {
      fields: readOldFields(node),
      include,
      ignoreErrors: true,
      nulls: 'drop',
      ...plain,
    })
  }
  for (const [key, value] of Object.entries(options)) {
    if (!KNOWN_OPTIONS.has(key)) reportMissingOption(tools.report, `parameters.options.${key}`, value)
  }
  const kept = { ...readInclude(node), ...(tools.usesFiles ? readFiles(node, options) : {}), ...plain }
  if (parameters.mode === 'raw' || parameters.mode === 'json')
    return mapEach('SET', { json: readJson(node), ...kept })
  const more = options.ignoreConversionErrors === true ? { ignoreErrors: true } : {}
  const nulls = version >= 3.2 ? {} : { nulls: version > 3 ? 'refuse' : 'text' }
  return mapEach('SET', { fields: readFields(node), ...kept, ...more, ...nulls })
}

const KNOWN_OPTIONS = new Set(['dotNotation', 'ignoreConversionErrors', 'includeBinary', 'stripBinary'])

/** Which version keeps the files of the item if nothing is said changed with 3.4. */
function readFiles(node: SourceNode, options: Record<string, unknown>): Record<string, unknown> {
  if (node.version < 3.4) return { files: options.includeBinary === true }
  return { files: options.stripBinary !== true && readInclude(node).include !== 'none' }
}

function readInclude({ parameters, version }: SourceNode): Record<string, unknown> {
  const { include = 'all', includeOtherFields = false } = parameters
  const which = version >= 3.3 && includeOtherFields !== true ? 'none' : String(include)
  const key = which === 'selected' ? 'includeFields' : 'excludeFields'
  if (which !== 'selected' && which !== 'except') return { include: which }
  const names = parameters[key]
  return { include: which, names: isTemplate(names) ? names : splitNames(names) }
}

/** Before version 3, the fields are listed by type. */
function readOldFields({ parameters, version }: SourceNode): Record<string, unknown>[] {
  const lists = isObject(parameters.values) ? parameters.values : {}
  return ['boolean', 'number', 'string'].flatMap((type) =>
    listObjects(lists[type]).map(({ name = 'propertyName', value }) => ({
      name: keepText(name),
      type: type === 'boolean' ? 'truth' : type === 'number' && version >= 2 ? 'number' : 'any',
      value: keepTexts(value ?? (type === 'boolean' ? false : type === 'number' ? 0 : '')),
    })),
  )
}

/** One list of fields with their types. Versions before 3.3 have another form of it. */
function readFields({ parameters, version }: SourceNode): Record<string, unknown>[] {
  if (version >= 3.3) {
    const assignments = isObject(parameters.assignments) ? parameters.assignments.assignments : []
    return listObjects(assignments).flatMap(({ name = '', value, type = 'string' }) => {
      if (type === 'binary') return [{ name: keepText(name), type: 'file', value: keepTexts(value ?? '') }]
      return [readField(name, type, value)]
    })
  }
  const fields = isObject(parameters.fields) ? parameters.fields.values : []
  return listObjects(fields).map((entry) => {
    const { name = '', type: key = 'stringValue' } = entry
    const value =
      getOwn(entry, String(key)) ??
      (key === 'booleanValue' ? 'true' : key === 'objectValue' ? '={}' : key === 'arrayValue' ? '[]' : '')
    return readField(name, String(key).replace('Value', ''), value)
  })
}

function readField(name: unknown, type: unknown, value: unknown): Record<string, unknown> {
  const known = TYPES.has(String(type)) ? String(type) : 'any'
  return { name: keepText(name), type: known, value: keepTexts(value ?? null) }
}

/** The mode in which all fields are one JSON object: n8n puts the values of expressions into its text. */
function readJson({ parameters }: SourceNode): unknown {
  const given = parameters.jsonOutput ?? '{}'
  if (typeof given !== 'string') return keepTexts(given)
  const pieces = given.startsWith('=') ? splitPieces(given) : []
  if (pieces.length === 1 && isTemplate(pieces[0])) return pieces[0]
  if (pieces.some(isTemplate)) return pieces
  const text = given.replace(/^=/, '')
  try {
    const parsed: unknown = JSON.parse(text)
    if (isObject(parsed)) return keepPlain(parsed)
  } catch {
    throw new Error('its JSON is not valid')
  }
  throw new Error('its JSON is not an object')
}

/** A value in which no text is a template. */
function keepPlain(value: unknown): unknown {
  if (typeof value === 'string') return keepText(value.startsWith('=') ? `=${value}` : value)
  if (Array.isArray(value)) return value.map(keepPlain)
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, keepPlain(entry)]))
}
