import * as v from 'valibot'
import { described, strictObject } from '../object.ts'
import { collectionField, summaryField } from './aggregation.ts'
import { datasetRulesField } from './datasets.ts'
import { computed, itemField, itemsField, labelField, nodeTypeRow, oneOf, oneOrMany } from './fields.ts'
import { LIST } from './items.ts'
import { pairsField } from './merge.ts'

const list = computed(itemsField)
const datasetInputs = v.pipe(v.array(v.unknown(), 'must be an array'), v.length(2, 'must have two entries'))

const group = v.union(
  [
    itemField,
    strictObject(
      described(
        { key: itemField, as: labelField },
        {
          key: 'The field whose value makes a group.',
          as: 'The name that it has in the output.',
        },
      ),
    ),
  ],
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
  strictObject(
    described(
      {
        operation,
        field: v.optional(itemField),
        as: v.optional(labelField),
        separator: v.optional(v.string('must be a string'), ', '),
      },
      {
        operation: 'What is made of the values.',
        field: 'The field of the items. A count needs none.',
        as: 'The name of the result. Without it such as sum_price.',
        separator: 'Of join: what stands between the values.',
      },
    ),
  ),
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
  [
    itemField,
    strictObject(
      described(
        { left: itemField, right: itemField },
        {
          left: 'The field of the items on the left.',
          right: 'The field of the items on the right.',
        },
      ),
    ),
  ],
  'must be a field or {left, right}',
)
const pairs = described(
  { left: list, right: list, on: oneOrMany(on, 'must be a field, {left, right}, or an array') },
  {
    left: 'The list on the left.',
    right: 'The list on the right.',
    on: 'The fields that must be equal: one name if it is the same in both.',
  },
)

/** Node types that bring items together: in groups, or in pairs of two lists. */
export const GROUP_NODES = {
  AGGREGATE: nodeTypeRow('pure', {
    summary: 'Outputs {items}: one for each group, with sums, counts and other results of its fields.',
    config: v.pipe(
      v.object(
        described(
          {
            items: v.optional(list),
            collect: v.optional(collectionField),
            summarize: v.optional(summaryField),
            groupBy: v.optional(oneOrMany(group, 'must be a field, {key, as}, or an array')),
            fields: v.optional(
              v.pipe(v.array(measure, 'must be an array'), v.maxLength(50, 'must have at most 50 entries')),
              [{ operation: 'count' }],
            ),
          },
          {
            items: LIST,
            collect: 'Makes one item of all, with lists of them or of their fields.',
            summarize: "Makes an item for each group, as n8n's Summarize does.",
            groupBy: 'The fields whose values make a group. Without them all items are one.',
            fields: 'What each group comes to. Without it the count.',
          },
        ),
      ),
      v.check(
        ({ groupBy }) => [groupBy ?? []].flat().every((group) => nameGroup(group) !== ''),
        'must name each group that is an expression: {key, as}',
      ),
      v.check(({ groupBy, fields }) => {
        const names = [...[groupBy ?? []].flat().map(nameGroup), ...fields.map(nameMeasure)]
        return new Set(names).size === names.length
      }, 'must not give two values the same name; set another with as'),
    ),
    main: ['items', 'groupBy', 'fields'],
  }),
  JOIN: nodeTypeRow('pure', {
    summary:
      'Outputs {items}: pairs of objects from two arrays whose keys are equal, each pair merged into one.',
    config: v.object({
      ...pairs,
      ...described(
        {
          mode: v.optional(oneOf('inner', 'left', 'right', 'outer'), 'inner'),
          prefer: v.optional(oneOf('left', 'right'), 'right'),
        },
        {
          mode: 'Which items without a partner are kept: none (inner), those of a side, or all (outer).',
          prefer: 'Whose value counts if both have the field.',
        },
      ),
    }),
    main: ['left', 'right', 'on', 'mode'],
  }),
  COMPARE_DATASETS: nodeTypeRow('pure', {
    summary: 'Compares two arrays by key; outputs {onlyLeft, onlyRight, same, different}.',
    main: ['left', 'right', 'on'],
    config: v.union(
      [
        v.object(pairs),
        v.object(
          described(
            { inputs: datasetInputs, on: pairsField, rules: v.optional(datasetRulesField) },
            {
              inputs: 'The two lists of items.',
              on: 'The fields that must be equal.',
              rules: 'How items are compared, and what stands for those that differ.',
            },
          ),
        ),
      ],
      'must have left, right and on, or inputs, on and rules',
    ),
    handles: (config) =>
      config.inputs === undefined ? [null] : ['onlyLeft', 'same', 'different', 'onlyRight'],
  }),
} as const
