import { getOwn, isObject } from '../../json.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools, NodeMapper } from '../mapper.ts'
import { type MappedNode, mapAll, mapEach } from '../parts.ts'
import { isTemplate, keepNumber, keepText, listObjects, plainText, splitNames, writeCode } from '../texts.ts'

/** Nodes that make a list of another one, or one item of it. */
export const LIST_MAPPERS: Record<string, NodeMapper> = {
  splitOut: mapSplitOut,
  sort: mapSort,
  limit: mapLimit,
  removeDuplicates: mapRemoveDuplicates,
  renameKeys: mapRenameKeys,
  aggregate: mapAggregate,
  summarize: mapSummarize,
  itemLists: mapItemLists,
}

type Fields = Record<string, unknown>

function readOptions({ parameters }: SourceNode): Fields {
  return isObject(parameters.options) ? parameters.options : {}
}

const plainNames = (node: SourceNode) =>
  readOptions(node).disableDotNotation === true ? { dots: false } : {}

/** Names that are known now, or the template of a text with names. */
function keepNames(value: unknown): string | string[] {
  return isTemplate(value) ? value : splitNames(value)
}

function mapSplitOut(node: SourceNode): MappedNode {
  const { parameters } = node
  const { include = 'noOtherFields', fieldsToInclude } = parameters
  const { destinationFieldName, includeBinary } = readOptions(node)
  const known: Record<string, string> = {
    noOtherFields: 'none',
    allOtherFields: 'all',
    selectedOtherFields: 'selected',
  }
  const which = getOwn(known, String(include))
  if (!which) throw new Error(`it includes other fields in a way that Perdure does not have: "${include}"`)
  const fields = keepNames(parameters.fieldToSplitOut)
  if (fields.length === 0) throw new Error('it names no field to split out')
  return mapEach('SPLIT', {
    fields,
    ...(destinationFieldName ? { as: keepNames(destinationFieldName) } : {}),
    include: which,
    ...(includeBinary === true ? { files: true } : {}),
    ...(node.type === 'itemLists' && node.version < 2 ? { missing: 'error' } : {}),
    ...(which === 'selected' ? { names: keepNames(readList(fieldsToInclude)) } : {}),
    ...plainNames(node),
  })
}

/** Names in a text, or in the lists of the Item Lists node. */
function readList(value: unknown): unknown {
  if (!isObject(value)) return value
  return listObjects(value.fields).map(({ fieldName }) => String(fieldName))
}

const INCLUDED = new Set(['allFields', 'specifiedFields', 'allFieldsExcept'])

function mapAggregate(node: SourceNode): MappedNode {
  const { parameters } = node
  const { mergeLists, keepMissing, includeBinaries, keepOnlyUnique } = readOptions(node)
  const files = includeBinaries === true ? { files: keepOnlyUnique === true ? 'unique' : 'all' } : {}
  if (parameters.aggregate === 'aggregateAllItemData') {
    const {
      destinationFieldName = 'data',
      include = 'allFields',
      fieldsToInclude,
      fieldsToExclude,
    } = parameters
    if (!INCLUDED.has(String(include)))
      throw new Error(`it includes "${include}", which Perdure does not know`)
    return mapAll('AGGREGATE', {
      collect: {
        into: keepText(destinationFieldName),
        ...files,
        ...(include === 'specifiedFields' ? { include: splitNames(readList(fieldsToInclude)) } : {}),
        ...(include === 'allFieldsExcept' ? { except: splitNames(readList(fieldsToExclude)) } : {}),
      },
    })
  }
  const { fieldToAggregate } = Object(parameters.fieldsToAggregate)
  const fields = listObjects(fieldToAggregate).map(({ fieldToAggregate, renameField, outputFieldName }) => ({
    field: String(plainText(fieldToAggregate) ?? ''),
    ...(renameField === true ? { as: String(plainText(outputFieldName) ?? '') } : {}),
  }))
  return mapAll('AGGREGATE', {
    collect: {
      fields,
      ...files,
      ...(mergeLists === true ? { mergeLists: true } : {}),
      ...(keepMissing === true ? { keepMissing: true } : {}),
      ...plainNames(node),
    },
  })
}

function mapSort(node: SourceNode): MappedNode {
  const { parameters } = node
  if (parameters.type === 'random')
    return mapAll('RANDOM', { operation: 'shuffle', items: '{{ $input.items }}' })
  if (parameters.type === 'code') {
    const code = String(parameters.code ?? '')
    const source = `return $input.all().sort((a, b) => {\n${code}\n})`
    return mapAll('CODE', { language: 'javascript', mode: 'all', code: source, style: 'code' })
  }
  const by = listObjects(Object(parameters.sortFieldsUi).sortField).map(({ fieldName, order }) => ({
    key: String(plainText(fieldName) ?? ''),
    order: order === 'descending' ? 'desc' : 'asc',
  }))
  if (by.length === 0) throw new Error('it names no field to sort by')
  return mapAll('SORT', { by, compare: 'loose', ...plainNames(node) })
}

function mapLimit({ parameters }: SourceNode): MappedNode {
  const keep = parameters.keep === 'lastItems' ? 'last' : 'first'
  return mapAll('LIMIT', { count: keepNumber(parameters.maxItems, 1), keep })
}

