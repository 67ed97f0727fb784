import * as v from 'valibot'
import { described, strictObject } from '../object.ts'
import { oneOf } from './fields.ts'

const valueType = oneOf('string', 'number', 'boolean', 'dateTime', 'array', 'object', 'any')

const operator = strictObject(
  described(
    {
      type: valueType,
      operation: v.pipe(v.string('must be a string'), v.regex(/^[A-Za-z]{1,30}$/, 'must be an operation')),
      rightType: v.optional(valueType),
    },
    {
      type: 'What is compared: text, numbers, dates ...',
      operation: 'How it is compared: equals, contains, gt ...',
      rightType: 'The type of the value on the right, if it is another one.',
    },
  ),
)

/** Conditions as a list of comparisons, each of two values, by an operator for a type. */
export const conditionsField = strictObject(
  described(
    {
      combinator: v.optional(oneOf('and', 'or')),
      conditions: v.pipe(
        v.array(
          strictObject(
            described(
              { left: v.optional(v.unknown()), operator, right: v.optional(v.unknown()) },
              {
                left: 'The value that is looked at.',
                operator: 'How the two values are compared.',
                right: 'The value that it is compared with.',
              },
            ),
          ),
          'must be an array',
        ),
        v.maxLength(100, 'must have at most 100 entries'),
      ),
      types: v.optional(oneOf('strict', 'loose', 'none')),
      ignoreCase: v.optional(v.boolean('must be true or false')),
      dialect: v.optional(v.picklist([1, 2, 3], 'must be 1, 2 or 3')),
    },
    {
      combinator: 'Whether all comparisons must hold (and), or one is enough (or).',
      conditions: 'The comparisons.',
      types:
        "How values get the operator's type: they must have it (strict), are converted (loose), or are compared as they are (none).",
      ignoreCase: 'The case of texts makes no difference.',
      dialect:
        'Which version of n8n\'s rules counts: in 1 every text that is not empty is true; from 2 on "false" is false; before 3 an empty text is the number 0.',
    },
  ),
)

export type Conditions = v.InferOutput<typeof conditionsField>
export type Operator = Conditions['conditions'][number]['operator']

/** Requires exactly one of a condition and a list of conditions. */
export function eitherCondition<T extends { condition?: unknown; conditions?: unknown }>() {
  return v.check<T, string>(
    ({ condition, conditions }) => (condition === undefined) !== (conditions === undefined),
    'must have either condition or conditions',
  )
}
