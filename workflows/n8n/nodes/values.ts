import { getOwn } from '../../json.ts'
import type { SourceNode } from '../document.ts'
import { quoteString } from '../expressions/code.ts'
import type { MapperTools, NodeMapper } from '../mapper.ts'
import { createPart, type MappedNode, type NodePart } from '../parts.ts'

/** Nodes that compute one value. In n8n they put it into a field of the item, ours output only the value. */
export const VALUE_MAPPERS: Record<string, NodeMapper> = {
  dateTime: { takes: 'item', map: mapDateTime },
  crypto: { takes: 'item', map: mapCrypto },
}

/** `value` is JSONata for what `part` outputs, as `$input`. With `keepsInput`, other fields are kept. */
type FieldValue = { part: NodePart; field: string; value: string; keepsInput: boolean }

function putInField(tools: MapperTools, { part, field, value, keepsInput }: FieldValue): MappedNode {
  const object = `{${quoteString(field)}: ${value}}`
  if (!keepsInput) return { parts: [part, createPart('TRANSFORM', { expression: object }, '__put')] }
  const item = `$nodes.${tools.id}__in${tools.input.path}`
  const expression = `$merge([${item}, ${object}])`
  return { parts: [createPart('NO_OP', {}, '__in'), part, createPart('TRANSFORM', { expression }, '__put')] }
}

/** The parts of a date that n8n can extract, and the formats of DATE that give them. */
const EXTRACTED_PARTS: Record<string, string> = {
  year: 'yyyy',
  month: 'M',
  week: 'W',
  day: 'd',
  hour: 'H',
  minute: 'm',
  second: 's',
}

function mapDateTime(node: SourceNode, tools: MapperTools): MappedNode {
  if (node.version < 2)
    throw new Error('its first version has date formats of its own, which DATE does not know')
  const { parameters } = node
  const options = Object(parameters.options)
  const zone = typeof options.timezone === 'string' ? { timezone: options.timezone } : {}
  const { config, field, value = '$input.date' } = readDateOperation(node, tools)
  return putInField(tools, {
    part: createPart('DATE', config.operation === 'difference' ? config : { ...config, ...zone }),
    field: String(parameters.outputFieldName ?? field),
    value,
    keepsInput: options.includeInputFields === true,
  })
}

/** The config of DATE, the field that n8n uses by default, and the value if that is not `$input.date`. */
type DateOperation = { config: Record<string, unknown>; field: string; value?: string }

function readDateOperation({ parameters }: SourceNode, { reader }: MapperTools): DateOperation {
  const { operation = 'getCurrentDate' } = parameters
  const read = (key: string) => reader.readTemplate(parameters[key] ?? '', `parameters.${key}`)
  switch (operation) {
    case 'getCurrentDate':
      return { config: { operation: 'now' }, field: 'currentDate' }
    case 'addToDate':
    case 'subtractFromDate': {
      const config = {
        operation: operation === 'addToDate' ? 'add' : 'subtract',
        value: read('magnitude'),
        amount: reader.readTemplate(parameters.duration ?? 0, 'parameters.duration'),
        unit: parameters.timeUnit ?? 'days',
      }
      return { config, field: 'newDate' }
    }
    case 'formatDate': {
      const given =
        parameters.format === 'custom' ? parameters.customFormat : (parameters.format ?? 'MM/dd/yyyy')
      const config = {
        operation: 'format',
        value: read('date'),
        format: reader.readTemplate(given, 'parameters.format'),
      }
      return { config, field: 'formattedDate', value: '$input.text' }
    }
    case 'extractDate': {
      const format = getOwn(EXTRACTED_PARTS, String(parameters.part ?? 'month'))
      if (!format) throw new Error(`it extracts "${parameters.part}" from a date, which Perdure cannot`)
      const config = { operation: 'format', value: read('date'), format }
      return { config, field: 'datePart', value: '$number($input.text)' }
    }
    case 'getTimeBetweenDates': {
      const units = Array.isArray(parameters.units) ? parameters.units : ['day']
      const [unit] = units.map((one) => String(one).replace(/s$/, ''))
      if (units.length !== 1 || !unit)
        throw new Error('it outputs the time between two dates in several units')
      const config = { operation: 'difference', from: read('startDate'), to: read('endDate'), unit }
      return { config, field: 'timeDifference', value: `{${quoteString(`${unit}s`)}: $input.difference}` }
    }
  }
  throw new Error(`its operation "${operation}" has no counterpart`)
}

const ALGORITHMS = new Set(['md5', 'sha1', 'sha256', 'sha384', 'sha512'])

function mapCrypto({ parameters }: SourceNode, tools: MapperTools): MappedNode {
  const config =
    parameters.action === 'generate' ? readGenerate(parameters, tools) : readHash(parameters, tools)
  return putInField(tools, {
    part: createPart('CRYPTO', config),
    field: String(parameters.dataPropertyName ?? 'data'),
    value: '$input.value',
    keepsInput: true,
  })
}

function readGenerate(parameters: Record<string, unknown>, { reader }: MapperTools): Record<string, unknown> {
  const { encodingType = 'uuid', stringLength = 32 } = parameters
  if (encodingType === 'uuid') return { operation: 'uuid' }
  if (encodingType !== 'hex' && encodingType !== 'base64')
    throw new Error(`it generates a random value of the type "${encodingType}"`)
  const size = reader.readTemplate(stringLength, 'parameters.stringLength')
  return { operation: 'randomBytes', encoding: encodingType, size }
}

function readHash(parameters: Record<string, unknown>, { reader }: MapperTools): Record<string, unknown> {
  const { action = 'hash', type = 'MD5', encoding = 'hex' } = parameters
  const algorithm = String(type).toLowerCase().replace('-', '')
  if ((action !== 'hash' && action !== 'hmac') || !ALGORITHMS.has(algorithm))
    throw new Error(`its action "${action}" with "${type}" has no counterpart`)
  const value = reader.readTemplate(parameters.value ?? '', 'parameters.value')
  const config = { operation: action, value, algorithm, encoding }
  if (action === 'hash') return config
  return { ...config, secret: reader.readTemplate(parameters.secret ?? '', 'parameters.secret') }
}
