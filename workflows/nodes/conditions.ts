import * as v from 'valibot'
import { strictObject } from '../object.ts'
import { oneOf } from './fields.ts'

const valueType = oneOf('string', 'number', 'boolean', 'dateTime', 'array', 'object', 'any')

const operator = strictObject({
  type: valueType,
  operation: v.pipe(v.string('must be a string'), v.regex(/^[A-Za-z]{1,30}$/, 'must be an operation')),
  rightType: v.optional(valueType),
})

/** Conditions as a list of comparisons, each of two values, by an operator for a type. */
export const conditionsField = strictObject({
  combinator: v.optional(oneOf('and', 'or')),
  conditions: v.pipe(
    v.array(
      strictObject({ left: v.optional(v.unknown()), operator, right: v.optional(v.unknown()) }),
      'must be an array',
    ),
    v.maxLength(100, 'must have at most 100 entries'),
  ),
  /** How values get the operator's type: they must have it, are converted to it, or are compared as they are. */
  types: v.optional(oneOf('strict', 'loose', 'none')),
  ignoreCase: v.optional(v.boolean('must be true or false')),
  /** With 1 every text that is not empty is true; from 2 on "false" is not. Before 3 an empty text is the number 0. */
  dialect: v.optional(v.picklist([1, 2, 3], 'must be 1, 2 or 3')),
})

export type Conditions = v.InferOutput<typeof conditionsField>
export type Operator = Conditions['conditions'][number]['operator']

/** Requires exactly one of a condition and a list of conditions. */
export function eitherCondition<T extends { condition?: unknown; conditions?: unknown }>() {
  return v.check<T, string>(
    ({ condition, conditions }) => (condition === undefined) !== (conditions === undefined),
    'must have either condition or conditions',
  )
}
