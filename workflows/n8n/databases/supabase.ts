import { type Fields, objectOf } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { type MappedNode, mapEach } from '../parts.ts'
import { signRequest } from '../signins/requests.ts'
import { isTemplate, keepText, keepTexts, listObjects, plainText, splitNames, writeCode } from '../texts.ts'

/** The variable of the team that says where its Supabase is: n8n has that in the credential. */
const BASE = '={{ $vars.SUPABASE_URL }}/rest/v1/'

/** The rows of Supabase, by its REST. */
export function mapSupabase(node: SourceNode, tools: MapperTools): MappedNode {
  const { parameters } = node
  const { resource = 'row', operation = 'create', tableId } = parameters
  const verb = VERBS[String(operation)]
  if (resource !== 'row' || verb === undefined)
    throw new Error(`Perdure has no "${String(operation)}" for it: use an HTTP_REQUEST`)
  const table = plainText(tableId)
  if (table === undefined) throw new Error('an expression names its table: write the name as it stands')
  if (table === '') throw new Error('it names no table')
  const query = readFilters(node, String(operation), tools)
  const config: Fields = {
    url: `${BASE}${encodeURIComponent(table).replaceAll('{{', '{ {')}`,
    method: verb,
    headers: { Prefer: 'return=representation', ...readProfile(node, verb) },
    ...(typeof query === 'string' || Object.keys(query).length > 0 ? { query } : {}),
    ...(operation === 'create' || operation === 'update' ? { body: readRecord(node, operation) } : {}),
    response: { format: 'json' },
  }
  const signedIn = { authentication: 'predefinedCredentialType', nodeCredentialType: 'supabaseApi' }
  Object.assign(config, signRequest({ ...node, parameters: signedIn }, tools, config))
  reportPlace(node, tools, String(operation))
  return { ...mapEach('HTTP_REQUEST', config), retry: { maxAttempts: 1 } }
}

const VERBS: Record<string, string> = {
  create: 'POST',
  delete: 'DELETE',
  get: 'GET',
  getAll: 'GET',
  update: 'PATCH',
}

function reportPlace({ raw }: SourceNode, { report }: MapperTools, operation: string): void {
  const place =
    "Make a variable SUPABASE_URL with the Host of n8n's credential (https://....supabase.co), and name that host in the " +
    '`allowedHosts` of the credential here.'
  report('parameter', 'credentials.supabaseApi', place, raw.credentials ?? null)
  if (operation !== 'create') return
  const each =
    'n8n adds the rows of all items by one request, or none of them. Perdure sends one for each item.'
  report('items', 'parameters.operation', each, operation)
}

function readProfile({ parameters }: SourceNode, verb: string): Fields {
  const { useCustomSchema = false, schema = 'public' } = parameters
  if (isTemplate(useCustomSchema)) throw new Error('an expression says whether it has a schema of its own')
  if (useCustomSchema !== true) return {}
  return { [verb === 'GET' ? 'Accept-Profile' : 'Content-Profile']: keepText(schema) }
}

function readFilters(node: SourceNode, operation: string, { report }: MapperTools): Fields | string {
  const { parameters } = node
  if (operation === 'create') return {}
  const { filterType = 'manual', filters, matchType = 'anyFilter' } = parameters
  if ([filterType, filters, matchType].some(isTemplate)) throw new Error('an expression gives its filters')
  const paged = operation === 'getAll' ? readPage(node, report) : {}
  if (operation !== 'get' && filterType === 'string') return readFilterText(node, paged)
  if (operation !== 'get' && filterType === 'none') return paged
  const conditions = listObjects(objectOf(filters).conditions)
  if (conditions.length === 0) {
    if (operation === 'getAll') return paged
    throw new Error('it has no condition, without which n8n refuses to work: say which rows are meant')
  }
  if (operation === 'get')
    return Object.fromEntries(conditions.map((one) => [nameOf(one), prefix('eq', one.keyValue)]))
  if (operation !== 'getAll' && matchType === 'allFilters')
    return Object.fromEntries(conditions.map((one) => [nameOf(one), prefix(operatorOf(one), one.keyValue)]))
  const entries = conditions.map(
    (one) => `${JSON.stringify(`${nameOf(one)}.${operatorOf(one)}.`)} + ${QUOTE}(${writeCode(one.keyValue)})`,
  )
  const list = `={{ '(' + [${entries.join(', ')}].join(',') + ')' }}`
  return { [matchType === 'allFilters' ? 'and' : 'or']: list, ...paged }
}

