import { Hono } from 'hono'
import * as v from 'valibot'
import {
  deleteEvalConfig,
  deleteTeamEvalConfig,
  readEvalConfig,
  readTeamEvalConfig,
  updateEvalConfig,
  updateTeamEvalConfig,
} from '../../db/evaluation/configs.ts'
import { BUILT_IN_DIMENSIONS, readDimensions, updateDimensions } from '../../db/evaluation/dimensions.ts'
import { EVAL_PROVIDERS } from '../../db/evaluation/providers.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { boundedString, InTeam, unblankString, uuidField } from '../http/fields.ts'
import { idSchema, timeSchema } from '../http/responses.ts'

const MOST_OWN = 20
const MOST_JUDGED = 10
const NAME = /^[a-z][a-z0-9_-]*$/

const InWorkflow = v.object({ workflowId: uuidField })

const dimensionName = v.pipe(
  boundedString(64),
  v.regex(NAME, 'must be of small letters, digits, _ and -, and begin with a letter'),
  v.examples(['tone']),
)

const isDistinct = (names: string[]) => new Set(names).size === names.length

const optional = <T extends v.GenericSchema>(field: T, description: string) =>
  v.pipe(v.optional(v.nullable(field)), v.description(description))

const flag = v.boolean('must be true or false')

