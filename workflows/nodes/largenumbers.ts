import { oneOf } from './fields.ts'

/** What becomes of numbers in JSON of others that are too large: LargeNumbers of `activities/reading/json.ts`. */
export const largeNumbersField = oneOf('text', 'number')

export const LARGE_NUMBERS_DESCRIPTION =
  'What numbers with more digits than can be held exactly become: the text of their digits, or the nearest number.'
