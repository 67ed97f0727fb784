import { getOwn, isObject } from '../../json.ts'
import { type Fields, objectOf } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import { readOptionFields } from '../send/messenger.ts'
import { isTemplate, keepText, keepTexts, listObjects, plainText, writeCode, writeLiteral } from '../texts.ts'
import { demandOperation, readMost, type ServiceReader, type ServiceWork, type WorkReader } from './action.ts'
import { readBlocks, readFilterCondition, readKey, readProperties } from './notionvalues.ts'

/** The version of the API that n8n speaks, in which texts and blocks have other names than in later ones. */
const VERSION = { notionVersion: '2021-08-16' }

/** Notion's node. */
export const readNotion: ServiceReader = (node, tools) => {
  const { parameters, version } = node
  if (version < 2 || version >= 3)
    throw new Error(
      `it is of version ${version}, and Perdure knows those of version 2: make it anew in n8n with that`,
    )
  const { authentication = 'apiKey', resource = 'page' } = parameters
  const operation = parameters.operation ?? getOwn<string>(USUAL, String(resource))
  const read = demandOperation(OPERATIONS, 'Notion', { resource, operation })
  const credential = authentication === 'oAuth2' ? 'notionOAuth2Api' : 'notionApi'
  const work = read(node, tools)
  return { connector: 'notion', credential, ...work, input: { ...work.input, ...VERSION } }
}

const USUAL = { page: 'create', databasePage: 'create', block: 'append', database: 'get', user: 'get' }

const OPERATIONS: Record<string, WorkReader> = {
  'databasePage.create': (node) => {
    const { title, propertiesUi } = node.parameters
    return {
      action: 'createDatabasePage',
      input: {
        database: databaseOf(node),
        ...(title === undefined || title === '' ? {} : { title: keepText(title) }),
        properties: readProperties(propertiesUi, ZONE),
        ...childrenOf(node),
        ...iconOf(node),
        ...simpleOf(node),
      },
    }
  },
  'databasePage.get': (node) => ({ action: 'getPage', input: { page: pageOf(node), ...simpleOf(node) } }),
  'databasePage.update': (node) => ({
    action: 'updatePage',
    input: {
      page: pageOf(node),
      properties: readProperties(node.parameters.propertiesUi, ZONE),
      ...iconOf(node),
      ...simpleOf(node),
    },
  }),
  'databasePage.getAll': (node) => {
    const { downloadFiles, sort } = readOptionFields(node, 'options')
    if (downloadFiles !== undefined && downloadFiles !== false)
      throw new Error('it downloads files: get them with an HTTP_REQUEST for each of their addresses')
    const sorts = listObjects(objectOf(sort).sortValue).map((one) => ({
      direction: keepText(one.direction ?? 'ascending'),
      [one.timestamp === true ? 'timestamp' : 'property']:
        one.timestamp === true ? keepText(one.key) : readKey(one.key).name,
    }))
    return {
      action: 'queryDatabase',
      input: {
        database: databaseOf(node),
        ...filterOf(node),
        ...(sorts.length > 0 ? { sorts } : {}),
        ...readMost(node, { limit: 50 }),
        ...simpleOf(node),
      },
    }
  },
  'page.create': (node) => ({
    action: 'createPage',
    input: {
      page: pageOf(node),
      title: keepText(node.parameters.title),
      ...childrenOf(node),
      ...iconOf(node),
      ...simpleOf(node),
    },
  }),
  'page.archive': (node) => ({ action: 'archivePage', input: { page: pageOf(node), ...simpleOf(node) } }),
  'page.search': (node) => {
    const { filter } = readOptionFields(node, 'options')
    const { value } = objectOf(objectOf(filter).filters)
    return searchFor(node, value === undefined ? {} : { object: keepText(value) })
  },
  'database.get': (node) => ({
    action: 'getDatabase',
    input: { database: databaseOf(node), ...simpleOf(node) },
  }),
  'database.getAll': (node) => ({
    action: 'search',
    input: { object: 'database', ...readMost(node, { limit: 50 }), ...simpleOf(node) },
  }),
  'database.search': (node) => searchFor(node, { object: 'database' }),
  'block.append': (node) => ({
    action: 'appendBlocks',
    input: { block: blockOf(node), children: readBlocks(node.parameters.blockUi) },
  }),
  'block.getAll': (node) => {
    const { fetchNestedBlocks = false, simplifyOutput = true } = node.parameters
    if (fetchNestedBlocks !== false) throw new Error('it reads the blocks inside of blocks')
    if (isTemplate(simplifyOutput)) throw new Error('an expression says whether its output is simplified')
    const isSimple = simplifyOutput === true && node.version > 2
    const parent = '$exists($item.parent.page_id) ? $item.parent.page_id : $item.parent.block_id'
    return {
      action: 'listBlocks',
      input: {
        block: blockOf(node),
        ...readMost(node, { limit: 50 }),
        ...(isSimple ? { simple: true } : {}),
      },
      shape: isSimple
        ? '$merge([{"parent_id": $item.root_id}, $item])'
        : `$merge([{"parent_id": ${parent}}, $item])`,
    }
  },
  'user.get': ({ parameters }) => ({ action: 'getUser', input: { user: keepText(parameters.userId) } }),
  'user.getAll': (node) => ({ action: 'listUsers', input: readMost(node, { limit: 50 }) }),
}

