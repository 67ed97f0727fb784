import * as v from 'valibot'
import { described, strictObject } from '../object.ts'
import { conditionsField, eitherCondition } from './conditions.ts'
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
  usuallyOn,
  wholeNumber,
} from './fields.ts'

const list = computed(itemsField)
/** What the list of such a node says about itself. */
export const LIST = 'The list to work on. Without it the items that come in.'
const DOTS = 'Whether names with dots lead into objects.'
const flag = v.boolean('must be true or false')
const names = v.union(
  [textField, v.array(v.string('must be a string'))],
  'must be names in an array, or in a string with commas',
)
const renamePairs = v.pipe(
  v.array(
    strictObject(
      described(
        { from: v.string('must be a string'), to: v.string('must be a string') },
        {
          from: 'The field as it is named now.',
          to: 'Its new name.',
        },
      ),
    ),
    'must be an array',
  ),
  v.maxLength(500, 'must have at most 500 entries'),
)
const literalName = v.pipe(
  textField,
  v.maxLength(100, 'must have at most 100 characters'),
  v.check((name) => !name.includes('{{'), 'must be a name as it stands, without {{ }}'),
)
const fields = oneOrMany(itemField, 'must be a field or an array of fields')
const count = computed(wholeNumber(0, 1_000_000_000))

/**
 * Node types that work on items. An input that is not an array counts as one item, a missing one as no items.
 */
