import * as v from 'valibot'
import { described, strictObject } from '../object.ts'
import { usuallyOn } from './fields.ts'

/** Where a node puts its value: into a field of its item, or with `keep: false` into an object of its own. */
export const intoField = strictObject(
  described(
    {
      field: v.pipe(v.string('must be a string'), v.nonEmpty('must not be empty')),
      keep: v.optional(usuallyOn),
      dots: v.optional(v.boolean('must be true or false')),
    },
    {
      field: 'The name of the field that gets the value.',
      keep: 'Off: the output has this field only, without the other fields of the item.',
      dots: 'Whether a name with dots leads into objects.',
    },
  ),
)

/** What a setting with such a field says about itself. */
export const INTO = 'Puts the result into a field of the item, in place of the usual output.'

export type Into = v.InferOutput<typeof intoField>
