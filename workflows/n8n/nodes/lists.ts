import { isObject } from '../../inputs.ts'
import { readConditions } from '../conditions.ts'
import type { SourceNode } from '../document.ts'
import { type Code, enter, quote } from '../javascript.ts'
import { type Flow, LIST, type Mapped, type Mapper, ONE, part, type Tools } from '../mapper.ts'

const passes: NonNullable<Mapper['gives']> = (_node, { inputs }) => {
  const [first] = inputs.flat()
  return first?.card === 'many' ? LIST : (first ?? ONE)
}

/** On one item a branch, on a list a list. */
const filter: Mapper = {
  takes: 'list',
  gives: passes,
  map({ parameters }, tools) {
    const reader = tools.input.card === 'many' ? tools.each : tools.reader
    const any = parameters.combineConditions === 'OR'
    const condition = readConditions(
      parameters.conditions,
      'parameters.conditions',
      { ...tools, reader },
      any,
    )
    if (tools.input.card === 'one') return { parts: [part('IF_ELSE', { condition })], handles: ['true'] }
    return { parts: [part('FILTER', { items: `{{ ${tools.source} }}`, condition })] }
  },
}

/** A field by its path, behind JSONata for the item. */
export function dig(code: Code, field: string, dots = true): string {
  return (dots ? field.split('.') : [field]).reduce((at, key) => enter(at, key), code).text
}

