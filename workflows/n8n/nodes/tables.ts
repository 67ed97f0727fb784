import { getOwn, isObject } from '../../json.ts'
import { MAX_TABLE_ROWS, ROW_KEYS } from '../../nodes/tables.ts'
import { type Fields, objectOf } from '../ai/asking.ts'
import type { ToolGiven } from '../ai/fromai.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools, NodeMapper } from '../mapper.ts'
import { type MappedNode, mapEach } from '../parts.ts'
import { type ProblemReporter, reportMissingOption } from '../report.ts'
import { isTemplate, keepText, keepTexts, listObjects, plainText } from '../texts.ts'
import { codeOf, demandConditions, readTableConditions } from './tableconditions.ts'

/** The rows of n8n's data tables, in tables of the team that have the same names. */
export const TABLE_MAPPERS: Record<string, NodeMapper> = { dataTable: mapDataTable }

function mapDataTable(node: SourceNode, tools: MapperTools): MappedNode {
  const mapped = mapEach('DATA_TABLE', readTableWork(node, tools))
  reportFailures(node, tools.report)
  return objectOf(node.parameters.options).optimizeBulk === true ? countInserted(node, mapped) : mapped
}

/** Data tables as tools: the same settings, with the model's arguments in them. */
export function mapTableTool({ node, tools, args, report }: ToolGiven): Fields {
  const parameters = args.read(node.parameters)
  const { output: _, ...config } = readTableWork({ ...node, parameters }, { ...tools, report })
  return { type: 'DATA_TABLE', ...config }
}

function readTableWork(node: SourceNode, tools: MapperTools): Fields {
  const { resource = 'row', operation = 'insert', dataTableId, options } = node.parameters
  if (resource !== 'row')
    throw new Error(
      `it does "${String(operation)}" with a table itself, and a workflow here works with rows alone: make, change and ` +
        'delete tables in the console or by the API',
    )
  const read = getOwn(OPERATIONS, String(operation))
  if (!read) throw new Error(`Perdure has no "${String(operation)}" for rows: use a DATA_TABLE that does it`)
  const table = readTable(dataTableId)
  readOptions(options, String(operation), tools.report)
  const config = { table, ...read(node, tools) }
  const passesOn = operation === 'rowExists' || operation === 'rowNotExists'
  if (!passesOn) reportRows(tools.report, dataTableId)
  return config
}

type Reader = (node: SourceNode, tools: MapperTools) => Fields

const OPERATIONS: Record<string, Reader> = {
  insert(node, { report }) {
    const message =
      'n8n adds the rows of all items together, or none of them. Perdure adds one after the other: if one cannot be added, ' +
      'those before it stay.'
    report('items', 'parameters.operation', message, 'insert')
    return { operation: 'insert', rows: readValues(node), output: 'rows' }
  },
  get: readGet,
  update(node) {
    const values = demandValues(readValues(node))
    return { operation: 'update', values, ...demandConditions(node), output: 'rows' }
  },
  upsert: readUpsert,
  deleteRows: (node) => ({ operation: 'delete', ...demandConditions(node), output: 'rows' }),
  rowExists: (node) => ({ operation: 'exists', ...readEquals(node), output: 'found' }),
  rowNotExists: (node) => ({ operation: 'exists', ...readEquals(node), output: 'missing' }),
}

/** These two compare in one way only, whatever the document has from other operations. */
const readEquals = (node: SourceNode) => readTableConditions(node, { equals: true })

/** The name of the table, or its id in n8n if the document does not say the name. */
function readTable(given: unknown): string {
  const { mode, value, cachedResultName } = isObject(given) ? given : { value: given }
  if (isTemplate(value)) throw new Error('an expression says which table it is: name the table')
  const known = mode === 'name' ? undefined : plainText(cachedResultName)
  const named = known || plainText(value)
  if (!named) throw new Error('it names no table')
  return named
}

function readOptions(given: unknown, operation: string, report: ProblemReporter): void {
  if (isTemplate(given)) throw new Error('an expression gives all of its options')
  const { optimizeBulk: _, dryRun = false, ...rest } = objectOf(given)
  if (dryRun !== false && operation !== 'insert')
    throw new Error(
      'it is a dry run, or an expression says whether it is one: read the rows with a DATA_TABLE that selects them',
    )
  for (const [key, value] of Object.entries(rest))
    reportMissingOption(report, `parameters.options.${key}`, value)
}

function readGet(node: SourceNode, { report }: MapperTools): Fields {
  const { returnAll = false, limit = 50 } = node.parameters
  if (typeof returnAll !== 'boolean') throw new Error('an expression says whether it reads all rows')
  const most = isTemplate(limit) ? limit : Number(plainText(limit))
  // More than are read at once are all rows: it fails if there are more than that, and leaves none out.
  const isBounded = !returnAll && (typeof most === 'string' || (most > 0 && most <= MAX_TABLE_ROWS))
  return {
    operation: 'select',
    ...readTableConditions(node),
    ...readSort(node, report),
    ...(isBounded ? { limit: most } : {}),
    output: 'rows',
  }
}

