import { isObject } from '../../json.ts'
import { type Fields, objectOf } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { reportMissingOption } from '../report.ts'
import { modeOf, readOptionFields } from '../send/messenger.ts'
import {
  isTemplate,
  keepNumber,
  keepText,
  keepTexts,
  listObjects,
  plainText,
  writeCode,
  writeLiteral,
} from '../texts.ts'
import {
  demandOperation,
  ITEMS,
  readGoogleSignIn,
  type ServiceReader,
  type ServiceWork,
  type WorkReader,
} from './action.ts'
import { readSheetColumns } from './sheetcolumns.ts'

/** Google's sheets. */
export const readGoogleSheets: ServiceReader = (node, tools) => {
  const { parameters, version } = node
  const { resource = 'sheet', operation: given } = parameters
  if (version < 3)
    throw new Error(
      'it is of a version whose ranges name rows and columns together: let n8n bring it to version 4, and import it again',
    )
  const operation = given ?? (resource === 'spreadsheet' ? 'create' : 'read')
  const read = demandOperation(OPERATIONS, 'Google Sheets', { resource, operation })
  const credential = readGoogleSignIn(node, 'googleSheetsOAuth2Api')
  return { connector: 'google-sheets', credential, ...read(node, tools) }
}

const OPERATIONS: Record<string, WorkReader> = {
  'sheet.read': readRows,
  'sheet.append': (node, tools) => writeRows(node, tools, 'append'),
  'sheet.update': (node, tools) => writeRows(node, tools, 'update'),
  'sheet.appendOrUpdate': (node, tools) => writeRows(node, tools, 'appendOrUpdate'),
  'sheet.clear': clearCells,
  'sheet.delete': deleteCells,
  'sheet.create': createSheet,
  'sheet.remove': (node) => ({ action: 'deleteSheet', input: placeOf(node) }),
  'spreadsheet.create': createSpreadsheet,
  'spreadsheet.deleteSpreadsheet': (node) => ({
    connector: 'google-drive',
    action: 'deleteFile',
    input: { file: readBook(node.parameters.documentId) },
    shape: '{"success": true}',
  }),
}

const placeOf = ({ parameters }: SourceNode): Fields => ({
  spreadsheet: readBook(parameters.documentId),
  sheet: readSheet(parameters.sheetName),
})

function readBook(given: unknown): unknown {
  const value = isObject(given) ? given.value : given
  if (modeOf(given) !== 'url') return keepText(value)
  if (isTemplate(value)) return `={{ (/[-\\w]{25,}/.exec(String(${writeCode(value)})) || [''])[0] }}`
  return /[-\w]{25,}/.exec(plainText(value) ?? '')?.[0] ?? ''
}

const SHEET_URL = /https:\/\/docs\.google\.com\/spreadsheets\/d\/[\w-]+.*#gid=(\d+)/

/** The name of a sheet, or its id as gid=0. */
function readSheet(given: unknown): unknown {
  const value = isObject(given) ? given.value : given
  const mode = modeOf(given)
  if (mode === 'name') return keepText(value)
  if (isTemplate(value)) {
    const code = `String(${writeCode(value)})`
    if (mode === 'url') return `={{ 'gid=' + (/#gid=([0-9]+)/.exec(${code}) || ['', ''])[1] }}`
    return `={{ (id => /^[0-9]/.test(id) ? 'gid=' + parseInt(id) : id)(${code}) }}`
  }
  const text = plainText(value) ?? ''
  const id = mode === 'url' ? SHEET_URL.exec(text)?.[1] : /^(?:gid=)?(\d+)/.exec(text)?.[1]
  return id === undefined ? writeLiteral(text) : `gid=${id}`
}