const names = (value: unknown) =>
  String(value ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')

function splitOut({ parameters }: SourceNode, tools: Tools): Mapped {
  const { include = 'noOtherFields', options = {} } = parameters
  const { destinationFieldName = '', disableDotNotation } = Object(options)
  const fields = names(String(parameters.fieldToSplitOut ?? '').replace(/^=/, ''))
  const [field] = fields
  if (fields.length !== 1 || !field) throw new Error('it splits several fields at once')
  const dots = disableDotNotation !== true
  if (include === 'allOtherFields' && destinationFieldName === '') {
    return { parts: [part('SPLIT', { items: `{{ ${tools.source} }}`, field, keepOthers: true })] }
  }
  if (include !== 'noOtherFields') throw new Error('it keeps some of the other fields')
  const entries = dig({ text: tools.source, hint: 'unknown' }, field, dots)
  const named = `{${quote(destinationFieldName || field)}: $}`
  const entry = destinationFieldName === '' ? `$type($) = "object" ? $ : ${named}` : named
  return { parts: [part('TRANSFORM', { expression: `{"items": [${entries}.(${entry})]}` })] }
}

function aggregate({ parameters }: SourceNode, tools: Tools): Mapped {
  const { aggregate: how = 'aggregateIndividualFields', options = {}, include = 'allFields' } = parameters
  const source = tools.source
  for (const [key, value] of Object.entries(Object(options))) {
    if (key !== 'disableDotNotation')
      tools.complain('parameter', `parameters.options.${key}`, 'There is no such option', value)
  }
  if (how === 'aggregateAllItemData') {
    const name = quote(String(parameters.destinationFieldName ?? 'data'))
    const list = (key: string) => JSON.stringify(names(parameters[key]))
    const kept: Record<string, string> = {
      allFields: source,
      specifiedFields: `$map(${source}, function($i){$sift($i, function($v, $k){$k in ${list('fieldsToInclude')}})})`,
      allFieldsExcept: `$map(${source}, function($i){$sift($i, function($v, $k){$not($k in ${list('fieldsToExclude')})})})`,
    }
    const items = kept[String(include)]
    if (!items) throw new Error(`it includes ${include}`)
    return { parts: [part('TRANSFORM', { expression: `{${name}: [${items}]}` })] }
  }
  const { fieldToAggregate } = Object(parameters.fieldsToAggregate)
  const fields = (Array.isArray(fieldToAggregate) ? fieldToAggregate : []).filter(isObject).map((entry) => {
    const field = String(entry.fieldToAggregate ?? '')
    const name = entry.renameField === true ? String(entry.outputFieldName) : field.split('.').at(-1)!
    return `${quote(name)}: [${dig({ text: source, hint: 'unknown' }, field)}]`
  })
  return { parts: [part('TRANSFORM', { expression: `{${fields.join(', ')}}` })] }
}

function sort({ parameters }: SourceNode, tools: Tools): Mapped {
  const items = `{{ ${tools.source} }}`
  if (parameters.type === 'random') return { parts: [part('RANDOM', { operation: 'shuffle', items })] }
  if (parameters.type === 'code') throw new Error('it sorts by code')
  const { sortField } = Object(parameters.sortFieldsUi)
  const by = (Array.isArray(sortField) ? sortField : []).filter(isObject).map(({ fieldName, order }) => ({
    key: String(fieldName),
    order: order === 'descending' ? 'desc' : 'asc',
  }))
  return { parts: [part('SORT', { items, ...(by.length > 0 ? { by } : {}) })] }
}

function limit({ parameters }: SourceNode, { source, reader }: Tools): Mapped {
  const count = reader.template(parameters.maxItems ?? 1, 'parameters.maxItems')
  const keep = parameters.keep === 'lastItems' ? 'last' : 'first'
  return { parts: [part('LIMIT', { items: `{{ ${source} }}`, count, keep })] }
}

function removeDuplicates({ parameters }: SourceNode, { source }: Tools): Mapped {
  const { operation = 'removeDuplicateInputItems', compare = 'allFields', fieldsToCompare } = parameters
  if (operation !== 'removeDuplicateInputItems' && operation !== 'removeDuplicates') {
    throw new Error('it remembers the items of earlier runs')
  }
  const items = `{{ ${source} }}`
  if (compare === 'allFields') return { parts: [part('DEDUPLICATE', { items })] }
  if (compare !== 'selectedFields') throw new Error(`it compares ${compare}`)
  const listed = Object(fieldsToCompare).fields
  const by = Array.isArray(listed)
    ? listed.map((entry) => String(Object(entry).fieldName))
    : names(fieldsToCompare)
  return { parts: [part('DEDUPLICATE', { items, by })] }
}

const MEASURES: Record<string, { operation: string; name: string }> = {
  count: { operation: 'count', name: 'count' },
  countUnique: { operation: 'countUnique', name: 'unique_count' },
  sum: { operation: 'sum', name: 'sum' },
  average: { operation: 'avg', name: 'average' },
  min: { operation: 'min', name: 'min' },
  max: { operation: 'max', name: 'max' },
  append: { operation: 'collect', name: 'appended' },
  concatenate: { operation: 'join', name: 'concatenated' },
}

const SEPARATORS: Record<string, string> = { ',': ',', ', ': ', ', '\n': '\n', '': '', ' ': ' ' }

function summarize({ parameters }: SourceNode, tools: Tools): Mapped {
  const { values } = Object(parameters.fieldsToSummarize)
  const fields = (Array.isArray(values) ? values : []).filter(isObject).map((entry) => {
    const { aggregation = 'count', field, separateBy = ',' } = entry
    const measure = MEASURES[String(aggregation)]
    if (!measure) throw new Error(`it makes the ${aggregation}`)
    const separator =
      separateBy === 'other' ? String(entry.customSeparator ?? ',') : (SEPARATORS[String(separateBy)] ?? ',')
    const as = `${measure.name}_${String(field).replaceAll('.', '_')}`
    return {
      operation: measure.operation,
      field: String(field),
      as,
      ...(measure.operation === 'join' ? { separator } : {}),
    }
  })
  if (Object(parameters.options).outputFormat === 'singleItem')
    throw new Error('it puts all groups into one item')
  const groupBy = names(parameters.fieldsToSplitBy)
  const config = { items: `{{ ${tools.source} }}`, fields }
  if (groupBy.length > 0) return { parts: [part('AGGREGATE', { ...config, groupBy })] }
  return { parts: [part('AGGREGATE', config), part('TRANSFORM', { expression: '$input.items[0]' }, '__one')] }
}

function renameKeys({ parameters }: SourceNode, tools: Tools): Mapped {
  const { key } = Object(parameters.keys)
  const pairs = (Array.isArray(key) ? key : [])
    .filter(isObject)
    .map(({ currentKey, newKey }) => [String(currentKey), String(newKey)])
  for (const [name, value] of Object.entries(Object(parameters.additionalOptions))) {
    tools.complain('parameter', `parameters.additionalOptions.${name}`, 'There is no such option', value)
  }
  const main = part('RENAME_KEYS', { items: `{{ ${tools.source} }}`, keys: Object.fromEntries(pairs) })
  return {
    parts:
      tools.input.card === 'many'
        ? [main]
        : [main, part('TRANSFORM', { expression: '$input.items[0]' }, '__one')],
  }
}

const COLLECTS = new Set(['aggregateItems', 'concatenateItems'])

/** The older node for all of these, by its operation. */
function itemLists(node: SourceNode, tools: Tools): Mapped {
  switch (node.parameters.operation ?? 'splitOutItems') {
    case 'splitOutItems':
      return splitOut(node, tools)
    case 'sort':
      return sort(node, tools)
    case 'limit':
      return limit(node, tools)
    case 'removeDuplicates':
      return removeDuplicates(node, tools)
    case 'summarize':
      return summarize(node, tools)
    default:
      return aggregate(node, tools)
  }
}

const grouped = ({ parameters }: SourceNode): Flow =>
  names(parameters.fieldsToSplitBy).length > 0 ? LIST : ONE

const list = (map: Mapper['map']): Mapper => ({ takes: 'list', map })

export const LISTS: Record<string, Mapper> = {
  filter,
  splitOut: list(splitOut),
  sort: list(sort),
  limit: list(limit),
  removeDuplicates: list(removeDuplicates),
  renameKeys: {
    takes: 'list',
    gives: (node, asked) => (passes(node, asked).card === 'many' ? LIST : ONE),
    map: renameKeys,
  },
  aggregate: { takes: 'collect', map: aggregate },
  summarize: { takes: 'collect', gives: grouped, map: summarize },
  itemLists: {
    takes: 'list',
    gives(node) {
      const operation = String(node.parameters.operation ?? 'splitOutItems')
      if (operation === 'summarize') return grouped(node)
      return COLLECTS.has(operation) ? ONE : LIST
    },
    map: itemLists,
  },
}
