import { getOwn, isObject } from '../../json.ts'
import { readConditions } from '../conditions.ts'
import type { SourceNode } from '../document.ts'
import { accessPath, quoteString, unknownCode } from '../expressions/code.ts'
import {
  ITEM_LIST,
  type ItemFlow,
  type MapperTools,
  type NodeMapper,
  ONE_ITEM,
  type OutputUse,
} from '../mapper.ts'
import { createPart, type MappedNode, mapToNode, type NodePart } from '../parts.ts'
import { reportMissingOption } from '../report.ts'

/** Nodes that turn a list into another list, or into one item. */
export const LIST_MAPPERS: Record<string, NodeMapper> = {
  filter: { takes: 'list', outputFlow: findSameFlow, map: mapFilter },
  splitOut: { takes: 'list', map: mapSplitOut },
  sort: { takes: 'list', map: mapSort },
  limit: { takes: 'list', map: mapLimit },
  removeDuplicates: { takes: 'list', map: mapRemoveDuplicates },
  renameKeys: { takes: 'list', outputFlow: findRenamedFlow, map: mapRenameKeys },
  aggregate: { takes: 'collect', map: mapAggregate },
  summarize: { takes: 'collect', outputFlow: findSummaryFlow, map: mapSummarize },
  itemLists: { takes: 'list', outputFlow: findItemListsFlow, map: mapItemLists },
}

/** A list if a list arrives, one item if one item does. */
function findSameFlow(_node: SourceNode, { inputs }: OutputUse): ItemFlow {
  const [first] = inputs.flat()
  return first?.count === 'many' ? ITEM_LIST : (first ?? ONE_ITEM)
}

/** A list is filtered. For one item, the filter is a branch, which is taken or not. */
function mapFilter({ parameters }: SourceNode, tools: MapperTools): MappedNode {
  const isList = tools.input.count === 'many'
  const isAny = parameters.combineConditions === 'OR'
  const conditionTools = { report: tools.report, reader: isList ? tools.itemReader : tools.reader }
  const condition = readConditions(parameters.conditions, 'parameters.conditions', conditionTools, isAny)
  if (!isList) return { ...mapToNode('IF_ELSE', { condition }), handles: ['true'] }
  return mapToNode('FILTER', { items: `{{ ${tools.inputCode} }}`, condition })
}

