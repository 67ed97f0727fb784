import * as v from 'valibot'
import { described, strictObject } from '../object.ts'
import { oneOf, usuallyOn } from './fields.ts'

const flag = v.boolean('must be true or false')
const names = v.pipe(
  v.array(v.string('must be a string'), 'must be an array'),
  v.maxLength(100, 'must have at most 100 entries'),
)

/** How COMPARE_DATASETS compares the items that it sends by its handles onlyLeft, same, different and onlyRight. */
export const datasetRulesField = strictObject(
  described(
    {
      resolve: v.optional(oneOf('both', 'left', 'right', 'mix')),
      prefer: v.optional(oneOf('left', 'right')),
      except: v.optional(names),
      skip: v.optional(names),
      fuzzy: v.optional(flag),
      multiple: v.optional(oneOf('first', 'all')),
      dots: v.optional(usuallyOn),
      dialect: v.optional(v.pipe(v.number('must be a number'), v.minValue(1), v.maxValue(3))),
    },
    {
      resolve:
        'What stands for two items that differ: a list of their differences (both), one of them, or a mix.',
      prefer: 'Of a mix: whose item it begins with.',
      except: 'Of a mix: the fields that come from the other item.',
      skip: 'The fields that are not compared.',
      fuzzy: 'Finds 1 and "1" equal, as well as nothing and an empty text.',
      multiple: 'Whether an item is compared with its first partner, or with all of them.',
      dots: 'Whether names with dots lead into objects.',
      dialect: "The version of n8n's node whose rules count, such as 2.3.",
    },
  ),
)
export type DatasetRules = Partial<v.InferOutput<typeof datasetRulesField>>