/** As n8n writes a value within a list of conditions. */
const QUOTE =
  '(given => (text => /[,.():"&?=\\\\]/.test(text) ? \'"\' + text.replaceAll("\\\\", "\\\\\\\\").replaceAll(\'"\', "\\\\" + \'"\') + \'"\' : text)(String(given)))'

const OPERATORS = new Set(['eq', 'gt', 'gte', 'ilike', 'is', 'lt', 'lte', 'like', 'neq'])
const SEARCHES = new Set(['fts', 'plfts', 'phfts', 'wfts'])

function operatorOf({ condition, searchFunction }: Fields): string {
  const named = condition === 'fullText' ? String(searchFunction) : String(condition)
  const known = condition === 'fullText' ? SEARCHES : OPERATORS
  if (!known.has(named)) throw new Error(`it compares by "${named}"`)
  return named
}

function nameOf({ keyName }: Fields): string {
  const name = plainText(keyName)
  if (!name) throw new Error('an expression names the column of a condition, or nothing does')
  return /[,.():"&?=\\]/.test(name) ? `"${name.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"` : name
}

/** The operator before the value, as a template. */
const prefix = (operator: string, value: unknown) =>
  `={{ ${JSON.stringify(`${operator}.`)} + String(${writeCode(value ?? '')}) }}`

/** The filter in PostgREST's own words, as a query. Each value counts of a name that comes twice. */
function readFilterText({ parameters }: SourceNode, paged: Fields): string {
  const { filterString, filterStringParameters } = parameters
  if (listObjects(objectOf(filterStringParameters).values).length > 0)
    throw new Error('its filter is a text with parameters: write an HTTP_REQUEST with a query')
  const pages = Object.entries(paged).map(([name, value]) => {
    const code = typeof value === 'number' ? String(value) : writeCode(value)
    return `[${JSON.stringify(name)}, [${code}]]`
  })
  const pairs =
    "String(text).split('&').filter(one => one).map(one => [one.split('=')[0], one.split('=').slice(1).join('=').replaceAll('+', ' ')])"
  const grouped =
    '[...new Set(all.map(([name]) => name))].map(name => [name, all.filter(one => one[0] === name).map(one => one[1])])'
  return (
    `={{ (text => (all => JSON.stringify(Object.fromEntries([...${grouped}, ${pages.join(', ')}])))(${pairs}))` +
    `(${writeCode(filterString ?? '')}) }}`
  )
}

const MOST = 1_000

function readPage({ parameters }: SourceNode, report: MapperTools['report']): Fields {
  const { returnAll = false, limit = 50, orderBy } = parameters
  if (isTemplate(returnAll)) throw new Error('an expression says whether it reads all rows')
  const most = isTemplate(limit) ? limit : Number(plainText(limit))
  if (returnAll === true || (typeof most === 'number' && most > MOST)) {
    const message =
      'n8n asks for one page of 1,000 rows after the other. Perdure asks once, and gets as many as the server gives at once: ' +
      'where there are more, ask for them in a REPEAT.'
    report('parameter', 'parameters.returnAll', message, returnAll)
  }
  return {
    ...(returnAll === true ? {} : { limit: most }),
    ...(orderBy ? { order: keepText(orderBy) } : {}),
  }
}

/** The fields of the item, or values for columns. */
function readRecord({ parameters }: SourceNode, operation: 'create' | 'update'): unknown {
  const { dataToSend = 'defineBelow', inputsToIgnore, fieldsUi } = parameters
  if ([dataToSend, inputsToIgnore, fieldsUi].some(isTemplate))
    throw new Error('an expression gives its fields')
  const list = (one: unknown) => (operation === 'create' ? [one] : one)
  if (dataToSend === 'autoMapInputData') {
    const left = JSON.stringify(splitNames(inputsToIgnore))
    const code = `Object.fromEntries(Object.entries($json).filter(([key]) => !${left}.includes(key)))`
    return `={{ ${operation === 'create' ? `[${code}]` : code} }}`
  }
  const fields = listObjects(objectOf(fieldsUi).fieldValues).map(({ fieldId, fieldValue }) => {
    const name = plainText(fieldId)
    if (!name) throw new Error('an expression names a column: write the name as it stands')
    return [name, keepTexts(fieldValue ?? '')]
  })
  return list(Object.fromEntries(fields))
}