/** The time zone of the workflow, by Luxon's name for it. */
const ZONE = 'default'

function searchFor(node: SourceNode, more: Fields): ServiceWork {
  const { sort } = readOptionFields(node, 'options')
  const { sortValue } = objectOf(sort)
  const { text } = node.parameters
  return {
    action: 'search',
    input: {
      ...(text === undefined || text === '' ? {} : { query: keepText(text) }),
      ...more,
      ...(isObject(sortValue) ? { sort: keepTexts(sortValue) } : {}),
      ...readMost(node, { limit: 50 }),
      ...simpleOf(node),
    },
  }
}

function filterOf({ parameters }: SourceNode): Fields {
  const { filterType = 'none', matchType = 'anyFilter', filters, filterJson } = parameters
  if (filterType === 'none') return {}
  if (filterType === 'json') {
    const parse = '(text => { try { return JSON.parse(text) } catch { return text } })'
    return { filter: `={{ ${parse}(${writeCode(filterJson ?? '')}\n) }}` }
  }
  if (filterType !== 'manual' || isTemplate(matchType) || isTemplate(filters))
    throw new Error('an expression says how it filters')
  const conditions = listObjects(objectOf(filters).conditions).map((one) => readFilterCondition(one, ZONE))
  return { filter: { [matchType === 'allFilters' ? 'and' : 'or']: conditions } }
}

function simpleOf({ parameters }: SourceNode): Fields {
  const { simple = true } = parameters
  if (isTemplate(simple)) throw new Error('an expression says whether its output is simplified')
  return simple === true ? { simple } : {}
}

function childrenOf({ parameters }: SourceNode): Fields {
  const children = readBlocks(parameters.blockUi)
  return children.length === 0 ? {} : { children }
}

function iconOf(node: SourceNode): Fields {
  const { icon, iconType } = readOptionFields(node, 'options')
  if (icon === undefined || icon === '') return {}
  return { icon: iconType === 'file' ? { external: { url: keepText(icon) } } : { emoji: keepText(icon) } }
}

const ID = '[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}'

const databaseOf = ({ parameters }: SourceNode) => readPlace(parameters.databaseId, `(?:^|[/-])(${ID})`)
const pageOf = ({ parameters }: SourceNode) =>
  readPlace(parameters.pageId, `(?:[?&]p=|[/-]|^)(${ID})(?!.*[?&]p=)`)
const blockOf = ({ parameters }: SourceNode) =>
  readPlace(parameters.blockId, `(?:#|[?&]p=|[/-]|^)(${ID})(?!.*#[0-9a-f]{32})`)

/** The id in the address of a page, a database or a block; an id stays as it is. */
function readPlace(given: unknown, pattern: string): unknown {
  const { mode, value } = isObject(given) ? given : { mode: 'id', value: given }
  if (mode !== 'url') {
    const id = keepText(value)
    if (!isTemplate(id) && plainText(id)?.includes('://')) return readPlace({ mode: 'url', value }, pattern)
    return id
  }
  if (isTemplate(value))
    return `={{ (new RegExp(${JSON.stringify(pattern)}).exec(String(${writeCode(value)})) ?? [])[1] ?? '' }}`
  const [, id] = new RegExp(pattern).exec(plainText(value) ?? '') ?? []
  if (id === undefined) throw new Error('it names what it is about by a URL that is not understood')
  return writeLiteral(id)
}
