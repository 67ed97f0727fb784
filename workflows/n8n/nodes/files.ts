import * as v from 'valibot'
import { isObject } from '../../json.ts'
import { sheetNameField } from '../../nodes/formats.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools, NodeMapper } from '../mapper.ts'
import { type MappedNode, mapAll, mapEach } from '../parts.ts'
import { reportMissingOption } from '../report.ts'
import { isTemplate, keepText, plainText, splitNames } from '../texts.ts'
import { fileOf, fileScript, KNOWS_MARK, readEncoding, writeEncoding } from './fileparts.ts'

/** Nodes that read and write files. What an item is to do with its files is told in workflows/itemfiles.ts. */
export const FILE_MAPPERS: Record<string, NodeMapper> = {
  extractFromFile: mapExtract,
  readPDF: mapReadPdf,
  convertToFile: mapConvert,
  spreadsheetFile: mapSpreadsheet,
  moveBinaryData: mapMove,
  compression: mapCompression,
}

type Fields = Record<string, unknown>

function readOptions({ parameters }: SourceNode): Fields {
  return isObject(parameters.options) ? parameters.options : {}
}

/** Reports the options that are set and have no counterpart. */
function reportRest(options: Fields, { report }: MapperTools): void {
  for (const [key, value] of Object.entries(options))
    if (value !== undefined && value !== '' && value !== false)
      reportMissingOption(report, `parameters.options.${key}`, value)
}

/** The fields of an item that stay, its files, or both, as `keepSource` says. */
function keepOf(keepSource: unknown): Fields {
  return {
    keep: keepSource === 'json' || keepSource === 'both',
    files: keepSource === 'binary' || keepSource === 'both' ? 'all' : 'others',
  }
}

function extract(config: Fields): MappedNode {
  return { ...mapEach('EXTRACT_FROM_FILE', config), retry: { maxAttempts: 1 } }
}

const VALUE_FORMATS: Record<string, string> = {
  binaryToPropery: 'base64',
  fromJson: 'json',
  text: 'text',
  xml: 'text',
}

function mapExtract(node: SourceNode, tools: MapperTools): MappedNode {
  const { operation = 'csv', binaryPropertyName, destinationKey } = node.parameters
  const file = fileOf(binaryPropertyName)
  if (operation === 'csv' || operation === 'xlsx')
    return extract({ file, ...readRows(node, tools, operation) })
  if (operation === 'pdf') return extract({ file, ...readPdf(node, tools) })
  const format = VALUE_FORMATS[String(operation)]
  if (format === undefined) throw new Error(describeUnread(String(operation)))
  const { encoding, stripBOM, keepSource, ...rest } = readOptions(node)
  if (stripBOM === false) reportMissingOption(tools.report, 'parameters.options.stripBOM', stripBOM)
  reportRest(rest, tools)
  const how = { field: keepText(destinationKey ?? 'data') || 'data', ...keepOf(keepSource) }
  return extract({ file, format, ...(format === 'base64' ? {} : readEncoding(encoding)), item: how })
}

function describeUnread(operation: string): string {
  if (operation === 'fromIcs')
    return 'n8n reads a calendar in another shape: read it with EXTRACT_FROM_FILE, and change the nodes behind it'
  return `it reads files of the type "${operation}": have them sent as XLSX or CSV`
}