function readRows(node: SourceNode, { report }: MapperTools): ServiceWork {
  const { version, parameters } = node
  const options = readOptionFields(node, 'options')
  const { dataLocationOnSheet, outputFormatting, returnFirstMatch, returnAllMatches, ...rest } = options
  for (const [key, value] of Object.entries(rest))
    reportMissingOption(report, `parameters.options.${key}`, value)
  const { general, date } = objectOf(objectOf(outputFormatting).values)
  const where = readPlace(objectOf(objectOf(dataLocationOnSheet).values), report)
  const filters = listObjects(objectOf(parameters.filtersUI).values)
  const combine = parameters.combineFilters ?? (version < 4.3 ? 'OR' : 'AND')
  if ([combine, returnFirstMatch, returnAllMatches, general, date].some(isTemplate))
    throw new Error('an expression says how it reads')
  const isFirst = version < 4.5 ? returnAllMatches !== 'returnAllMatches' : returnFirstMatch === true
  const first = version < 4.6 && combine === 'OR' ? 'each' : 'first'
  if (version <= 4.1 && filters.some((filter) => Object.values(filter).some(isTemplate))) {
    const message =
      'n8n reads once with the filters of all items together, and Perdure with those of the first item.'
    report('items', 'parameters.filtersUI', message, parameters.filtersUI)
  }
  const matching =
    filters.length === 0
      ? {}
      : {
          filters: filters.map(({ lookupColumn, lookupValue }) => ({
            column: keepText(lookupColumn) || '={{ "" }}',
            value: keepTexts(lookupValue ?? ''),
          })),
          combine: combine === 'OR' ? 'any' : 'all',
          ...(isFirst ? { matches: first } : {}),
        }
  return {
    action: 'readRows',
    input: {
      ...placeOf(node),
      ...where,
      ...matching,
      ...(general ? { values: general } : {}),
      ...(date ? { dates: date } : {}),
    },
    ...(version <= 4.1 ? { isOnce: true } : {}),
  }
}

function readPlace(given: Fields, report: MapperTools['report']): Fields {
  const {
    rangeDefinition = 'detectAutomatically',
    readRowsUntil,
    range,
    headerRow = 1,
    firstDataRow = 2,
  } = given
  switch (rangeDefinition) {
    case 'detectAutomatically':
      return readRowsUntil === 'firstEmptyRow' ? { emptyRows: 'stop' } : {}
    case 'specifyRange': {
      const message =
        'Cells that are empty at the end of a row are empty texts here, and n8n leaves them out.'
      report('parameter', 'parameters.options.dataLocationOnSheet', message, given)
      return {
        headerRow: keepNumber(headerRow, 1),
        firstRow: keepNumber(firstDataRow, 2),
        emptyRows: 'keep',
      }
    }
    case 'specifyRangeA1': {
      const text = plainText(range)
      if (text === '') return { headerRow: 1, emptyRows: 'keep' }
      if (text === undefined || /^[A-Z]*(?!1(?!\d))\d/i.test(text)) {
        const message =
          'row_number is the number of the row in the sheet here, and in n8n its number in the range: check what reads it.'
        report('parameter', 'parameters.options.dataLocationOnSheet', message, given)
      }
      return { range: keepText(range), headerRow: 1, emptyRows: 'keep' }
    }
  }
  throw new Error('an expression says where its data is')
}

const ACTIONS = { append: 'appendRows', update: 'updateRows', appendOrUpdate: 'upsertRows' }
const EXTRA: Record<string, string> = { insertInNewColumn: 'add', ignoreIt: 'ignore', error: 'refuse' }

function writeRows(node: SourceNode, { report }: MapperTools, operation: keyof typeof ACTIONS): ServiceWork {
  const { version } = node
  if (version < 4)
    throw new Error(
      'it is of version 3, which names its columns in another way: let n8n bring it to version 4, and import it again',
    )
  const options = readOptionFields(node, 'options')
  const {
    locationDefine,
    handlingExtraData = 'insertInNewColumn',
    cellFormat,
    useAppend: _,
    ...rest
  } = options
  for (const [key, value] of Object.entries(rest))
    reportMissingOption(report, `parameters.options.${key}`, value)
  const { headerRow, firstDataRow } = objectOf(objectOf(locationDefine).values)
  const { isAuto, keys, feeder } = readSheetColumns(node, operation !== 'append')
  const extra = isAuto ? EXTRA[String(handlingExtraData)] : version >= 4.4 ? 'refuse' : 'ignore'
  if (extra === undefined || isTemplate(cellFormat)) throw new Error('an expression says how it writes')
  const key = operation === 'append' ? {} : { key: demandKey(keys) }
  reportWriting(node, report, operation)
  const usual = version < 4.1 ? 'RAW' : 'USER_ENTERED'
  return {
    action: ACTIONS[operation],
    input: {
      ...placeOf(node),
      rows: ITEMS,
      ...key,
      ...(headerRow === undefined ? {} : { headerRow: keepNumber(headerRow, 1) }),
      ...(firstDataRow === undefined || operation === 'append'
        ? {}
        : { firstRow: keepNumber(firstDataRow, 2) }),
      extra,
      input: cellFormat || usual,
      ...(operation === 'update' ? { missing: 'ignore' } : {}),
    },
    isOnce: true,
    ...(feeder ? { feeder } : {}),
  }
}

function demandKey([key]: string[]): string {
  if (!key) throw new Error('it does not say by which column it finds its rows')
  return writeLiteral(key)
}

