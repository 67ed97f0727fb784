import { getOwn, isObject } from '../../json.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools, NodeMapper } from '../mapper.ts'
import { type MappedNode, mapEach } from '../parts.ts'
import { reportMissingOption } from '../report.ts'
import { isTemplate, keepNumber, keepText, keepTexts, plainText } from '../texts.ts'
import { fileOf } from './fileparts.ts'
import { translateMoment } from './moment.ts'

/** Nodes that put a value into a field of the item. */
export const VALUE_MAPPERS: Record<string, NodeMapper> = { dateTime: mapDateTime, crypto: mapCrypto }

type Fields = Record<string, unknown>

function mapDateTime(node: SourceNode, tools: MapperTools): MappedNode {
  return node.version < 2 ? mapFirstDate(node, tools) : mapSecondDate(node)
}

function mapSecondDate({ parameters }: SourceNode): MappedNode {
  const options = isObject(parameters.options) ? parameters.options : {}
  const { operation = 'getCurrentDate' } = parameters
  const value = (key: string) => keepTexts(parameters[key] ?? '')
  const into = (field: string, keep = options.includeInputFields === true) => ({
    into: { field: keepText(parameters.outputFieldName ?? field), keep },
  })
  const zone = options.timezone ? { timezone: keepText(options.timezone) } : {}
  switch (operation) {
    case 'getCurrentDate':
      return mapEach('DATE', {
        operation: 'now',
        ...(parameters.includeTime === false ? { midnight: true } : {}),
        ...zone,
        ...into('currentDate'),
      })
    case 'addToDate':
    case 'subtractFromDate':
      return mapEach('DATE', {
        operation: operation === 'addToDate' ? 'add' : 'subtract',
        value: value('magnitude'),
        amount: keepNumber(parameters.duration, 0),
        unit: keepText(parameters.timeUnit ?? 'days'),
        ...into('newDate'),
      })
    case 'formatDate': {
      const format =
        parameters.format === 'custom' ? parameters.customFormat : (parameters.format ?? 'MM/dd/yyyy')
      const from = options.fromFormat ? { inputFormat: keepText(options.fromFormat) } : {}
      // n8n writes the date in the workflow's own time zone whichever zone is named here.
      const local = options.timezone ? { timezone: WORKFLOW_ZONE } : {}
      return mapEach('DATE', {
        operation: 'format',
        value: value('date'),
        format: keepText(format),
        ...from,
        ...local,
        ...into('formattedDate'),
      })
    }
    case 'roundDate': {
      const isUp = parameters.mode === 'roundUp'
      const unit = isUp ? (parameters.to ?? 'month') : (parameters.toNearest ?? 'month')
      return mapEach('DATE', {
        operation: isUp ? 'roundUp' : 'startOf',
        value: value('date'),
        unit: keepText(unit),
        ...into('roundedDate'),
      })
    }
    case 'extractDate':
      return mapEach('DATE', {
        operation: 'extract',
        value: value('date'),
        unit: keepText(parameters.part ?? 'month'),
        ...into('datePart'),
      })
    case 'getTimeBetweenDates': {
      const units = Array.isArray(parameters.units) ? parameters.units.map(String) : ['day']
      return mapEach('DATE', {
        operation: 'difference',
        from: value('startDate'),
        to: value('endDate'),
        unit: units[0] ?? 'day',
        units,
        ...(options.isoString === true ? { iso: true } : {}),
        ...into('timeDifference'),
      })
    }
  }
  throw new Error(`its operation "${operation}" has no counterpart`)
}

const WORKFLOW_ZONE = '={{ $now.zoneName }}'

/** Version 1 writes dates in the formats of another library. */
function mapFirstDate({ parameters }: SourceNode, { report }: MapperTools): MappedNode {
  const { action = 'format', dataPropertyName = 'data' } = parameters
  const options = isObject(parameters.options) ? parameters.options : {}
  const into = { into: { field: keepText(dataPropertyName), keep: true } }
  if (action === 'calculate') {
    const { operation = 'add', duration = 0, timeUnit = 'days' } = parameters
    if (options.fromFormat) throw new Error('it reads dates in a format of its own')
    return mapEach('DATE', {
      operation,
      value: keepTexts(parameters.value ?? ''),
      amount: keepNumber(duration, 0),
      unit: keepText(timeUnit),
      utc: true,
      ...into,
    })
  }
  const custom = parameters.custom === true
  const given = String(plainText(parameters.toFormat) ?? (custom ? '' : 'MM/DD/YYYY'))
  if (isTemplate(parameters.toFormat))
    throw new Error('its format is an expression in the words of another library')
  const format = translateMoment(given)
  if (format === undefined) throw new Error(`its format "${given}" has no counterpart`)
  const from = options.fromFormat ? translateMoment(String(plainText(options.fromFormat) ?? '')) : undefined
  if (options.fromFormat && from === undefined)
    throw new Error('it reads dates in a format that has no counterpart')
  if (options.fromTimezone)
    reportMissingOption(report, 'parameters.options.fromTimezone', options.fromTimezone)
  const zone = options.toTimezone
    ? keepText(options.toTimezone)
    : options.fromTimezone
      ? WORKFLOW_ZONE
      : undefined
  return mapEach('DATE', {
    operation: 'format',
    value: keepTexts(parameters.value ?? ''),
    format,
    ...(from ? { inputFormat: from } : {}),
    timezone: zone ?? 'UTC',
    ...into,
  })
}

const ALGORITHMS: Record<string, string> = {
  md5: 'md5',
  sha1: 'sha1',
  sha256: 'sha256',
  sha384: 'sha384',
  sha512: 'sha512',
  'sha3-256': 'sha3-256',
  'sha3-384': 'sha3-384',
  'sha3-512': 'sha3-512',
}

function mapCrypto({ parameters, raw }: SourceNode, { report }: MapperTools): MappedNode {
  const { action = 'hash' } = parameters
  const into = { into: { field: keepText(parameters.dataPropertyName ?? 'data') } }
  if (action === 'generate') return mapEach('CRYPTO', { ...readGenerate(parameters), ...into })
  const type = String(plainText(parameters.type ?? 'MD5')).toLowerCase()
  const algorithm = getOwn(ALGORITHMS, type)
  if (action === 'sign') throw new Error('it signs with a private key')
  if ((action !== 'hash' && action !== 'hmac') || !algorithm)
    throw new Error(`its algorithm "${parameters.type}" has no counterpart`)
  const config: Fields = {
    operation: action,
    ...(parameters.binaryData === true
      ? { file: fileOf(parameters.binaryPropertyName) }
      : { value: keepTexts(parameters.value ?? '') }),
    algorithm,
    encoding: keepText(parameters.encoding ?? 'hex'),
    ...into,
  }
  if (action === 'hash') return mapEach('CRYPTO', config)
  if (isObject(raw.credentials) && Object.keys(raw.credentials).length > 0 && !parameters.secret)
    report(
      'credential',
      'credentials',
      'The secret of the HMAC is a credential in n8n: set it on the node.',
      null,
    )
  return mapEach('CRYPTO', { ...config, secret: keepText(parameters.secret ?? '') || ' ' })
}

function readGenerate({ encodingType = 'uuid', stringLength = 32 }: Fields): Fields {
  if (encodingType === 'uuid') return { operation: 'uuid' }
  if (encodingType !== 'hex' && encodingType !== 'base64')
    throw new Error(`it generates a random value of the type "${encodingType}"`)
  return { operation: 'randomBytes', encoding: encodingType, chars: keepNumber(stringLength, 32) }
}
