import * as v from 'valibot'
import { strictObject } from '../object.ts'
import { oneOf } from './fields.ts'

const flag = v.boolean('must be true or false')
const names = v.pipe(
  v.array(v.string('must be a string'), 'must be an array'),
  v.maxLength(100, 'must have at most 100 entries'),
)

/** How COMPARE_DATASETS compares the items that it sends by its handles onlyLeft, same, different and onlyRight. */
export const datasetRulesField = strictObject({
  resolve: v.optional(oneOf('both', 'left', 'right', 'mix')),
  prefer: v.optional(oneOf('left', 'right')),
  except: v.optional(names),
  skip: v.optional(names),
  fuzzy: v.optional(flag),
  multiple: v.optional(oneOf('first', 'all')),
  dots: v.optional(flag),
  dialect: v.optional(v.pipe(v.number('must be a number'), v.minValue(1), v.maxValue(3))),
})
export type DatasetRules = Partial<v.InferOutput<typeof datasetRulesField>>