/** The rows of CSV or XLSX, by the options of both nodes that read them. */
function readRows(node: SourceNode, tools: MapperTools, operation: string): Fields {
  const options = readOptions(node)
  const { delimiter, encoding, enableBOM, fromLine, headerRow, includeEmptyCells, maxRowCount } = options
  const {
    range,
    relaxQuotes,
    sheetName,
    skipRecordsWithErrors,
    rawData: _,
    readAsString: __,
    ...rest
  } = options
  const names = [
    'delimiter',
    'encoding',
    'enableBOM',
    'fromLine',
    'headerRow',
    'includeEmptyCells',
    'maxRowCount',
  ]
  reportRest(Object.fromEntries(Object.entries(rest).filter(([key]) => !names.includes(key))), tools)
  const header = headerRow === false ? { header: false } : {}
  const empty = includeEmptyCells === true ? { empty: true } : {}
  if (operation === 'xlsx') {
    const rows = readRange(range)
    const sheet = sheetName ? { sheet: keepText(sheetName) } : {}
    return { format: 'xlsx', ...header, ...sheet, ...rows, item: empty }
  }
  const { enabled, maxSkippedRecords = -1 } = Object(Object(skipRecordsWithErrors).value)
  return {
    format: 'csv',
    ...header,
    ...(delimiter ? { delimiter: keepText(delimiter) } : {}),
    ...readEncoding(encoding),
    ...(relaxQuotes === true ? { lenient: true } : {}),
    item: {
      ...empty,
      ...(enableBOM === true ? { bom: true } : {}),
      ...(Number(fromLine) > 1 ? { fromLine: Number(fromLine) } : {}),
      ...(Number(maxRowCount) > -1 ? { maxRows: Number(maxRowCount) } : {}),
      ...(enabled === true ? { faulty: Number(maxSkippedRecords) } : {}),
    },
  }
}

function readRange(range: unknown): Fields {
  const text = plainText(range)
  if (range === undefined || text === '') return {}
  if (text !== undefined && /^\d+$/.test(text)) return { headerRow: Number(text) + 1 }
  if (text !== undefined && /^[A-Za-z]{1,3}[1-9]\d{0,6}:[A-Za-z]{1,3}[1-9]\d{0,6}$/.test(text))
    return { range: text }
  throw new Error(`it reads the cells "${range}": EXTRACT_FROM_FILE reads a range such as A1:D20`)
}

function readPdf(node: SourceNode, tools: MapperTools): Fields {
  const { password, maxPages, joinPages, keepSource, ...rest } = readOptions(node)
  if (password) throw new Error('it opens a PDF with a password: have the PDF sent without one')
  reportRest(rest, tools)
  const most = Number(maxPages)
  return {
    format: 'pdf',
    item: {
      ...keepOf(keepSource),
      ...(most > 0 ? { maxPages: most } : {}),
      ...(joinPages === false ? { apart: true } : {}),
    },
  }
}

function mapReadPdf({ parameters }: SourceNode): MappedNode {
  if (parameters.encrypted === true)
    throw new Error('it opens a PDF with a password: have the PDF sent without one')
  return extract({ file: fileOf(parameters.binaryPropertyName), format: 'pdf', item: { files: 'all' } })
}

/** The name of a file without its folders, which n8n cuts off as well. */
function readName(given: unknown, fallback?: string): Fields {
  const name = given === undefined || given === '' ? fallback : given
  if (name === undefined) return {}
  return { name: isTemplate(name) ? name : keepText(String(plainText(name)).split(/[/\\]/).at(-1)) }
}

function readType(given: unknown): Fields {
  const type = isTemplate(given) ? given : plainText(given)
  return type ? { mimeType: type } : {}
}

