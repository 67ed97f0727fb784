import { oneOf } from './fields.ts'

/**
 * What becomes of a number in JSON that JavaScript cannot hold exactly: a text of its digits, or the nearest number.
 */
export const LARGE_NUMBERS = ['text', 'number'] as const
export type LargeNumbers = (typeof LARGE_NUMBERS)[number]

/** The setting of nodes that read JSON of others. */
export const largeNumbersField = oneOf(...LARGE_NUMBERS)

export const LARGE_NUMBERS_DESCRIPTION =
  'What numbers with more digits than can be held exactly become: the text of their digits, or the nearest number.'
