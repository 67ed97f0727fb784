import { type Fields, objectOf } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import { readLocator, readOptionFields } from '../send/messenger.ts'
import { isTemplate, keepText, keepTexts, listObjects, plainText, splitNames } from '../texts.ts'
import { demandOperation, readMost, type ServiceReader, type WorkReader } from './action.ts'
import { omitFields, readTypedColumns } from './columns.ts'

/** Airtable's node. */
export const readAirtable: ServiceReader = (node, tools) => {
  const { parameters, version } = node
  const { authentication, resource = 'record', operation: given } = parameters
  const operation = String(given ?? (version < 2 ? 'read' : resource === 'base' ? 'getMany' : 'get'))
  const table: Record<string, WorkReader> = version < 2 ? OLD : resource === 'base' ? BASES : RECORDS
  const read = demandOperation(table, 'Airtable', { resource, operation }, operation)
  const isByKey = authentication === 'airtableApi' || (authentication === undefined && version < 2)
  if (isByKey) {
    const message =
      'n8n signs in with an API key, which Airtable has switched off: make a personal access token in Airtable.'
    tools.report('parameter', 'parameters.authentication', message, authentication ?? null)
  }
  const credential = authentication === 'airtableOAuth2Api' ? 'airtableOAuth2Api' : 'airtableTokenApi'
  return { connector: 'airtable', credential, ...read(node, tools) }
}

const ID = '[a-zA-Z0-9]{2,}'
const AT = 'https://airtable.com/'
const ofBase = (value: unknown) => readLocator(value, new RegExp(`${AT}(${ID})`))
const ofTable = (value: unknown) => readLocator(value, new RegExp(`${AT}${ID}/(${ID})`))
const ofView = (value: unknown) => readLocator(value, new RegExp(`${AT}${ID}/${ID}/(${ID})`))

/** n8n puts the fields of what it has read beside the id. */
const FLAT = "$merge([$sift($item, function($v, $k) { $k != 'fields' }), $item.fields])"
const flat = ({ version }: SourceNode) => (version >= 2.2 ? {} : { shape: FLAT })

const place = ({ parameters }: SourceNode): Fields => ({
  base: ofBase(parameters.base),
  table: ofTable(parameters.table),
})

const typecast = (node: SourceNode): Fields => {
  const { typecast: given } = readOptionFields(node, 'options')
  if (isTemplate(given)) throw new Error('an expression says whether values are converted')
  return given === true ? { typecast: true } : {}
}

/** n8n does not send what is not there. */
const written = (node: SourceNode, without: string[] = []) => {
  const casts = typecast(node)
  const { fields, keys } = readTypedColumns(node, casts.typecast === true, without)
  return { input: { ...place(node), fields, ...casts, skipEmpty: true }, keys }
}

const RECORDS: Record<string, WorkReader> = {
  get(node) {
    refuseDownload(readOptionFields(node, 'options').downloadFields)
    return { action: 'getRecord', input: { ...place(node), record: idOf(node) }, ...flat(node) }
  },
  search(node) {
    const { parameters, version } = node
    const { fields, view, downloadFields } = readOptionFields(node, 'options')
    refuseDownload(downloadFields)
    const input = {
      ...place(node),
      ...readFilter(parameters.filterByFormula),
      ...readFields(fields),
      ...readSort(parameters.sort),
      ...(view === undefined || view === '' ? {} : { view: ofView(view) }),
      ...readMost(node, { all: true, limit: 100 }),
    }
    return { action: 'listRecords', input, ...flat(node), ...(version < 2.1 ? { isOnce: true } : {}) }
  },
  create: (node) => ({ action: 'createRecord', input: written(node).input }),
  update(node, { report }) {
    const { keys } = readTypedColumns(node, true)
    if (keys.includes('id')) {
      const { input } = written(node, ['id'])
      return { action: 'updateRecord', input: { ...input, record: columnOfId(node) } }
    }
    const message =
      'n8n reads the table once for all items. Perdure reads it for each, at most 10,000 records, and finds what items ' +
      'before have changed.'
    report('items', 'parameters.columns', message, keys)
    return {
      action: 'updateMatching',
      input: { ...written(node).input, keys: demandKeys(keys), ...all(node) },
    }
  },
  upsert(node, { report }) {
    const { keys } = readTypedColumns(node, true)
    if (keys.includes('id')) {
      const { input } = written(node, ['id'])
      return { action: 'updateOrCreateRecord', input: { ...input, record: columnOfId(node) } }
    }
    const message =
      'If several records have these values, n8n changes the first of them (or all, if that is set). Perdure fails there, ' +
      "with Airtable's words."
    report('items', 'parameters.columns', message, keys)
    return { action: 'upsertRecord', input: { ...written(node).input, keys: demandKeys(keys) } }
  },
  deleteRecord: (node) => ({ action: 'deleteRecord', input: { ...place(node), record: idOf(node) } }),
}

