import * as v from 'valibot'
import { BUILT_IN_DIMENSIONS } from '../../db/evaluation/dimensions.ts'
import { EVAL_PROVIDERS } from '../../db/evaluation/providers.ts'
import { boundedInteger, boundedString, unblankString, uuidField } from '../http/fields.ts'
import { idSchema, timeSchema } from '../http/responses.ts'

const MOST_OWN = 20
const MOST_JUDGED = 10
const NAME = /^[a-z][a-z0-9_-]*$/

const dimensionName = v.pipe(
  boundedString(64),
  v.regex(NAME, 'must be of small letters, digits, _ and -, and begin with a letter'),
  v.examples(['tone']),
)

const isDistinct = (names: string[]) => new Set(names).size === names.length

const optional = <T extends v.GenericSchema>(field: T, description: string) =>
  v.pipe(v.optional(v.nullable(field)), v.description(description))

const flag = v.boolean('must be true or false')

export const ConfigPatch = v.object({
  evalEnabled: optional(flag, 'Whether runs are judged'),
  evalProvider: optional(
    v.picklist(EVAL_PROVIDERS, `must be one of ${EVAL_PROVIDERS.join(', ')}`),
    "Who the judge is asked of; `custom` is anything that speaks OpenAI's protocol",
  ),
  evalModel: optional(unblankString(200), "The vendor's name of the judge; of Azure that of the deployment"),
  evalCredentialId: optional(uuidField, "A credential of the team, of the provider's type"),
  evalSamplingRate: optional(boundedInteger(0, 100), 'Percent of the runs that succeed'),
  evalDimensions: optional(
    v.pipe(
      v.array(dimensionName, 'must be an array'),
      v.minLength(1, 'must not be empty'),
      v.maxLength(MOST_JUDGED, `must have at most ${MOST_JUDGED} entries`),
      v.check(isDistinct, 'must not have a name twice'),
    ),
    "`groundedness`, `relevance`, `safety`, or the team's own",
  ),
  evalFailureThreshold: optional(
    v.pipe(
      v.number('must be a number'),
      v.minValue(1, 'must be at least 1'),
      v.maxValue(5, 'must be at most 5'),
      v.check((value) => Number(value.toFixed(2)) === value, 'must have at most 2 decimal places'),
    ),
    'Runs whose composite is below it have failed',
  ),
  evalNotifyFailures: optional(flag, 'Whether runs that have failed start playbooks'),
})

const provider = v.nullable(v.picklist(EVAL_PROVIDERS))
const effectiveFields = {
  evalEnabled: v.boolean(),
  evalProvider: provider,
  evalModel: v.nullable(v.string()),
  evalCredentialId: v.nullable(idSchema),
  evalSamplingRate: v.number(),
  evalDimensions: v.array(v.string()),
  evalFailureThreshold: v.number(),
  evalNotifyFailures: v.boolean(),
}
const ownFields = {
  id: v.nullable(idSchema),
  evalEnabled: v.nullable(v.boolean()),
  evalProvider: provider,
  evalModel: v.nullable(v.string()),
  evalCredentialId: v.nullable(idSchema),
  evalSamplingRate: v.nullable(v.number()),
  evalDimensions: v.nullable(v.array(v.string())),
  evalFailureThreshold: v.nullable(v.number()),
  evalNotifyFailures: v.nullable(v.boolean()),
  createdAt: v.nullable(timeSchema),
  updatedAt: v.nullable(timeSchema),
  effective: v.pipe(
    v.object(effectiveFields),
    v.description("What counts: the workflow's word before the team's, and that before the default"),
  ),
}
export const ConfigSchema = v.pipe(v.object({ workflowId: idSchema, ...ownFields }), v.title('EvalConfig'))
export const TeamConfigSchema = v.pipe(
  v.object({ teamId: idSchema, ...ownFields }),
  v.title('TeamEvalConfig'),
)

const dimensionFields = { name: dimensionName, rubric: unblankString(4_000) }
export const DimensionsInput = v.object({
  dimensions: v.pipe(
    v.array(
      v.object(
        {
          name: v.pipe(
            dimensionName,
            v.check(
              (name) => !(BUILT_IN_DIMENSIONS as readonly string[]).includes(name),
              'is a dimension that every team has',
            ),
          ),
          rubric: v.pipe(
            dimensionFields.rubric,
            v.description('What is judged, and what each score from 1 to 5 means'),
          ),
        },
        'must be an object',
      ),
      'must be an array',
    ),
    v.maxLength(MOST_OWN, `must have at most ${MOST_OWN} entries`),
    v.check((list) => isDistinct(list.map(({ name }) => name)), 'must not have a name twice'),
  ),
})
export const DimensionsSchema = v.pipe(
  v.object({ dimensions: v.array(v.object({ name: v.string(), rubric: v.string() })) }),
  v.title('EvalDimensions'),
)