function mapConvert(node: SourceNode, tools: MapperTools): MappedNode {
  const {
    operation = 'csv',
    binaryPropertyName = 'data',
    sourceProperty = '',
    mode = 'once',
  } = node.parameters
  const options = readOptions(node)
  const file = readTarget(binaryPropertyName)
  if (operation === 'csv' || operation === 'xlsx') return writeRows(node, tools, operation, file, 'File')
  const { fileName, mimeType, encoding, addBOM, format, dataIsBase64, ...rest } = options
  const bom = addBOM === true && KNOWS_MARK.has(String(encoding ?? 'utf8')) ? { bom: true } : {}
  reportRest(rest, tools)
  if (operation === 'toJson') {
    const config = {
      format: 'json',
      ...readName(fileName, 'file.json'),
      mimeType: 'application/json',
      ...bom,
    }
    const shown = { ...config, ...writeEncoding(encoding), ...(format === true ? { indent: 2 } : {}) }
    if (mode === 'once') return write(mapAll, { ...shown, item: { file } })
    return write(mapEach, { ...shown, item: { file, whole: true } })
  }
  const source = { item: { file, source: keepText(sourceProperty) } }
  if (operation === 'toText' || (operation === 'toBinary' && node.version < 1.1 && dataIsBase64 === false)) {
    const type = operation === 'toText' ? { mimeType: 'text/plain' } : readType(mimeType)
    const fallback = operation === 'toText' ? 'file.txt' : undefined
    const config = { format: 'text', ...readName(fileName, fallback), ...type, ...bom }
    return write(mapEach, { ...config, ...writeEncoding(encoding), ...source })
  }
  if (operation === 'toBinary')
    return write(mapEach, { format: 'base64', ...readName(fileName), ...readType(mimeType), ...source })
  if (operation === 'iCal') throw new Error('it writes a calendar: write it with CONVERT_TO_FILE, format ics')
  throw new Error(`it writes files of the type "${operation}": write XLSX or CSV`)
}

function readTarget(name: unknown): string {
  if (isTemplate(name)) throw new Error('the name of its file is an expression: write the name itself')
  return plainText(name) || 'data'
}

function write(map: typeof mapEach, config: Fields): MappedNode {
  return { ...map('CONVERT_TO_FILE', config), retry: { maxAttempts: 1 } }
}

/** All items as the rows of one file. */
function writeRows(
  node: SourceNode,
  tools: MapperTools,
  format: string,
  file: string,
  name: string,
): MappedNode {
  const { fileName, headerRow, sheetName, delimiter, compression: _, ...rest } = readOptions(node)
  reportRest(rest, tools)
  const sheet = keepText(sheetName || 'Sheet')
  if (format === 'xlsx' && !isTemplate(sheet) && !v.is(sheetNameField, sheet))
    throw new Error(`it names its sheet "${sheetName}", which Excel cannot open`)
  return write(mapAll, {
    format,
    ...readName(fileName, `${name}.${format}`),
    ...(headerRow === false ? { header: false } : {}),
    ...(format === 'csv' && delimiter ? { delimiter: keepText(delimiter) } : {}),
    ...(format === 'xlsx' ? { sheet } : {}),
    item: { file },
  })
}

function mapSpreadsheet(node: SourceNode, tools: MapperTools): MappedNode {
  const { operation = 'fromFile', binaryPropertyName, fileFormat } = node.parameters
  if (operation === 'toFile') {
    const format = String(fileFormat ?? 'xls')
    if (format !== 'csv' && format !== 'xlsx')
      throw new Error(`it writes files of the type "${format}": write XLSX or CSV`)
    return writeRows(node, tools, format, readTarget(binaryPropertyName ?? 'data'), 'spreadsheet')
  }
  const format = node.version < 2 ? 'autodetect' : String(fileFormat ?? 'autodetect')
  if (format !== 'autodetect' && format !== 'csv' && format !== 'xlsx')
    throw new Error(`it reads files of the type "${format}": have them sent as XLSX or CSV`)
  if (format === 'autodetect') {
    const message =
      'n8n reads whatever spreadsheet comes. This node reads XLSX and fails with any other file: set format to csv if ' +
      'CSV comes.'
    tools.report('parameter', 'parameters.fileFormat', message, fileFormat ?? null)
  }
  const rows = readRows(node, tools, format === 'csv' ? 'csv' : 'xlsx')
  return extract({ file: fileOf(binaryPropertyName), ...rows })
}

