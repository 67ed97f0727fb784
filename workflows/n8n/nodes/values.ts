import type { SourceNode } from '../document.ts'
import { quote } from '../javascript.ts'
import { type Mapped, type Mapper, type Part, part, type Tools } from '../mapper.ts'

/** Nodes that put one value into a field: the value's node, and one that puts it there. */
function put(tools: Tools, main: Part, field: string, value: string, keepsInput: boolean): Mapped {
  const written = `{${quote(field)}: ${value}}`
  if (!keepsInput) return { parts: [main, part('TRANSFORM', { expression: written }, '__put')] }
  const before = `$nodes.${tools.id}__in${tools.input.path}`
  const expression = `$merge([${before}, ${written}])`
  return { parts: [part('NO_OP', {}, '__in'), main, part('TRANSFORM', { expression }, '__put')] }
}

const EXTRACTS: Record<string, string> = {
  year: 'yyyy',
  month: 'M',
  week: 'W',
  day: 'd',
  hour: 'H',
  minute: 'm',
  second: 's',
}

function dateTime({ parameters, version }: SourceNode, tools: Tools): Mapped {
  if (version < 2) throw new Error('its first version has formats of its own: see DATE')
  const { reader } = tools
  const { operation = 'getCurrentDate' } = parameters
  const options = Object(parameters.options)
  const keeps = options.includeInputFields === true
  const zone = typeof options.timezone === 'string' ? { timezone: options.timezone } : {}
  const value = (key: string) => reader.template(parameters[key] ?? '', `parameters.${key}`)
  const name = (fallback: string) => String(parameters.outputFieldName ?? fallback)
  switch (operation) {
    case 'getCurrentDate':
      return put(
        tools,
        part('DATE', { operation: 'now', ...zone }),
        name('currentDate'),
        '$input.date',
        keeps,
      )
    case 'addToDate':
    case 'subtractFromDate': {
      const config = {
        operation: operation === 'addToDate' ? 'add' : 'subtract',
        value: value('magnitude'),
        amount: reader.template(parameters.duration ?? 0, 'parameters.duration'),
        unit: parameters.timeUnit ?? 'days',
      }
      return put(tools, part('DATE', { ...config, ...zone }), name('newDate'), '$input.date', keeps)
    }
    case 'formatDate': {
      const format =
        parameters.format === 'custom' ? parameters.customFormat : (parameters.format ?? 'MM/dd/yyyy')
      const config = {
        operation: 'format',
        value: value('date'),
        format: reader.template(format, 'parameters.format'),
      }
      return put(tools, part('DATE', { ...config, ...zone }), name('formattedDate'), '$input.text', keeps)
    }
    case 'extractDate': {
      const format = EXTRACTS[String(parameters.part ?? 'month')]
      if (!format) throw new Error(`it extracts the ${parameters.part}`)
      const config = { operation: 'format', value: value('date'), format }
      return put(tools, part('DATE', { ...config, ...zone }), name('datePart'), '$number($input.text)', keeps)
    }
    case 'getTimeBetweenDates': {
      const units = Array.isArray(parameters.units) ? parameters.units : ['day']
      const [unit] = units.map((one) => String(one).replace(/s$/, ''))
      if (units.length !== 1 || !unit) throw new Error('it tells a time in several units')
      const config = { operation: 'difference', from: value('startDate'), to: value('endDate'), unit }
      return put(
        tools,
        part('DATE', config),
        name('timeDifference'),
        `{${quote(`${unit}s`)}: $input.difference}`,
        keeps,
      )
    }
  }
  throw new Error(`its operation ${operation} has no counterpart`)
}

const ALGORITHMS = new Set(['md5', 'sha1', 'sha256', 'sha384', 'sha512'])

function crypto({ parameters }: SourceNode, tools: Tools): Mapped {
  const { action = 'hash', type = 'MD5', encoding = 'hex' } = parameters
  const field = String(parameters.dataPropertyName ?? 'data')
  const algorithm = String(type).toLowerCase().replace('-', '')
  if (action === 'generate') {
    const { encodingType = 'uuid', stringLength = 32 } = parameters
    if (encodingType === 'uuid')
      return put(tools, part('CRYPTO', { operation: 'uuid' }), field, '$input.value', true)
    if (encodingType !== 'hex' && encodingType !== 'base64')
      throw new Error(`it makes random ${encodingType}`)
    const size = tools.reader.template(stringLength, 'parameters.stringLength')
    return put(
      tools,
      part('CRYPTO', { operation: 'randomBytes', encoding: encodingType, size }),
      field,
      '$input.value',
      true,
    )
  }
  if ((action !== 'hash' && action !== 'hmac') || !ALGORITHMS.has(algorithm))
    throw new Error(`its ${action} by ${type} has no counterpart`)
  const config = {
    operation: action,
    value: tools.reader.template(parameters.value ?? '', 'parameters.value'),
    algorithm,
    encoding,
    ...(action === 'hmac'
      ? { secret: tools.reader.template(parameters.secret ?? '', 'parameters.secret') }
      : {}),
  }
  return put(tools, part('CRYPTO', config), field, '$input.value', true)
}

export const VALUES: Record<string, Mapper> = {
  dateTime: { takes: 'item', map: dateTime },
  crypto: { takes: 'item', map: crypto },
}