/** The names in a string, separated by commas. */
function splitNames(value: unknown): string[] {
  return String(value ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
}

function mapSplitOut({ parameters }: SourceNode, { inputCode }: MapperTools): MappedNode {
  const { include = 'noOtherFields', options = {} } = parameters
  const { destinationFieldName = '', disableDotNotation } = Object(options)
  const fields = splitNames(String(parameters.fieldToSplitOut ?? '').replace(/^=/, ''))
  const [field] = fields
  if (fields.length !== 1 || !field) throw new Error('it does not split out exactly one field')
  if (include === 'allOtherFields' && destinationFieldName === '') {
    return mapToNode('SPLIT', { items: `{{ ${inputCode} }}`, field, keepOthers: true })
  }
  if (include !== 'noOtherFields')
    throw new Error(`it includes other fields in a way that Perdure does not have: "${include}"`)
  const entries = accessPath(unknownCode(inputCode), field, disableDotNotation !== true)
  const named = `{${quoteString(destinationFieldName || field)}: $}`
  // If the field gets no new name, an entry that is an object becomes the item itself.
  const item = destinationFieldName === '' ? `$type($) = "object" ? $ : ${named}` : named
  return mapToNode('TRANSFORM', { expression: `{"items": [${entries}.(${item})]}` })
}

function mapAggregate({ parameters }: SourceNode, { inputCode, report }: MapperTools): MappedNode {
  for (const [key, value] of Object.entries(Object(parameters.options ?? {}))) {
    if (key !== 'disableDotNotation') reportMissingOption(report, `parameters.options.${key}`, value)
  }
  if (parameters.aggregate === 'aggregateAllItemData') return mapToAllItems(parameters, inputCode)
  const { fieldToAggregate } = Object(parameters.fieldsToAggregate)
  const fields = (Array.isArray(fieldToAggregate) ? fieldToAggregate : []).filter(isObject).map((entry) => {
    const field = String(entry.fieldToAggregate ?? '')
    const name = entry.renameField === true ? String(entry.outputFieldName) : field.split('.').at(-1)!
    return `${quoteString(name)}: [${accessPath(unknownCode(inputCode), field)}]`
  })
  return mapToNode('TRANSFORM', { expression: `{${fields.join(', ')}}` })
}

/** One item, with a field that has all items, or some fields of them. */
function mapToAllItems(parameters: Record<string, unknown>, inputCode: string): MappedNode {
  const { include = 'allFields', destinationFieldName } = parameters
  const list = (key: string) => JSON.stringify(splitNames(parameters[key]))
  const pickFields = (test: string) =>
    `$map(${inputCode}, function($i){$sift($i, function($v, $k){${test}})})`
  const codes: Record<string, string> = {
    allFields: inputCode,
    specifiedFields: pickFields(`$k in ${list('fieldsToInclude')}`),
    allFieldsExcept: pickFields(`$not($k in ${list('fieldsToExclude')})`),
  }
  const items = getOwn(codes, String(include))
  if (!items) throw new Error(`it includes "${include}", which Perdure does not know`)
  const name = quoteString(String(destinationFieldName ?? 'data'))
  return mapToNode('TRANSFORM', { expression: `{${name}: [${items}]}` })
}

function mapSort({ parameters }: SourceNode, { inputCode }: MapperTools): MappedNode {
  const items = `{{ ${inputCode} }}`
  if (parameters.type === 'random') return mapToNode('RANDOM', { operation: 'shuffle', items })
  if (parameters.type === 'code') throw new Error('it sorts with code')
  const { sortField } = Object(parameters.sortFieldsUi)
  const by = (Array.isArray(sortField) ? sortField : []).filter(isObject).map(({ fieldName, order }) => ({
    key: String(fieldName),
    order: order === 'descending' ? 'desc' : 'asc',
  }))
  return mapToNode('SORT', { items, ...(by.length > 0 ? { by } : {}) })
}

function mapLimit({ parameters }: SourceNode, { inputCode, reader }: MapperTools): MappedNode {
  const count = reader.readTemplate(parameters.maxItems ?? 1, 'parameters.maxItems')
  const keep = parameters.keep === 'lastItems' ? 'last' : 'first'
  return mapToNode('LIMIT', { items: `{{ ${inputCode} }}`, count, keep })
}

function mapRemoveDuplicates({ parameters }: SourceNode, { inputCode }: MapperTools): MappedNode {
  const { operation = 'removeDuplicateInputItems', compare = 'allFields', fieldsToCompare } = parameters
  if (operation !== 'removeDuplicateInputItems' && operation !== 'removeDuplicates') {
    throw new Error('it compares the items with those of earlier executions')
  }
  const items = `{{ ${inputCode} }}`
  if (compare === 'allFields') return mapToNode('DEDUPLICATE', { items })
  if (compare !== 'selectedFields')
    throw new Error(`it compares "${compare}", and Perdure only all fields or those that are named`)
  const { fields } = Object(fieldsToCompare)
  const by = Array.isArray(fields)
    ? fields.map((entry) => String(Object(entry).fieldName))
    : splitNames(fieldsToCompare)
  return mapToNode('DEDUPLICATE', { items, by })
}

/** By aggregation: our operation for it, and what n8n puts in front of the name of the field. */
const AGGREGATIONS: Record<string, { operation: string; prefix: string }> = {
  count: { operation: 'count', prefix: 'count' },
  countUnique: { operation: 'countUnique', prefix: 'unique_count' },
  sum: { operation: 'sum', prefix: 'sum' },
  average: { operation: 'avg', prefix: 'average' },
  min: { operation: 'min', prefix: 'min' },
  max: { operation: 'max', prefix: 'max' },
  append: { operation: 'collect', prefix: 'appended' },
  concatenate: { operation: 'join', prefix: 'concatenated' },
}

function mapSummarize({ parameters }: SourceNode, { inputCode }: MapperTools): MappedNode {
  const { values } = Object(parameters.fieldsToSummarize)
  const fields = (Array.isArray(values) ? values : []).filter(isObject).map(readSummaryField)
  if (Object(parameters.options).outputFormat === 'singleItem')
    throw new Error('it puts all groups into one item')
  const groupBy = splitNames(parameters.fieldsToSplitBy)
  const config = { items: `{{ ${inputCode} }}`, fields }
  if (groupBy.length > 0) return mapToNode('AGGREGATE', { ...config, groupBy })
  return { parts: [createPart('AGGREGATE', config), createFirstItemPart()] }
}

const SEPARATORS = new Set([',', ', ', '\n', '', ' '])

function readSummaryField(entry: Record<string, unknown>): Record<string, unknown> {
  const { aggregation = 'count', field, separateBy = ',', customSeparator } = entry
  const known = getOwn(AGGREGATIONS, String(aggregation))
  if (!known) throw new Error(`its aggregation "${aggregation}" has no counterpart`)
  const { operation, prefix } = known
  const listed = SEPARATORS.has(String(separateBy)) ? String(separateBy) : ','
  const separator = separateBy === 'other' ? String(customSeparator ?? ',') : listed
  return {
    operation,
    field: String(field),
    as: `${prefix}_${String(field).replaceAll('.', '_')}`,
    ...(operation === 'join' ? { separator } : {}),
  }
}

/** One summary for each group. Without groups, there is only one. */
function findSummaryFlow({ parameters }: SourceNode): ItemFlow {
  return splitNames(parameters.fieldsToSplitBy).length > 0 ? ITEM_LIST : ONE_ITEM
}

function mapRenameKeys({ parameters }: SourceNode, tools: MapperTools): MappedNode {
  const { key } = Object(parameters.keys)
  const pairs = (Array.isArray(key) ? key : [])
    .filter(isObject)
    .map(({ currentKey, newKey }) => [String(currentKey), String(newKey)])
  for (const [name, value] of Object.entries(Object(parameters.additionalOptions))) {
    reportMissingOption(tools.report, `parameters.additionalOptions.${name}`, value)
  }
  const rename = createPart('RENAME_KEYS', {
    items: `{{ ${tools.inputCode} }}`,
    keys: Object.fromEntries(pairs),
  })
  return { parts: tools.input.count === 'many' ? [rename] : [rename, createFirstItemPart()] }
}

function findRenamedFlow(node: SourceNode, use: OutputUse): ItemFlow {
  return findSameFlow(node, use).count === 'many' ? ITEM_LIST : ONE_ITEM
}

/** Our nodes for lists output a list even if it has only one item. */
function createFirstItemPart(): NodePart {
  return createPart('TRANSFORM', { expression: '$input.items[0]' }, '__one')
}

/** The Item Lists node, which was later replaced by these nodes. */
function mapItemLists(node: SourceNode, tools: MapperTools): MappedNode {
  switch (node.parameters.operation ?? 'splitOutItems') {
    case 'splitOutItems':
      return mapSplitOut(node, tools)
    case 'sort':
      return mapSort(node, tools)
    case 'limit':
      return mapLimit(node, tools)
    case 'removeDuplicates':
      return mapRemoveDuplicates(node, tools)
    case 'summarize':
      return mapSummarize(node, tools)
    default:
      return mapAggregate(node, tools)
  }
}

function findItemListsFlow(node: SourceNode): ItemFlow {
  const operation = String(node.parameters.operation ?? 'splitOutItems')
  if (operation === 'summarize') return findSummaryFlow(node)
  return operation === 'aggregateItems' || operation === 'concatenateItems' ? ONE_ITEM : ITEM_LIST
}
