import * as v from 'valibot'
import { strictObject } from '../object.ts'

/** Where a node puts its value: into a field of its item, or with `keep: false` into an object of its own. */
export const intoField = strictObject({
  field: v.pipe(v.string('must be a string'), v.nonEmpty('must not be empty')),
  keep: v.optional(v.boolean('must be true or false')),
  dots: v.optional(v.boolean('must be true or false')),
})
export type Into = v.InferOutput<typeof intoField>