function reportWriting({ parameters }: SourceNode, report: MapperTools['report'], operation: string): void {
  const { columns } = parameters
  if (operation !== 'update') {
    const message =
      'n8n writes below the last row of the sheet that has anything, over what another execution writes there meanwhile. ' +
      'Perdure has Google insert the rows below those that follow the titles without a gap. A sheet without titles gets ' +
      'the columns that are named here, and in n8n those of the item.'
    report('items', 'parameters.operation', message, operation)
  }
  if (operation !== 'append') {
    const message =
      'A row is found by what its cell shows, as in n8n, or by its value: 1,200 is found by 1200, too. Of several items ' +
      'with the same new key n8n appends each, and Perdure one row with the values of all.'
    report('items', 'parameters.columns', message, columns)
  }
}

function clearCells(node: SourceNode): ServiceWork {
  const { clear = 'wholeSheet', keepFirstRow = false, range, startIndex } = node.parameters
  const { rowsToDelete = 1, columnsToDelete = 1 } = node.parameters
  const done = (more: Fields): ServiceWork => ({
    action: 'clearCells',
    input: { ...placeOf(node), ...more },
    passes: true,
  })
  if ([clear, keepFirstRow].some(isTemplate)) throw new Error('an expression says what it clears')
  switch (clear) {
    case 'wholeSheet':
      return done(keepFirstRow === true ? { keepFirstRow: true } : {})
    case 'specificRows': {
      const [start, count] = [writeNumber(startIndex, 1), writeNumber(rowsToDelete, 1)]
      return done({ range: `={{ (${start}) + ':' + ((${start}) + (${count}) - 1) }}` })
    }
    case 'specificColumns': {
      const start = plainText(startIndex ?? 'A')
      const count = plainText(columnsToDelete)
      if (start === undefined || count === undefined || !/^[A-Z]{1,3}$/i.test(start))
        throw new Error('an expression says which columns it clears: name the range')
      return done({ range: `${start}:${nameColumn(readColumn(start) + Number(count) - 1)}` })
    }
    case 'specificRange':
      if (isTemplate(range)) return done({ range: `={{ String(${writeCode(range)}).split('!').pop() }}` })
      return done({ range: writeLiteral((plainText(range ?? 'A:F') ?? '').split('!').pop() ?? '') })
  }
  throw new Error(`it clears "${String(clear)}"`)
}

const writeNumber = (value: unknown, usual: number) =>
  isTemplate(value) ? `Number(${writeCode(value)})` : String(Number(plainText(value ?? usual)) || usual)

const readColumn = (letters: string) =>
  [...letters.toUpperCase()].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0)

function nameColumn(at: number): string {
  const rest = Math.floor((at - 1) / 26)
  return (rest > 0 ? nameColumn(rest) : '') + String.fromCharCode(65 + ((at - 1) % 26))
}

function deleteCells(node: SourceNode, { report }: MapperTools): ServiceWork {
  const { toDelete = 'rows', startIndex, numberToDelete = 1 } = node.parameters
  if (isTemplate(toDelete)) throw new Error('an expression says whether it deletes rows or columns')
  const message =
    'n8n puts out {success: true} once for all items. Perdure puts it out for each item: check the next nodes.'
  report('items', 'parameters.operation', message, 'delete')
  const isRows = toDelete === 'rows'
  return {
    action: isRows ? 'deleteRows' : 'deleteColumns',
    input: {
      ...placeOf(node),
      start: isRows ? keepNumber(startIndex ?? 2, 2) : keepText(startIndex ?? 'A'),
      count: keepNumber(numberToDelete, 1),
    },
    shape: '{"success": true}',
  }
}

function createSheet(node: SourceNode): ServiceWork {
  const { tabColor, ...properties } = readOptionFields(node, 'options')
  if (tabColor) throw new Error('it gives the sheet a colour: set that by a createSheet with its properties')
  return {
    action: 'createSheet',
    input: {
      spreadsheet: readBook(node.parameters.documentId),
      title: keepText(node.parameters.title ?? 'n8n-sheet'),
      existing: 'skip',
      ...(Object.keys(properties).length > 0 ? { properties: keepTexts(properties) } : {}),
    },
  }
}

function createSpreadsheet(node: SourceNode): ServiceWork {
  const { locale, autoRecalc } = readOptionFields(node, 'options')
  const sheets = listObjects(objectOf(node.parameters.sheetsUi).sheetValues)
  return {
    action: 'createSpreadsheet',
    input: {
      title: keepText(node.parameters.title ?? ''),
      ...(sheets.length > 0 ? { sheets: keepTexts(sheets) } : {}),
      ...(locale ? { locale: keepText(locale) } : {}),
      ...(autoRecalc ? { autoRecalc: keepText(autoRecalc) } : {}),
    },
  }
}
