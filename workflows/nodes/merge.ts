import * as v from 'valibot'
import { described, strictObject } from '../object.ts'
import { oneOf, usuallyOn } from './fields.ts'

const flag = v.boolean('must be true or false')
const text = v.string('must be a string')

/** The choice of MERGE for fields that several items have. */
const clashField = strictObject(
  described(
    {
      prefer: v.optional(
        v.union(
          [v.literal('suffix'), v.pipe(v.number(), v.integer(), v.minValue(1))],
          'must be suffix or a number',
        ),
      ),
      deep: v.optional(usuallyOn),
      keepIfEmpty: v.optional(flag),
    },
    {
      prefer:
        'The number of the input that wins, from 1; suffix keeps all, with the number of their input at their names. Without it the last input wins.',
      deep: 'Objects and lists within are merged too.',
      keepIfEmpty: 'An empty value does not replace another one.',
    },
  ),
)
export type Clash = Partial<v.InferOutput<typeof clashField>>

/** The pairs of fields by which MERGE and COMPARE_DATASETS find what belongs together. */
export const pairsField = v.pipe(
  v.array(
    strictObject(
      described(
        { left: text, right: text },
        {
          left: 'The field of the items on the left.',
          right: 'The field of the items on the right.',
        },
      ),
    ),
    'must be an array of {left, right}',
  ),
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

/** The settings of each mode of MERGE. */
export const MERGE_MAIN = {
  byPosition: ['includeUnpaired', 'clash'],
  byFields: ['on', 'join', 'output'],
  byKey: ['on', 'join', 'overwrite'],
  all: ['clash'],
  choose: ['choose'],
} satisfies Partial<Record<(typeof MERGE_MODES)[number], string[]>>

/** MERGE's config. All modes but combine and append work on lists of items. */
export const mergeConfig = v.object(
  described(
    {
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
      dots: v.optional(usuallyOn),
      demandFields: v.optional(flag),
      demandInputs: v.optional(flag),
      overwrite: v.optional(oneOf('always', 'undefined', 'blank')),
      choose: v.optional(
        v.union(
          [v.literal('empty'), v.pipe(v.number(), v.integer(), v.minValue(1))],
          'must be a number or empty',
        ),
      ),
    },
    {
      mode: 'How the inputs are joined: combine merges objects, append makes a list; the others work on lists of items.',
      inputs: 'The lists, in place of what comes along the edges.',
      clash: 'What happens to fields that several items have.',
      includeUnpaired: 'By position: keeps items that have no partner.',
      passSingle: 'By position: passes one input on if the other has no items.',
      on: 'By fields and by key: the fields that must be equal.',
      join: 'Which items are kept: those with a partner, those without, or all of an input.',
      output: 'By fields: whose fields the output has.',
      first: 'By fields: takes only the first partner of an item.',
      fuzzy: 'By fields: finds 1 and "1" equal, as well as nothing and an empty text.',
      dots: 'Whether names with dots lead into objects.',
      demandFields: 'By fields: fails if no item has the field.',
      demandInputs: 'Choose: outputs nothing if an input has no items.',
      overwrite: 'By key: which fields the item on the right replaces.',
      choose: 'Choose: the number of the input, from 1, or one empty item.',
    },
  ),
)
export type MergeConfig = Partial<v.InferOutput<typeof mergeConfig>>