export const ITEM_NODES = {
  FILTER: nodeTypeRow('pure', {
    summary: 'Outputs {items}: the items for which the condition holds ($item, $index).',
    config: v.pipe(
      v.object(
        described(
          {
            items: v.optional(list),
            condition: v.optional(conditionField),
            conditions: v.optional(conditionsField),
          },
          {
            items: LIST,
            condition: 'Items stay for which it is true, such as $item.price > 10.',
            conditions: 'A list of comparisons, in place of one expression.',
          },
        ),
      ),
      eitherCondition(),
    ),
    main: ['items', 'condition'],
    conditions: (config) => conditionAt('condition', config.condition),
  }),
  MAP: nodeTypeRow('pure', {
    main: ['items', 'expression'],
    summary: 'Outputs {items}: the value of the expression for each item ($item, $index).',
    config: v.object(
      described(
        { items: list, expression: textField },
        {
          items: 'The list to work on.',
          expression: 'What each item becomes, such as { "name": $item.name }.',
        },
      ),
    ),
    conditions: (config) => conditionAt('expression', config.expression),
  }),
  SORT: nodeTypeRow('pure', {
    summary: 'Outputs {items} sorted by one or more keys or, without keys, by the items themselves.',
    config: v.object(
      described(
        {
          items: v.optional(list),
          compare: v.optional(oneOf('exact', 'loose')),
          dots: v.optional(usuallyOn),
          by: v.optional(
            oneOrMany(
              v.union(
                [
                  itemField,
                  strictObject(
                    described(
                      { key: itemField, order: v.optional(oneOf('asc', 'desc'), 'asc') },
                      {
                        key: 'The field that is sorted by.',
                        order: 'Rising or falling.',
                      },
                    ),
                  ),
                ],
                'must be a field or {key, order}',
              ),
              'must be a field, {key, order: asc or desc}, or an array',
            ),
          ),
          order: v.optional(oneOf('asc', 'desc'), 'asc'),
        },
        {
          items: LIST,
          compare:
            'Loose: the case of texts makes no difference, and numbers and texts are compared as JavaScript does.',
          dots: DOTS,
          by: 'A field of the items, or an expression that reads $item. Without it the items themselves are compared.',
          order: 'Rising or falling.',
        },
      ),
    ),
    main: ['items', 'by', 'order'],
  }),
  LIMIT: nodeTypeRow('pure', {
    summary: 'Outputs {items}: the first or the last items, as many as count says, after an offset.',
    config: v.object(
      described(
        {
          items: v.optional(list),
          count,
          offset: v.optional(count, 0),
          keep: v.optional(oneOf('first', 'last'), 'first'),
        },
        {
          items: LIST,
          count: 'How many items stay.',
          offset: 'How many are left out before them.',
          keep: 'Whether the first or the last ones stay.',
        },
      ),
    ),
    main: ['items', 'count', 'offset', 'keep'],
  }),
  DEDUPLICATE: nodeTypeRow('pure', {
    summary: 'Outputs {items} without duplicates, compared by fields or as whole items.',
    config: v.object(
      described(
        {
          items: v.optional(list),
          except: v.optional(v.array(textField, 'must be an array')),
          only: v.optional(flag),
          types: v.optional(oneOf('checked', 'nulls')),
          dots: v.optional(usuallyOn),
          by: v.optional(fields),
          keep: v.optional(oneOf('first', 'last'), 'first'),
        },
        {
          items: LIST,
          except: 'With types: the fields that are not compared.',
          only: 'With types: the output has only the fields that were compared.',
          types:
            'Compares fields at every depth, which must have the same type in all items; nulls passes over null.',
          dots: DOTS,
          by: 'The fields that are compared. Without them the whole items.',
          keep: 'Whether the first or the last of those that are equal stays.',
        },
      ),
    ),
    main: ['items', 'by', 'keep'],
  }),
  SKIP_SEEN: nodeTypeRow('effect', {
    summary: 'Outputs {items}: those whose value no earlier execution of the workflow has seen.',
    config: v.object(
      described(
        {
          items: v.optional(list),
          by: v.optional(fields),
          history: v.optional(wholeNumber(1, 100_000)),
          shared: v.optional(literalName),
          grouped: v.optional(flag),
        },
        {
          items: LIST,
          by: 'The fields that are compared, such as id. Without them the whole items.',
          history: 'How many values are remembered, the newest. 10,000 unless it is set.',
          shared: 'A name: nodes of the workflow that give the same one share what they have seen.',
          grouped: 'Items with the same value stand together, and whole numbers first, in their order.',
        },
      ),
    ),
    main: ['items', 'by'],
    retry: { maxAttempts: 3, initialIntervalMs: 1_000, backoffCoefficient: 2, maxIntervalMs: 30_000 },
    timeoutMs: 60_000,
  }),
  SPLIT: nodeTypeRow('pure', {
    summary:
      'Outputs {items}: the entries of an array, the parts of a string, or the entries of a field of each item.',
    config: v.pipe(
      v.object(
        described(
          {
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
            dots: v.optional(usuallyOn),
            files: v.optional(flag),
          },
          {
            value: 'A list, or a text that is cut at the separator.',
            separator: 'Where a text is cut.',
            trim: 'Drops the space around the parts of a text, and empty parts.',
            items: 'With field: the list to work on.',
            field: 'Of items: the field whose entries become items.',
            keepOthers: 'Of items: keeps the rest of the item with each entry.',
            fields: 'The fields of its own item whose entries become items, in place of the above.',
            as: 'With fields: their names in the new items.',
            include: 'With fields: which other fields of the item are kept.',
            missing: 'With fields: what happens if the item has no such field: nothing, or the node fails.',
            names: 'With include selected: the fields that are kept.',
            dots: DOTS,
            files: 'With fields: each new item has the files of the item.',
          },
        ),
      ),
      v.check(
        ({ value, items, field, fields }) =>
          fields !== undefined
            ? value === undefined && items === undefined && field === undefined
            : (value === undefined) === (items !== undefined) &&
              (items === undefined) === (field === undefined),
        'must have either value, or items and field, or fields',
      ),
    ),
    main: ['value', 'separator', 'trim'],
  }),
  RENAME_KEYS: nodeTypeRow('pure', {
    summary: 'Outputs {items} with some of their keys renamed.',
    config: v.pipe(
      v.object(
        described(
          {
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
          },
          {
            items: LIST,
            pairs: 'Renames fields of its own item, whose names may be paths, in place of keys.',
            keys: 'The old names and the new ones.',
          },
        ),
      ),
      v.check(
        ({ keys, pairs }) => (keys === undefined) !== (pairs === undefined),
        'must have either keys or pairs',
      ),
    ),
    main: ['items', 'keys'],
  }),
} as const