function readSort({ parameters }: SourceNode, report: ProblemReporter): Fields {
  const { orderBy = false, orderByColumn = 'createdAt', orderByDirection = 'DESC' } = parameters
  if (orderBy === false) return {}
  if ([orderBy, orderByColumn, orderByDirection].some(isTemplate))
    throw new Error('an expression says how it sorts the rows: write the column and the direction')
  const name = plainText(orderByColumn) ?? ''
  if (name === '') return {}
  if (name === 'updatedAt')
    throw new Error('it sorts by "updatedAt": keep the time in a column of your own, and sort by that')
  const sign = orderByDirection === 'ASC' ? '' : '-'
  // Ids grow with the time.
  if (name === 'createdAt' || name === 'id') return { sort: `${sign}id` }
  const message =
    'Rows without a value in the column come last here in both directions, and texts are sorted by their signs, capitals ' +
    'before small letters. In n8n both depend on its database.'
  report('parameter', 'parameters.orderByColumn', message, orderByColumn)
  return { sort: sign + name }
}

/** What it writes: the columns with their values, or an expression for the item. */
function readValues({ parameters }: SourceNode): Fields | string {
  if (isTemplate(parameters.columns)) throw new Error('an expression gives all of its columns')
  const { mappingMode = 'defineBelow', value, schema } = objectOf(parameters.columns)
  if (isTemplate(mappingMode)) throw new Error('an expression says how its columns are given')
  if (mappingMode === 'autoMapInputData') return '={{ $json }}'
  if (!isObject(value)) throw new Error('it has no values to write')
  const taken = Object.keys(value).find((key) => (ROW_KEYS as readonly string[]).includes(key))
  if (taken) throw new Error(`it writes "${taken}", which every row gets by itself: leave it out`)
  const types = new Map(listObjects(schema).map(({ id, type }) => [id, type]))
  return Object.fromEntries(
    Object.entries(value).map(([key, given]) => [
      key,
      types.get(key) === 'string' ? asText(given) : keepTexts(given),
    ]),
  )
}

/** n8n makes texts of numbers for columns of text. */
function asText(given: unknown): unknown {
  if (typeof given === 'number') return String(given)
  const code = codeOf(given)
  if (code === undefined) return keepTexts(given)
  return `={{ ((value) => typeof value === "number" ? String(value) : value)(${code}\n) }}`
}

function demandValues(values: Fields | string): Fields | string {
  if (typeof values === 'string' || Object.keys(values).length > 0) return values
  throw new Error('it has no values to write')
}

const MAX_KEYS = 5
const OTHER_UPSERT =
  'it looks for the row by something else than that columns have the values which it writes: read the row with a ' +
  'DATA_TABLE, and update or insert it behind an IF_ELSE'

/** n8n changes the rows that fulfil the conditions, or adds one. Ours finds the row by columns that are written. */
function readUpsert(node: SourceNode, { report }: MapperTools): Fields {
  const rows = demandValues(readValues(node))
  const { match } = demandConditions(node)
  const conditions = listObjects(objectOf(node.parameters.filters).conditions)
  const written = objectOf(objectOf(node.parameters.columns).value)
  const keys = conditions.map(({ keyName = 'id', condition = 'eq', keyValue = '' }) => {
    const key = plainText(keyName) ?? ''
    const isOwn =
      typeof rows === 'string' ? readsField(keyValue, key) : isSame(getOwn(written, key), keyValue)
    if (condition !== 'eq' || isTemplate(keyName) || !isOwn) throw new Error(OTHER_UPSERT)
    return key
  })
  const isAny = match === 'any' && keys.length > 1
  if (isAny || keys.length > MAX_KEYS || new Set(keys).size < keys.length) throw new Error(OTHER_UPSERT)
  const message =
    'If several rows have these values, n8n changes all of them, and Perdure the oldest: make the columns unique. An item ' +
    'without a value for one of them fails here.'
  report('items', 'parameters.filters', message, node.parameters.filters)
  return { operation: 'upsert', rows, keys, output: 'rows' }
}

const isSame = (written: unknown, wanted: unknown) =>
  written !== undefined && written !== null && keepText(written) === keepText(wanted)

/** Whether the value is that field of the item. */
function readsField(value: unknown, key: string): boolean {
  const code = codeOf(value)
  return [`$json.${key}`, `$json["${key}"]`, `$json['${key}']`].some((one) => one === code)
}

function reportRows(report: ProblemReporter, original: unknown): void {
  const message =
    "The id of a row is a UUID here, and no number: check what computes, compares or keeps ids. The table's columns must " +
    'have the names that they have in n8n, and values their types: a number is not taken for a text that is compared with.'
  report('parameter', 'parameters.dataTableId', message, original)
}

function reportFailures({ raw }: SourceNode, report: ProblemReporter): void {
  const goesOn = raw.continueOnFail === true || /^continue/.test(String(raw.onError ?? ''))
  if (!goesOn) return
  const message =
    'If this fails, its item goes on with the error in words of Perdure. n8n passes the item on as it came for some of the ' +
    'faults, such as values that do not fit the table: check the nodes that read it.'
  report('items', 'onError', message, raw.onError ?? true)
}

/** n8n puts out how many rows it has added, in one item, and not the rows. */
function countInserted({ raw }: SourceNode, mapped: MappedNode): MappedNode {
  if (raw.continueOnFail === true || /^continue/.test(String(raw.onError ?? '')))
    throw new Error(
      'it counts the rows that it adds ("Optimize Bulk"), and goes on if that fails: do without one of the two',
    )
  const expression = '{"success": true, "insertedRows": $count($input.items)}'
  return { ...mapped, shaper: { type: 'TRANSFORM', config: { expression } } }
}