function mapRemoveDuplicates(node: SourceNode, tools: MapperTools): MappedNode {
  const { parameters, version } = node
  const { operation = 'removeDuplicateInputItems', compare = 'allFields' } = parameters
  if (operation === 'removeItemsSeenInPreviousExecutions') return mapSkipSeen(node, tools)
  if (operation !== 'removeDuplicateInputItems' && operation !== 'removeDuplicates')
    throw new Error(
      'it forgets what it has seen: give the SKIP_SEEN node another name in "shared", which begins anew',
    )
  const named = (key: string) => {
    const names = splitNames(readList(parameters[key]))
    if (names.length === 0) throw new Error('it names no field to compare')
    return names
  }
  return mapAll('DEDUPLICATE', {
    ...(compare === 'selectedFields' ? { by: named('fieldsToCompare') } : {}),
    ...(compare === 'allFieldsExcept' ? { except: named('fieldsToExclude') } : {}),
    ...(readOptions(node).removeOtherFields === true ? { only: true } : {}),
    types: version > 1 && node.type === 'removeDuplicates' ? 'nulls' : 'checked',
    ...plainNames(node),
  })
}

/** n8n compares texts of values: what is missing is an empty one. */
function mapSkipSeen(node: SourceNode, { report }: MapperTools): MappedNode {
  const { logic = 'removeItemsWithAlreadySeenKeyValues', dedupeValue } = node.parameters
  if (logic !== 'removeItemsWithAlreadySeenKeyValues')
    throw new Error(
      'it passes what is higher or later than all before: keep that in the static data of a CODE node, and use a FILTER',
    )
  const { scope = 'node', historySize = DEFAULT_HISTORY } = readOptions(node)
  if (isTemplate(scope) || isTemplate(historySize))
    throw new Error('an expression says how much it remembers, or where')
  const history = Math.min(Math.max(Math.round(Number(historySize)) || 1, 1), 100_000)
  const full = `If more than ${history} values come together, n8n fails. Perdure goes on, and forgets the oldest ones.`
  report('parameter', 'parameters.options.historySize', full, historySize)
  const key = `={{ (value => value === undefined || value === null ? '' : String(value))(${writeCode(dedupeValue)}) }}`
  return mapAll('SKIP_SEEN', {
    by: key,
    grouped: true,
    ...(history === DEFAULT_HISTORY ? {} : { history }),
    ...(scope === 'workflow' ? { shared: 'workflow' } : {}),
  })
}

const DEFAULT_HISTORY = 10_000

function mapSummarize(node: SourceNode): MappedNode {
  const { parameters, version } = node
  const { outputFormat, skipEmptySplitFields, continueIfFieldNotFound } = readOptions(node)
  const fields = listObjects(Object(parameters.fieldsToSummarize).values).map(readMeasure)
  const by = splitNames(parameters.fieldsToSplitBy)
  return mapAll('AGGREGATE', {
    summarize: {
      fields,
      ...(by.length > 0 ? { by } : {}),
      ...(skipEmptySplitFields === true ? { skipEmpty: true } : {}),
      ...(outputFormat === 'singleItem' ? { single: true } : {}),
      ...(version === 1 ? { textKeys: true } : {}),
      ...(version === 1 && continueIfFieldNotFound !== true ? { missing: 'error' } : {}),
      ...plainNames(node),
    },
  })
}

const OPERATIONS = new Set(['append', 'average', 'concatenate', 'count', 'countUnique', 'max', 'min', 'sum'])

function readMeasure(entry: Fields): Fields {
  const { aggregation = 'count', field = '', includeEmpty, separateBy = ',', customSeparator = '' } = entry
  if (!OPERATIONS.has(String(aggregation)))
    throw new Error(`its aggregation "${aggregation}" has no counterpart`)
  const separator = separateBy === 'other' ? customSeparator : separateBy
  return {
    operation: aggregation,
    field: String(plainText(field) ?? ''),
    ...(includeEmpty === true ? { includeEmpty: true } : {}),
    ...(aggregation === 'concatenate' ? { separator: String(plainText(separator) ?? '') } : {}),
  }
}

function mapRenameKeys({ parameters }: SourceNode): MappedNode {
  const { regexReplacement } = Object(parameters.additionalOptions)
  if (listObjects(Object(regexReplacement).replacements).length > 0)
    throw new Error('it renames keys by regular expressions: rename them with CODE')
  const pairs = listObjects(Object(parameters.keys).key).map(({ currentKey = '', newKey = '' }) => ({
    from: keepText(currentKey),
    to: keepText(newKey),
  }))
  return mapEach('RENAME_KEYS', { pairs })
}

/** The Item Lists node, which was later replaced by these nodes. */
function mapItemLists(node: SourceNode, tools: MapperTools): MappedNode {
  const { operation = 'splitOutItems' } = node.parameters
  switch (operation) {
    case 'splitOutItems':
      return mapSplitOut(node)
    case 'sort':
      return mapSort(node)
    case 'limit':
      return mapLimit(node)
    case 'removeDuplicates':
      return mapRemoveDuplicates(node, tools)
    case 'summarize':
      return mapSummarize(node)
    case 'aggregateItems':
    case 'concatenateItems':
      return mapAggregate(node)
  }
  throw new Error(`its operation "${operation}" has no counterpart`)
}
