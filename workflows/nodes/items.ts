import * as v from 'valibot'
import { strictObject } from '../object.ts'
import { collectionField, summaryField } from './aggregation.ts'
import { conditionsField, eitherCondition } from './conditions.ts'
import { datasetRulesField } from './datasets.ts'
import {
  anyObject,
  computed,
  conditionAt,
  conditionField,
  itemField,
  itemsField,
  labelField,
  nodeTypeRow,
  oneOf,
  oneOrMany,
  textField,
  wholeNumber,
} from './fields.ts'
import { pairsField } from './merge.ts'

const list = computed(itemsField)
const flag = v.boolean('must be true or false')
const names = v.union(
  [textField, v.array(v.string('must be a string'))],
  'must be names in an array, or in a string with commas',
)
const renamePairs = v.pipe(
  v.array(
    strictObject({ from: v.string('must be a string'), to: v.string('must be a string') }),
    'must be an array',
  ),
  v.maxLength(500, 'must have at most 500 entries'),
)
const datasetInputs = v.pipe(v.array(v.unknown(), 'must be an array'), v.length(2, 'must have two entries'))
const fields = oneOrMany(itemField, 'must be a field or an array of fields')
const count = computed(wholeNumber(0, 1_000_000_000))

const group = v.union(
  [itemField, strictObject({ key: itemField, as: labelField })],
  'must be a field or {key, as}',
)
const operation = oneOf(
  'count',
  'countUnique',
  'sum',
  'avg',
  'min',
  'max',
  'collect',
  'first',
  'last',
  'join',
)
const measure = v.pipe(
  strictObject({
    operation,
    field: v.optional(itemField),
    as: v.optional(labelField),
    separator: v.optional(v.string('must be a string'), ', '),
  }),
  v.check(({ operation, field }) => operation === 'count' || field !== undefined, 'needs a field'),
)

export type AggregateGroup = v.InferOutput<typeof group>
export type AggregateMeasure = v.InferOutput<typeof measure>

/** The key under which an AGGREGATE outputs a group's value; '' for an expression, which needs {key, as}. */
export function nameGroup(group: AggregateGroup): string {
  if (typeof group === 'string') return group.includes('{{') ? '' : group
  return group.as
}

/** The key of a measure: `as`, else `sum_price`, or only the operation if its field is not a name. */
export function nameMeasure({ operation, field, as }: AggregateMeasure): string {
  return as ?? (field === undefined || field.includes('{{') ? operation : `${operation}_${field}`)
}

const on = v.union(
  [itemField, strictObject({ left: itemField, right: itemField })],
  'must be a field or {left, right}',
)
const pairs = { left: list, right: list, on: oneOrMany(on, 'must be a field, {left, right}, or an array') }

/**
 * Node types that work on items. An input that is not an array counts as one item, a missing one as no items.
 */