function mapMove(node: SourceNode, tools: MapperTools): MappedNode {
  const { parameters } = node
  const { mode = 'binaryToJson', sourceKey = 'data', destinationKey = 'data' } = parameters
  const { encoding, keepSource, stripBOM, jsonParse, keepAsBase64, ...more } = readOptions(node)
  if (mode === 'binaryToJson') {
    if (stripBOM === false) reportMissingOption(tools.report, 'parameters.options.stripBOM', stripBOM)
    reportRest(more, tools)
    const whole = parameters.setAllData !== false
    const format = whole || jsonParse === true ? 'json' : keepAsBase64 === true ? 'base64' : 'text'
    if (keepAsBase64 === true && jsonParse === true && !whole)
      throw new Error('it reads base64 as JSON, which always fails')
    return extract({
      file: fileOf(sourceKey),
      format,
      ...(format === 'base64' ? {} : readEncoding(encoding)),
      item: {
        ...(whole ? {} : { field: keepText(destinationKey), keep: true }),
        files: keepSource === true ? 'all' : 'others',
        missing: 'skip',
      },
    })
  }
  if (mode !== 'jsonToBinary') throw new Error(`its mode "${mode}" has no counterpart`)
  const { addBOM, dataIsBase64, fileName, mimeType, useRawData, ...rest } = more
  reportRest(rest, tools)
  const whole = parameters.convertAllData !== false
  const format = dataIsBase64 === true ? 'base64' : useRawData === true ? 'text' : 'json'
  const type = readType(mimeType)
  const item = {
    file: readTarget(destinationKey),
    ...(whole ? { whole: true } : { source: keepText(sourceKey), missing: 'skip' }),
    ...(keepSource === true ? { keep: true } : whole ? {} : { keep: true, without: keepText(sourceKey) }),
    files: true,
  }
  return write(mapEach, {
    format,
    ...readName(fileName),
    ...(Object.keys(type).length > 0 || node.version > 1 || format === 'json'
      ? type
      : { mimeType: 'application/json' }),
    ...(addBOM === true && format !== 'base64' && KNOWS_MARK.has(String(encoding ?? 'utf8'))
      ? { bom: true }
      : {}),
    ...(format === 'base64' ? {} : writeEncoding(encoding)),
    item,
  })
}

function mapCompression({ parameters, version }: SourceNode): MappedNode {
  const { operation = 'decompress', binaryPropertyName = 'data', outputPrefix, fileName } = parameters
  const names = isTemplate(binaryPropertyName) ? [binaryPropertyName] : splitNames(binaryPropertyName)
  if (operation === 'decompress') {
    if (names.length !== 1)
      throw new Error('it unpacks several files of an item: unpack each with an EXTRACT_FROM_FILE')
    const item = { field: keepText(outputPrefix ?? 'file_'), unpack: true }
    return extract({ file: fileOf(names[0]), item })
  }
  const { outputFormat = 'zip', binaryPropertyOutput = 'data' } = parameters
  if (outputFormat !== 'zip' && outputFormat !== 'gzip')
    throw new Error(`it writes an archive of the type "${outputFormat}": write ZIP`)
  if (outputFormat === 'gzip' && (names.length !== 1 || version < 1.1))
    throw new Error(
      'it compresses several files, or as the first version did: write each with a CONVERT_TO_FILE',
    )
  const file = readTarget(binaryPropertyOutput)
  const scripts = names.map((name) => fileScript(name))
  if (outputFormat === 'zip') {
    const data = `={{ [${scripts.join(', ')}] }}`
    return write(mapEach, {
      format: 'zip',
      data,
      ...readName(fileName, 'file.zip'),
      item: { file, keep: true },
    })
  }
  const name = nameGzip(scripts[0]!, fileName)
  return write(mapEach, { format: 'gzip', data: `={{ ${scripts[0]} }}`, name, item: { file, keep: true } })
}

/** n8n names a compressed file by its first part and its ending. */
function nameGzip(script: string, fileName: unknown): string {
  if (isTemplate(fileName)) throw new Error('the name of its file is an expression: write the name itself')
  const own = plainText(fileName)?.replace('.gz', '').replace('.gzip', '')
  const stem = own ? JSON.stringify(own) : `${script}.fileName.split(".")[0]`
  const ending = `(${script}.fileExtension ? "." + ${script}.fileExtension.toLowerCase() : "")`
  return `={{ ${stem} + ${ending} + ".gz" }}`
}