const ConfigPatch = v.object({
  evalEnabled: optional(flag, 'Whether runs are judged'),
  evalProvider: optional(
    v.picklist(EVAL_PROVIDERS, `must be one of ${EVAL_PROVIDERS.join(', ')}`),
    "Who the judge is asked of; `custom` is anything that speaks OpenAI's protocol",
  ),
  evalModel: optional(unblankString(200), "The vendor's name of the judge; of Azure that of the deployment"),
  evalCredentialId: optional(uuidField, "A credential of the team, of the provider's type"),
  evalSamplingRate: optional(
    v.pipe(
      v.number('must be a number'),
      v.integer('must be a whole number'),
      v.minValue(0, 'must be at least 0'),
      v.maxValue(100, 'must be at most 100'),
    ),
    'Percent of the runs that succeed',
  ),
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
const ConfigSchema = v.pipe(v.object({ workflowId: idSchema, ...ownFields }), v.title('EvalConfig'))
const TeamConfigSchema = v.pipe(v.object({ teamId: idSchema, ...ownFields }), v.title('TeamEvalConfig'))

const dimensionFields = { name: dimensionName, rubric: unblankString(4_000) }
const DimensionsInput = v.object({
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
const DimensionsSchema = v.pipe(
  v.object({ dimensions: v.array(v.object({ name: v.string(), rubric: v.string() })) }),
  v.title('EvalDimensions'),
)

const OF_WORKFLOW = '/api/monitoring/workflow/:workflowId/eval-config'
const OF_TEAM = '/api/monitoring/teams/:teamId/eval-config'
const DIMENSIONS = '/api/monitoring/teams/:teamId/eval-dimensions'
const CHANGES =
  'Changes the fields that are given; null takes a word back. 400 if a judge would be switched on without a provider, ' +
  'a model and a credential, or with a credential of another provider.'

const one = { 200: { description: 'The config', schema: ConfigSchema } }
const ofTeam = { 200: { description: 'The config', schema: TeamConfigSchema } }
const dimensions = { 200: { description: 'The dimensions', schema: DimensionsSchema } }
const gone = { 204: { description: 'It says nothing any more' } }

/** The routes with which runs are set up to be judged. */
export function createEvalConfigRoutes() {
  return new Hono<AppEnv>()
    .route('/', createWorkflowConfigRoutes())
    .route('/', createTeamConfigRoutes())
    .route('/', createDimensionRoutes())
}

function createWorkflowConfigRoutes() {
  return new Hono<AppEnv>()
    .get(
      OF_WORKFLOW,
      accept({
        id: 'readEvalConfig',
        tag: 'Monitoring',
        summary: 'Read how the runs of a workflow are judged',
        description: 'Fields are null where the workflow says nothing; `effective` is what counts.',
        role: 'member',
        params: InWorkflow,
        responses: one,
      }),
      async (c) => {
        const { workflowId } = c.req.valid('param')
        return c.json({ workflowId, ...(await readEvalConfig(c.get('scope'), workflowId)) })
      },
    )
    .put(
      OF_WORKFLOW,
      accept({
        id: 'updateEvalConfig',
        tag: 'Monitoring',
        summary: 'Change how the runs of a workflow are judged',
        description: CHANGES,
        role: 'BUILDER',
        params: InWorkflow,
        json: ConfigPatch,
        example: { evalSamplingRate: 20, evalFailureThreshold: 3.5 },
        responses: one,
      }),
      async (c) => {
        const { workflowId } = c.req.valid('param')
        const config = await updateEvalConfig(c.get('scope'), workflowId, c.req.valid('json'))
        return c.json({ workflowId, ...config })
      },
    )
    .delete(
      OF_WORKFLOW,
      accept({
        id: 'deleteEvalConfig',
        tag: 'Monitoring',
        summary: "Take back a workflow's word on how it is judged",
        description: "The team's config counts then. May be repeated.",
        role: 'BUILDER',
        params: InWorkflow,
        responses: gone,
      }),
      async (c) => {
        await deleteEvalConfig(c.get('scope'), c.req.valid('param').workflowId)
        return c.body(null, 204)
      },
    )
}

function createTeamConfigRoutes() {
  return new Hono<AppEnv>()
    .get(
      OF_TEAM,
      accept({
        id: 'readTeamEvalConfig',
        tag: 'Monitoring',
        summary: 'Read how the runs of a team are judged',
        description: 'It counts for each field of which a workflow says nothing.',
        role: 'member',
        params: InTeam,
        responses: ofTeam,
      }),
      async (c) => {
        const { teamId } = c.req.valid('param')
        return c.json({ teamId, ...(await readTeamEvalConfig(c.get('scope'), teamId)) })
      },
    )
    .put(
      OF_TEAM,
      accept({
        id: 'updateTeamEvalConfig',
        tag: 'Monitoring',
        summary: 'Change how the runs of a team are judged',
        description: CHANGES,
        role: 'ADMIN',
        params: InTeam,
        json: ConfigPatch,
        example: { evalSamplingRate: 20, evalFailureThreshold: 3.5 },
        responses: ofTeam,
      }),
      async (c) => {
        const { teamId } = c.req.valid('param')
        const config = await updateTeamEvalConfig(c.get('scope'), teamId, c.req.valid('json'))
        return c.json({ teamId, ...config })
      },
    )
    .delete(
      OF_TEAM,
      accept({
        id: 'deleteTeamEvalConfig',
        tag: 'Monitoring',
        summary: "Take back a team's word on how its runs are judged",
        description: 'Only workflows with a config of their own are judged then. May be repeated.',
        role: 'ADMIN',
        params: InTeam,
        responses: gone,
      }),
      async (c) => {
        await deleteTeamEvalConfig(c.get('scope'), c.req.valid('param').teamId)
        return c.body(null, 204)
      },
    )
}

function createDimensionRoutes() {
  return new Hono<AppEnv>()
    .get(
      DIMENSIONS,
      accept({
        id: 'readEvalDimensions',
        tag: 'Monitoring',
        summary: "Read a team's own dimensions of judging",
        role: 'member',
        params: InTeam,
        responses: dimensions,
      }),
      async (c) => c.json({ dimensions: await readDimensions(c.get('scope'), c.req.valid('param').teamId) }),
    )
    .put(
      DIMENSIONS,
      accept({
        id: 'updateEvalDimensions',
        tag: 'Monitoring',
        summary: "Change a team's own dimensions of judging",
        description:
          'Replaces the list. A config that names one that is not there any more leaves it without a score.',
        role: 'ADMIN',
        params: InTeam,
        json: DimensionsInput,
        example: { dimensions: [{ name: 'tone', rubric: 'How friendly the output is. 5: warm. 1: rude.' }] },
        responses: dimensions,
      }),
      async (c) => {
        const { dimensions } = c.req.valid('json')
        const { teamId } = c.req.valid('param')
        return c.json({ dimensions: await updateDimensions(c.get('scope'), teamId, dimensions) })
      },
    )
}