export const ITEM_NODES = {
  FILTER: nodeTypeRow('pure', {
    summary: 'Outputs {items}: the items for which the condition holds ($item, $index).',
    config: v.pipe(
      v.object({
        items: v.optional(list),
        condition: v.optional(conditionField),
        conditions: v.optional(conditionsField),
      }),
      eitherCondition(),
    ),
    conditions: (config) => conditionAt('condition', config.condition),
  }),
  MAP: nodeTypeRow('pure', {
    summary: 'Outputs {items}: the value of the expression for each item ($item, $index).',
    config: v.object({ items: list, expression: textField }),
    conditions: (config) => conditionAt('expression', config.expression),
  }),
  AGGREGATE: nodeTypeRow('pure', {
    summary: 'Outputs {items}: one for each group, with sums, counts and other results of its fields.',
    config: v.pipe(
      v.object({
        items: v.optional(list),
        collect: v.optional(collectionField),
        summarize: v.optional(summaryField),
        groupBy: v.optional(oneOrMany(group, 'must be a field, {key, as}, or an array')),
        fields: v.optional(
          v.pipe(v.array(measure, 'must be an array'), v.maxLength(50, 'must have at most 50 entries')),
          [{ operation: 'count' }],
        ),
      }),
      v.check(
        ({ groupBy }) => [groupBy ?? []].flat().every((group) => nameGroup(group) !== ''),
        'must name each group that is an expression: {key, as}',
      ),
      v.check(({ groupBy, fields }) => {
        const names = [...[groupBy ?? []].flat().map(nameGroup), ...fields.map(nameMeasure)]
        return new Set(names).size === names.length
      }, 'must not give two values the same name; set another with as'),
    ),
  }),
  SORT: nodeTypeRow('pure', {
    summary: 'Outputs {items} sorted by one or more keys or, without keys, by the items themselves.',
    config: v.object({
      items: v.optional(list),
      compare: v.optional(oneOf('exact', 'loose')),
      dots: v.optional(flag),
      by: v.optional(
        oneOrMany(
          v.union(
            [itemField, strictObject({ key: itemField, order: v.optional(oneOf('asc', 'desc'), 'asc') })],
            'must be a field or {key, order}',
          ),
          'must be a field, {key, order: asc or desc}, or an array',
        ),
      ),
      order: v.optional(oneOf('asc', 'desc'), 'asc'),
    }),
  }),
  LIMIT: nodeTypeRow('pure', {
    summary: 'Outputs {items}: the first or the last items, as many as count says, after an offset.',
    config: v.object({
      items: v.optional(list),
      count,
      offset: v.optional(count, 0),
      keep: v.optional(oneOf('first', 'last'), 'first'),
    }),
  }),
  DEDUPLICATE: nodeTypeRow('pure', {
    summary: 'Outputs {items} without duplicates, compared by fields or as whole items.',
    config: v.object({
      items: v.optional(list),
      except: v.optional(v.array(textField, 'must be an array')),
      only: v.optional(flag),
      types: v.optional(oneOf('checked', 'nulls')),
      dots: v.optional(flag),
      by: v.optional(fields),
      keep: v.optional(oneOf('first', 'last'), 'first'),
    }),
  }),
  SPLIT: nodeTypeRow('pure', {
    summary:
      'Outputs {items}: the entries of an array, the parts of a string, or the entries of a field of each item.',
    config: v.pipe(
      v.object({
        value: v.optional(v.union([textField, itemsField], 'must be a string or an array')),
        separator: v.optional(textField),
        trim: v.optional(v.boolean('must be true or false'), false),
        items: v.optional(list),
        field: v.optional(labelField),
        keepOthers: v.optional(flag, false),
        fields: v.optional(names),
        as: v.optional(names),
        include: v.optional(oneOf('none', 'all', 'selected')),
        missing: v.optional(oneOf('ignore', 'error')),
        names: v.optional(names),
        dots: v.optional(flag),
      }),
      v.check(
        ({ value, items, field, fields }) =>
          fields !== undefined
            ? value === undefined && items === undefined && field === undefined
            : (value === undefined) === (items !== undefined) &&
              (items === undefined) === (field === undefined),
        'must have either value, or items and field, or fields',
      ),
    ),
  }),
  RENAME_KEYS: nodeTypeRow('pure', {
    summary: 'Outputs {items} with some of their keys renamed.',
    config: v.pipe(
      v.object({
        items: v.optional(list),
        pairs: v.optional(renamePairs),
        keys: v.optional(
          v.pipe(
            anyObject,
            v.check(
              (keys) => Object.values(keys).every((name) => v.is(labelField, name)),
              'must give each key its new name',
            ),
          ),
        ),
      }),
      v.check(
        ({ keys, pairs }) => (keys === undefined) !== (pairs === undefined),
        'must have either keys or pairs',
      ),
    ),
  }),
  JOIN: nodeTypeRow('pure', {
    summary:
      'Outputs {items}: pairs of objects from two arrays whose keys are equal, each pair merged into one.',
    config: v.object({
      ...pairs,
      mode: v.optional(oneOf('inner', 'left', 'right', 'outer'), 'inner'),
      prefer: v.optional(oneOf('left', 'right'), 'right'),
    }),
  }),
  COMPARE_DATASETS: nodeTypeRow('pure', {
    summary: 'Compares two arrays by key; outputs {onlyLeft, onlyRight, same, different}.',
    config: v.union(
      [
        v.object(pairs),
        v.object({ inputs: datasetInputs, on: pairsField, rules: v.optional(datasetRulesField) }),
      ],
      'must have left, right and on, or inputs, on and rules',
    ),
    handles: (config) =>
      config.inputs === undefined ? [null] : ['onlyLeft', 'same', 'different', 'onlyRight'],
  }),
} as const
