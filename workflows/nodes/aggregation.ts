import * as v from 'valibot'
import { strictObject } from '../object.ts'
import { oneOf } from './fields.ts'

const flag = v.boolean('must be true or false')
const text = v.string('must be a string')
const names = v.union([text, v.array(text)], 'must be names in an array, or in a string with commas')

/** AGGREGATE's `collect`: one item with all items in a list, or with lists of their fields. */
export const collectionField = v.pipe(
  strictObject({
    into: v.optional(text),
    include: v.optional(names),
    except: v.optional(names),
    fields: v.optional(
      v.pipe(
        v.array(strictObject({ field: text, as: v.optional(text) }), 'must be an array'),
        v.maxLength(100, 'must have at most 100 entries'),
      ),
    ),
    keepMissing: v.optional(flag),
    mergeLists: v.optional(flag),
    dots: v.optional(flag),
  }),
  v.check(
    ({ into, fields }) => (into === undefined) !== (fields === undefined),
    'must have either into or fields',
  ),
)

const operation = oneOf('append', 'average', 'concatenate', 'count', 'countUnique', 'max', 'min', 'sum')

/** AGGREGATE's `summarize`: what fields of the items come to, in all or for each group of them. */
export const summaryField = strictObject({
  fields: v.pipe(
    v.array(
      strictObject({
        operation,
        field: text,
        includeEmpty: v.optional(flag),
        separator: v.optional(text),
      }),
      'must be an array',
    ),
    v.maxLength(100, 'must have at most 100 entries'),
  ),
  by: v.optional(v.pipe(v.array(text, 'must be an array'), v.maxLength(20, 'must have at most 20 entries'))),
  skipEmpty: v.optional(flag),
  single: v.optional(flag),
  textKeys: v.optional(flag),
  missing: v.optional(oneOf('ignore', 'error')),
  dots: v.optional(flag),
})

export type Collection = v.InferOutput<typeof collectionField>
export type Summary = v.InferOutput<typeof summaryField>