const BASES: Record<string, WorkReader> = {
  getMany(node) {
    const { permissionLevel } = readOptionFields(node, 'options')
    if (isTemplate(permissionLevel)) throw new Error('an expression gives the permissions of its bases')
    const levels = Array.isArray(permissionLevel) ? permissionLevel.map(String) : []
    const shape = `$item[permissionLevel in ${JSON.stringify(levels)}]`
    const most = readMost(node, { all: true, limit: 100 })
    return {
      ...{ action: 'listBases', input: most, isOnce: true },
      ...(levels.length > 0 ? { shape } : {}),
    }
  },
  getSchema: ({ parameters }) => ({ action: 'listTables', input: { base: ofBase(parameters.base) } }),
}

const oldPlace = ({ parameters }: SourceNode): Fields => ({
  base: ofBase(parameters.application),
  table: ofTable(parameters.table),
})

/** The first version, which takes fields of the item by their names. */
const OLD: Record<string, WorkReader> = {
  append(node, { report }) {
    const message =
      'n8n adds the records of ten items by one request, or none of them. Perdure sends one for each item.'
    report('items', 'parameters.operation', message, 'append')
    const { addAllFields = true, fields } = node.parameters
    const row = readOldRow(addAllFields, fields, ['id'])
    return {
      action: 'createRecord',
      input: { ...oldPlace(node), fields: row, ...typecast(node), skipEmpty: true },
    }
  },
  list(node) {
    const { downloadAttachments = false, additionalOptions } = node.parameters
    refuseDownload(downloadAttachments)
    if (isTemplate(additionalOptions)) throw new Error('an expression gives all of its options')
    const { fields, filterByFormula, sort, view, ...rest } = objectOf(additionalOptions)
    const [more] = Object.keys(rest)
    if (more !== undefined) throw new Error(`it reads with "${more}"`)
    const input = {
      ...oldPlace(node),
      ...readFilter(filterByFormula),
      ...readFields(fields),
      ...readSort(sort),
      ...(view ? { view: keepText(view) } : {}),
      ...readMost(node, { all: true, limit: 100 }),
    }
    return { action: 'listRecords', input, isOnce: true }
  },
  read: (node) => ({ action: 'getRecord', input: { ...oldPlace(node), record: idOf(node) } }),
  update(node, { report }) {
    const message =
      'n8n changes the records of ten items by one request, or none of them. Perdure sends one for each item.'
    report('items', 'parameters.operation', message, 'update')
    const { updateAllFields = true, fields } = node.parameters
    const ignored = splitNames(readOptionFields(node, 'options').ignoreFields)
    const row = readOldRow(updateAllFields, fields, ignored.length > 0 ? ignored : ['id'])
    const input = { ...oldPlace(node), record: idOf(node), fields: row, ...typecast(node), skipEmpty: true }
    return { action: 'updateRecord', input }
  },
  delete: (node) => ({ action: 'deleteRecord', input: { ...oldPlace(node), record: idOf(node) } }),
}

const idOf = ({ parameters }: SourceNode) => keepText(parameters.id)

function readOldRow(all: unknown, fields: unknown, without: string[]): Fields | string {
  if (isTemplate(all) || isTemplate(fields)) throw new Error('an expression names its fields')
  if (all !== false) return omitFields(without)
  const names = Array.isArray(fields) ? fields.map((one) => plainText(one) ?? '') : []
  return Object.fromEntries(names.map((one) => [one, `={{ $json[${JSON.stringify(one)}] }}`]))
}

/** The column with the id, which says which record it is. */
function columnOfId({ parameters }: SourceNode): unknown {
  const { mappingMode, value } = objectOf(parameters.columns)
  return mappingMode === 'autoMapInputData' ? '={{ $json.id }}' : keepTexts(objectOf(value).id ?? '')
}

function demandKeys(keys: string[]): string[] {
  if (keys.length === 0) throw new Error('it names no column to find the record by')
  if (keys.length > 3) throw new Error('it finds the record by more than three columns')
  return keys
}

function all(node: SourceNode): Fields {
  const { updateAllMatches } = readOptionFields(node, 'options')
  if (isTemplate(updateAllMatches)) throw new Error('an expression says whether it changes all that match')
  return updateAllMatches === true ? { all: true } : {}
}

const readFilter = (given: unknown): Fields =>
  given === undefined || given === '' ? {} : { filterByFormula: keepText(given) }

function readFields(given: unknown): Fields {
  if (given === undefined) return {}
  if (isTemplate(given)) throw new Error('an expression names the fields that it reads')
  const names = splitNames(given)
  return names.length === 0 ? {} : { fields: names.map((one) => keepText(one)) }
}

function readSort(given: unknown): Fields {
  if (isTemplate(given)) throw new Error('an expression says how it sorts')
  const sort = listObjects(objectOf(given).property).map(({ field, direction = 'asc' }) => ({
    field: keepText(field),
    direction: keepText(direction),
  }))
  return sort.length === 0 ? {} : { sort }
}

function refuseDownload(given: unknown): void {
  const isEmpty = given === undefined || given === false || (Array.isArray(given) && given.length === 0)
  if (!isEmpty && given !== '')
    throw new Error('it downloads attachments: get them with an HTTP_REQUEST for each of their addresses')
}
