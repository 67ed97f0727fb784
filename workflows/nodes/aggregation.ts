import * as v from 'valibot'
import { described, strictObject } from '../object.ts'
import { oneOf, usuallyOn } from './fields.ts'

const flag = v.boolean('must be true or false')
const text = v.string('must be a string')
const names = v.union([text, v.array(text)], 'must be names in an array, or in a string with commas')

/** AGGREGATE's `collect`: one item with all items in a list, or with lists of their fields. */
export const collectionField = v.pipe(
  strictObject(
    described(
      {
        into: v.optional(text),
        include: v.optional(names),
        except: v.optional(names),
        fields: v.optional(
          v.pipe(
            v.array(
              strictObject(
                described(
                  { field: text, as: v.optional(text) },
                  {
                    field: 'The field of the items.',
                    as: 'The name of the list. Without it the name of the field.',
                  },
                ),
              ),
              'must be an array',
            ),
            v.maxLength(100, 'must have at most 100 entries'),
          ),
        ),
        keepMissing: v.optional(flag),
        mergeLists: v.optional(flag),
        dots: v.optional(usuallyOn),
        files: v.optional(oneOf('all', 'unique')),
      },
      {
        into: 'The name of one list of all items.',
        include: 'The only fields of the items that it has.',
        except: 'The fields of the items that it has not.',
        fields: 'A list for each of these fields, in place of one of the items.',
        keepMissing: 'Also values that are missing or null.',
        mergeLists: 'The entries of a value that is a list are put into the list.',
        dots: 'Whether names with dots lead into objects.',
        files: 'Keeps the files of all items, or with unique one of each type and size.',
      },
    ),
  ),
  v.check(
    ({ into, fields }) => (into === undefined) !== (fields === undefined),
    'must have either into or fields',
  ),
)

const operation = oneOf('append', 'average', 'concatenate', 'count', 'countUnique', 'max', 'min', 'sum')

/** AGGREGATE's `summarize`: what fields of the items come to, in all or for each group of them. */
export const summaryField = strictObject(
  described(
    {
      fields: v.pipe(
        v.array(
          strictObject(
            described(
              {
                operation,
                field: text,
                includeEmpty: v.optional(flag),
                separator: v.optional(text),
              },
              {
                operation: 'What is made of the values.',
                field: 'The field of the items.',
                includeEmpty: 'Also values that are missing, null or an empty text.',
                separator: 'What stands between concatenated values.',
              },
            ),
          ),
          'must be an array',
        ),
        v.maxLength(100, 'must have at most 100 entries'),
      ),
      by: v.optional(
        v.pipe(v.array(text, 'must be an array'), v.maxLength(20, 'must have at most 20 entries')),
      ),
      skipEmpty: v.optional(flag),
      single: v.optional(flag),
      textKeys: v.optional(flag),
      missing: v.optional(oneOf('ignore', 'error')),
      dots: v.optional(usuallyOn),
    },
    {
      fields: 'What each group comes to.',
      by: 'The fields whose values make a group. Without them all items are one.',
      skipEmpty: 'Leaves items out whose field to group by is empty.',
      single: 'Puts all groups into one item, by their values.',
      textKeys: 'Groups by the values as texts, so that 1 and "1" are the same.',
      missing: 'What happens if no item has a field: nothing, or the node fails.',
      dots: 'Whether names with dots lead into objects.',
    },
  ),
)

export type Collection = v.InferOutput<typeof collectionField>
export type Summary = v.InferOutput<typeof summaryField>
