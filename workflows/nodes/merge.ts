import * as v from 'valibot'
import { strictObject } from '../object.ts'
import { oneOf } from './fields.ts'

const flag = v.boolean('must be true or false')
const text = v.string('must be a string')

/** What MERGE does with fields that several items have. */
export const clashField = strictObject({
  /** The input that wins, counted from 1; `suffix` keeps all, with the number of their input at their names. */
  prefer: v.optional(
    v.union(
      [v.literal('suffix'), v.pipe(v.number(), v.integer(), v.minValue(1))],
      'must be suffix or a number',
    ),
  ),
  deep: v.optional(flag),
  keepIfEmpty: v.optional(flag),
})
export type Clash = Partial<v.InferOutput<typeof clashField>>

/** The pairs of fields by which MERGE and COMPARE_DATASETS find what belongs together. */
export const pairsField = v.pipe(
  v.array(strictObject({ left: text, right: text }), 'must be an array of {left, right}'),
  v.maxLength(20, 'must have at most 20 entries'),
)

export const MERGE_MODES = [
  'combine',
  'append',
  'items',
  'byPosition',
  'byFields',
  'byKey',
  'all',
  'choose',
] as const

/** MERGE's config. All modes but combine and append work on lists of items. */
export const mergeConfig = v.object({
  mode: v.optional(v.picklist(MERGE_MODES, `must be one of ${MERGE_MODES.join(', ')}`), 'combine'),
  inputs: v.optional(
    v.pipe(v.array(v.unknown(), 'must be an array'), v.maxLength(50, 'must have at most 50 entries')),
  ),
  clash: v.optional(clashField),
  includeUnpaired: v.optional(flag),
  passSingle: v.optional(flag),
  on: v.optional(pairsField),
  join: v.optional(
    oneOf(
      'keepMatches',
      'keepNonMatches',
      'keepEverything',
      'enrichInput1',
      'enrichInput2',
      'inner',
      'left',
      'outer',
      'remove',
    ),
  ),
  output: v.optional(oneOf('both', 'input1', 'input2')),
  first: v.optional(flag),
  fuzzy: v.optional(flag),
  dots: v.optional(flag),
  demandFields: v.optional(flag),
  demandInputs: v.optional(flag),
  overwrite: v.optional(oneOf('always', 'undefined', 'blank')),
  choose: v.optional(
    v.union(
      [v.literal('empty'), v.pipe(v.number(), v.integer(), v.minValue(1))],
      'must be a number or empty',
    ),
  ),
})
export type MergeConfig = Partial<v.InferOutput<typeof mergeConfig>>
