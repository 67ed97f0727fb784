import * as v from 'valibot'
import { object } from '../object.ts'
import {
  choice,
  computed,
  condition,
  conditionAt,
  field,
  items,
  label,
  node,
  oneOrMany,
  record,
  text,
  whole,
} from './fields.ts'

const list = computed(items)
const fields = oneOrMany(field, 'must be a field or an array of fields')
const count = computed(whole(0, 1_000_000_000))

const group = v.union([field, object({ key: field, as: label })], 'must be a field or {key, as}')
const operation = choice(
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
  object({
    operation,
    field: v.optional(field),
    as: v.optional(label),
    separator: v.optional(v.string('must be a text'), ', '),
  }),
  v.check(({ operation, field }) => operation === 'count' || field !== undefined, 'needs a field'),
)

export type Group = v.InferOutput<typeof group>
export type Measure = v.InferOutput<typeof measure>

/** The key under which an AGGREGATE outputs a group's value; an expression has none by itself. */
export function nameGroup(group: Group): string {
  if (typeof group === 'string') return group.includes('{{') ? '' : group
  return group.as
}

/** The key of a measure: `as`, else count or sum_price; an expression has no name of its own. */
export function nameMeasure({ operation, field, as }: Measure): string {
  return as ?? (field === undefined || field.includes('{{') ? operation : `${operation}_${field}`)
}

const on = v.union([field, object({ left: field, right: field })], 'must be a field or {left, right}')
const pairs = { left: list, right: list, on: oneOrMany(on, 'must be a field, {left, right}, or an array') }

/** What makes lists of lists: each outputs {items}; a value that is no array counts as one item, nothing as none. */
export const ITEMS = {
  FILTER: node('pure', {
    summary: 'Outputs {items}: those of its items for which the condition holds ($item, $index).',
    config: v.object({ items: list, condition }),
    conditions: (config) => conditionAt('condition', config.condition),
  }),
  MAP: node('pure', {
    summary: 'Outputs {items}: what the expression makes of each item ($item, $index).',
    config: v.object({ items: list, expression: text }),
    conditions: (config) => conditionAt('expression', config.expression),
  }),
  AGGREGATE: node('pure', {
    summary: 'Outputs {items}: one for each group, with sums, counts and the like of its fields.',
    config: v.pipe(
      v.object({
        items: list,
        groupBy: v.optional(oneOrMany(group, 'must be a field, {key, as}, or an array')),
        fields: v.optional(
          v.pipe(v.array(measure, 'must be an array'), v.maxLength(50, 'must hold at most 50')),
          [{ operation: 'count' }],
        ),
      }),
      v.check(
        ({ groupBy }) => [groupBy ?? []].flat().every((group) => nameGroup(group) !== ''),
        'must name what an expression groups by: {key, as}',
      ),
      v.check(({ groupBy, fields }) => {
        const names = [...[groupBy ?? []].flat().map(nameGroup), ...fields.map(nameMeasure)]
        return new Set(names).size === names.length
      }, 'must not give two values the same name: see as'),
    ),
  }),
  SORT: node('pure', {
    summary: 'Outputs {items} in order of one or more keys; without keys, of the items themselves.',
    config: v.object({
      items: list,
      by: v.optional(
        oneOrMany(
          v.union(
            [field, object({ key: field, order: v.optional(choice('asc', 'desc'), 'asc') })],
            'must be a field or {key, order}',
          ),
          'must be a field, {key, order: asc or desc}, or an array',
        ),
      ),
      order: v.optional(choice('asc', 'desc'), 'asc'),
    }),
  }),
  LIMIT: node('pure', {
    summary: 'Outputs {items}: the first or the last so many, after an offset.',
    config: v.object({
      items: list,
      count,
      offset: v.optional(count, 0),
      keep: v.optional(choice('first', 'last'), 'first'),
    }),
  }),
  DEDUPLICATE: node('pure', {
    summary: 'Outputs {items} without repeats: by fields, or of the whole item.',
    config: v.object({
      items: list,
      by: v.optional(fields),
      keep: v.optional(choice('first', 'last'), 'first'),
    }),
  }),
  SPLIT: node('pure', {
    summary: 'Outputs {items}: the entries of a list or of a text, or those of a field of each item.',
    config: v.pipe(
      v.object({
        value: v.optional(v.union([text, items], 'must be a text or an array')),
        separator: v.optional(text),
        trim: v.optional(v.boolean('must be true or false'), false),
        items: v.optional(list),
        field: v.optional(label),
        keepOthers: v.optional(v.boolean('must be true or false'), false),
      }),
      v.check(
        ({ value, items, field }) =>
          (value === undefined) === (items !== undefined) && (items === undefined) === (field === undefined),
        'must hold either value, or items and field',
      ),
    ),
  }),
  RENAME_KEYS: node('pure', {
    summary: 'Outputs {items} with other names of their keys.',
    config: v.object({
      items: list,
      keys: v.pipe(
        record,
        v.check(
          (keys) => Object.values(keys).every((name) => v.is(label, name)),
          'must give each key its new name',
        ),
      ),
    }),
  }),
  JOIN: node('pure', {
    summary: 'Outputs {items}: pairs of objects of two lists whose keys are equal, merged into one.',
    config: v.object({
      ...pairs,
      mode: v.optional(choice('inner', 'left', 'right', 'outer'), 'inner'),
      prefer: v.optional(choice('left', 'right'), 'right'),
    }),
  }),
  COMPARE_DATASETS: node('pure', {
    summary: 'Compares two lists by key; outputs {onlyLeft, onlyRight, same, different}.',
    config: v.object(pairs),
  }),
} as const
